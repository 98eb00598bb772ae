//! Scripts that once showed a difference, and short ones of each kind, with the records of a real server.

use docent_differential::{Fixed, Record, compare, embedded, fixed_scripts, parse, print, real};
use std::net::SocketAddr;

async fn hold(address: SocketAddr, differs: impl Fn(&Record, &Record) -> bool) {
    let fixed = fixed_scripts().expect("the scripts must be readable");
    assert!(!fixed.is_empty());
    let mut failed = Vec::new();
    for script in &fixed {
        let record = script.run(address).await.expect("the server must reply");
        if differs(&script.expected, &record) {
            failed.push(difference(script, &record));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn difference(script: &Fixed, record: &Record) -> String {
    format!("{}\nexpected:\n{}\nfound:\n{record}", script.file.display(), script.expected)
}

#[tokio::test]
async fn the_embedded_server_does_what_a_real_one_did() {
    let server = embedded().await.unwrap();
    hold(server.local_addr(), |real, embedded| compare(real, embedded).is_some()).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_does_what_was_recorded() {
    let server = real().await.unwrap();
    hold(server.address(), |expected, found| expected != found).await;
}

#[test]
fn a_script_is_the_same_after_it_was_printed() {
    for seed in 0..500 {
        let script = docent_differential::generate(seed);
        assert_eq!(parse(&print(&script)).unwrap(), script, "seed {seed}");
    }
}
