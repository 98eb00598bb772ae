//! The errors of the test kit, one case for each (decision 13). They do not say whether a retry is safe,
//! because tests do not retry. Each names what to do or what was observed.

use docent::testkit::{ExpireError, Missing, NotMet, StartError, eventually};
use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

fn says(error: &dyn Error, text: &str) {
    assert_eq!(error.to_string(), text);
}

#[test]
fn an_error_of_the_kit_names_what_is_missing() {
    let install = "install libzookeeper-java and default-jre-headless";
    says(&Missing::Java, &format!("no Java runtime found: {install}, or set JAVA_HOME"));
    let jar = "/usr/share/java/zookeeper.jar";
    says(&Missing::Debian(jar.into()), &format!("{jar} is missing: {install}, or set ZOOKEEPER_HOME"));
    says(
        &StartError::Missing(Missing::Home("/opt/zk".into())),
        "ZOOKEEPER_HOME is \"/opt/zk\", which has no lib/zookeeper-*.jar: set it to an unpacked binary distribution",
    );
}

#[test]
fn an_error_of_the_kit_names_the_cause() {
    let refused = || std::io::Error::other("refused");
    says(&StartError::Io(refused()), "cannot start the server: refused");
    let ended = StartError::Ended { status: ExitStatus::from_raw(256), log: "no memory".into() };
    says(&ended, "the server exited during its start (exit status: 1): no memory");
    says(&StartError::Stopped, "the server was stopped before it served");
    let late = StartError::Late { seconds: 60, log: "reading".into() };
    says(&late, "the server did not serve within 60 s: reading");
    let nobody = StartError::NoLeader { seconds: 60, modes: vec![None] };
    says(&nobody, "no server became the leader within 60 s; their modes are [None]");
    says(&ExpireError::Unknown(255), "session 0xff was not opened through this proxy");
    says(&ExpireError::Link(refused()), "cannot end the session on the server: refused");
}

#[tokio::test]
async fn a_failed_wait_reports_its_last_observation() {
    let error: NotMet = eventually(Duration::ZERO, async || "away", |_| false).await.unwrap_err();
    says(&error, "the condition was not met within 0ns (1 checks): the last value was \"away\"");
    assert_eq!((error.limit(), error.looks(), error.seen()), (Duration::ZERO, 1, Some("\"away\"")));
}
