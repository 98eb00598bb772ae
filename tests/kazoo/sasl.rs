//! Clients of both libraries that authenticate with SASL.

use crate::beside_kazoo;
use docent::client::Sasl;
use docent::node::{Acl, Permissions};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, ServerOptions, TestServer, kazoo};
use docent_tests::{builder, soon};
use std::path::Path;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kazoo/sasl.py");

/// Runs a client of kazoo. Returns what it prints.
async fn kazoo_prints(server: &TestServer, user: &str, password: &str) -> String {
    let mut python = kazoo::python(Path::new(env!("CARGO_TARGET_TMPDIR")), PROGRAM).await.unwrap();
    python
        .arg(format!("{}{}", server.connect_string(), server.root()))
        .args([user, password])
        .kill_on_drop(true);
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
        assert_eq!(kazoo_prints(&server, "me", "wrong").await, "refused");
        assert_eq!(kazoo_prints(&server, "me", "right").await, "docent");
        assert_eq!(&me.get("/theirs").await.unwrap().data[..], b"kazoo");
        assert_eq!(me.acl("/theirs").await.unwrap().entries, [Acl::new(Permissions::ALL, "sasl", "me")]);
        assert_eq!(you.get("/theirs").await.unwrap_err().kind(), ErrorKind::NoAuth);
    }
}
