//! Standard error that cannot be written to.

use crate::process::PATIENCE;
use crate::run::{command, run};
use docent::server::Server;
use std::fs::File;
use std::process::Stdio;
use tokio::time::timeout;

/// Standard errors that nothing can be written to: a full disk, and a pipe that nobody reads.
fn unwritable() -> [Stdio; 2] {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    [File::options().write(true).open("/dev/full").unwrap().into(), writer.into()]
}

#[tokio::test]
async fn a_standard_error_that_cannot_be_written_to_changes_no_exit_code() {
    let server = Server::start().await.unwrap();
    let connect = server.connect_string();
    assert_eq!(run(connect, ["queue", "put", "/q", "item"]).await.code, 0);
    let missing = ["--", "no-such-program"];
    for (words, code) in [
        (["lock", "/a"].iter().chain(&missing), 127),
        (["lock", "/a"].iter().chain(&["--", "/"]), 126),
        (["-v", "lock", "/a"].iter().chain(&["--", "false"]), 1),
        (["elect", "/e"].iter().chain(&missing), 127),
        (["queue", "take", "/q", "--follow"].iter().chain(&missing), 126),
    ] {
        for stderr in unwritable() {
            let mut docent = command(connect, words.clone());
            let ended = docent.stdout(Stdio::null()).stderr(stderr).status();
            let ended = timeout(PATIENCE, ended).await.expect("it ends in time").unwrap();
            assert_eq!(ended.code(), Some(code), "{words:?}");
        }
    }
}
