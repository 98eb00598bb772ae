//! The command with a Kerberos ticket. Like `tests/kerberos` of the workspace, only builds with
//! `RUSTFLAGS="--cfg docent_gssapi"` have this test.

#![cfg(docent_gssapi)]

use docent_kerberos::{NO_TICKET, Site, assert_contains};
use std::process::{Command, Stdio};

#[tokio::test]
async fn a_ticket_is_enough_to_lock() {
    let site = Site::start().await;
    let lock = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docent"));
        let environment = site.environment(&[("DOCENT_OPERATION_TIMEOUT", "5s"), ("DOCENT_SASL_GSSAPI", "")]);
        command.envs(environment).stdin(Stdio::null());
        let ended =
            command.args(["--sasl-gssapi", "lock", "/locks/a", "--", "echo", "held"]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    };
    let (code, _, error) = lock();
    assert_eq!(code, Some(69), "{error}");
    assert_contains(&error, &[NO_TICKET]);
    site.kinit("1h");
    let (code, output, error) = lock();
    assert_eq!((code, &*output), (Some(0), "held\n"), "{error}");
}
