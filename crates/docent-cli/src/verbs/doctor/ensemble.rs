use super::finding::{Cause, Finding};
use super::server::ServerReport;

const CHECK: &str = "quorum";

/// Judges all checked servers together.
pub(super) fn check(servers: &[ServerReport]) -> Finding {
    let count = servers.len();
    let serving = servers.iter().filter(|server| server.opened).count();
    let modes: Vec<_> =
        servers.iter().filter_map(|server| Some(&*server.description.as_ref()?.mode)).collect();
    let of_mode = |mode: &str| modes.iter().filter(|other| **other == mode).count();
    if serving == 0 {
        let remedy = "first fix the problems of the servers listed above";
        return Finding::failure(
            CHECK,
            Cause::Unreachable,
            format!("none of {count} servers opened a session"),
            remedy,
        );
    }
    if of_mode("leader") > 1 || (of_mode("standalone") > 0 && count > 1) {
        let text = format!("the servers do not form one ensemble: their modes are {}", modes.join(", "));
        let remedy =
            "list the servers of one ensemble in --connect, and give all the same server.N lines in zoo.cfg";
        return Finding::failure(CHECK, Cause::Setting, text, remedy);
    }
    if serving < count {
        let text = format!("{serving} of {count} servers open sessions");
        return Finding::warning(
            CHECK,
            text,
            "fix the other servers: without a majority, the ensemble stops serving",
        );
    }
    match of_mode("standalone") {
        0 => Finding::ok(CHECK, format!("all {count} servers open sessions")),
        _ => Finding::ok(CHECK, "a standalone server: if it is down, all recipes stop"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use docent::inspect::words::Answer;

    fn level(servers: &[(&str, bool)]) -> Level {
        let report = |&(mode, opened): &(&str, bool)| {
            let answer = Answer::of(format!("Zookeeper version: 3.8.4\nMode: {mode}\n").as_bytes());
            let Answer::Server(description) = answer else { panic!("the answer is from a server") };
            ServerReport { description: Some(description), opened, ..ServerReport::default() }
        };
        check(&servers.iter().map(report).collect::<Vec<_>>()).level
    }

    #[test]
    fn an_ensemble_whose_servers_all_serve_is_ok() {
        assert_eq!(level(&[("leader", true), ("follower", true), ("follower", true)]), Level::Ok);
        assert_eq!(level(&[("standalone", true)]), Level::Ok);
    }

    #[test]
    fn a_server_that_is_down_is_a_warning_while_another_one_serves() {
        assert_eq!(level(&[("leader", true), ("follower", true), ("", false)]), Level::Warning);
        assert_eq!(level(&[("", false), ("", false)]), Level::Failure);
    }

    #[test]
    fn servers_of_several_ensembles_are_a_failure() {
        assert_eq!(level(&[("standalone", true), ("standalone", true)]), Level::Failure);
        assert_eq!(level(&[("leader", true), ("leader", true)]), Level::Failure);
    }
}
