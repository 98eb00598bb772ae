//! Clients of both libraries that authenticate with SASL.

use crate::beside_kazoo;
use docent::client::Sasl;
use docent::node::{Acl, Permissions};
use docent::{Client, CreateMode, ErrorKind};
use docent_battery::packages::KAZOO;
use docent_battery::{Backend, ServerOptions};
use docent_tests::{builder, soon};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kazoo/sasl.py");

/// Runs a client of kazoo. Returns what it prints.
async fn kazoo_prints(servers: &str, user: &str, password: &str) -> String {
    let mut python = KAZOO.command(Path::new(env!("CARGO_TARGET_TMPDIR")), PROGRAM).await.unwrap();
    python.args([servers, user, password]).kill_on_drop(true);
    let output = soon(python.output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

beside_kazoo! {
    async fn both_authenticate_with_sasl_and_share_nodes(backend: Backend) {
        let options = ServerOptions::default().sasl_user("me", "right").sasl_user("you", "left");
        let server = backend.start_own_with(options.require_sasl(true)).await;
        let servers = server.connect_string();
        let connect = async |user: &str, password: &str| {
            let sasl = Sasl::digest_md5(user, password);
            soon(builder(&server, &servers).sasl(sasl).connect()).await.unwrap()
        };
        let (me, you) = (connect("me", "right").await, connect("you", "left").await);
        me.create("/ours", "docent", CreateMode::Persistent).await.unwrap();
        let rooted = format!("{servers}{}", server.root());
        assert_eq!(kazoo_prints(&rooted, "me", "wrong").await, "refused");
        assert_eq!(kazoo_prints(&rooted, "me", "right").await, "docent");
        assert_eq!(&me.get("/theirs").await.unwrap().data[..], b"kazoo");
        assert_eq!(me.acl("/theirs").await.unwrap().entries, [Acl::new(Permissions::ALL, "sasl", "me")]);
        assert_eq!(you.get("/theirs").await.unwrap_err().kind(), ErrorKind::NoAuth);
    }
}

/// Starts the program `docent-server` with the users of `file`. Returns it with its address.
async fn closed_program(file: &Path) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_server_program"));
    command.args(["--port", "0", "--require-sasl", "--sasl-users"]).arg(file);
    let mut child = command.kill_on_drop(true).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let greeting = soon(lines.next_line()).await.unwrap().expect("the program starts");
    let (_, rest) = greeting.split_once(" on ").expect("the start line contains the address");
    let address = rest.split_once(',').unwrap().0.to_owned();
    (child, address)
}

#[tokio::test]
#[ignore = "needs kazoo: run `cargo xtask test`"]
async fn clients_of_both_libraries_authenticate_at_the_program() {
    let mut users = NamedTempFile::new().unwrap();
    users.write_all(b"me:right\n\nyou:with:colon\n").unwrap();
    let (mut program, address) = closed_program(users.path()).await;
    let connect = async |user: &str, password: &str| {
        let sasl = Sasl::digest_md5(user, password);
        soon(Client::builder(&address).sasl(sasl).connect()).await
    };

    let (me, you) = (connect("me", "right").await.unwrap(), connect("you", "with:colon").await.unwrap());
    me.create("/ours", "docent", CreateMode::Persistent).await.unwrap();
    assert_eq!(kazoo_prints(&address, "me", "right").await, "docent");
    assert_eq!(&me.get("/theirs").await.unwrap().data[..], b"kazoo");
    assert_eq!(you.get("/theirs").await.unwrap_err().kind(), ErrorKind::NoAuth);

    assert_eq!(kazoo_prints(&address, "me", "wrong").await, "refused");
    for (user, password) in [("me", "wrong"), ("you", "with"), ("third", "")] {
        assert_eq!(connect(user, password).await.unwrap_err().kind(), ErrorKind::AuthFailed, "{user}");
    }
    let open = Client::builder(&address).build().unwrap();
    let refused = soon(open.get("/ours")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AuthFailed, "a client without SASL is refused");
    soon(open.close()).await;

    soon(me.close()).await;
    soon(you.close()).await;
    program.kill().await.unwrap();
}
