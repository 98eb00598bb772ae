use super::finding::{Cause, Finding};
use super::server::ServerReport;

const CHECK: &str = "quorum";

/// Judges the servers that were checked, together.
pub(super) fn check(servers: &[ServerReport]) -> Finding {
    let count = servers.len();
    let serving = servers.iter().filter(|server| server.opened).count();
    let modes: Vec<_> =
        servers.iter().filter_map(|server| Some(&*server.description.as_ref()?.mode)).collect();
    let of_mode = |mode: &str| modes.iter().filter(|other| **other == mode).count();
    if serving == 0 {
        let remedy = "follow the remedies of the servers above";
        return Finding::failure(
            CHECK,
            Cause::Unreachable,
            format!("none of {count} servers opens a session"),
            remedy,
        );
    }
    if of_mode("leader") > 1 || (of_mode("standalone") > 0 && count > 1) {
        let text = format!("the servers are not one ensemble, by their modes: {}", modes.join(", "));
        let remedy =
            "name the servers of one ensemble in --connect, and give all the same server.N lines in zoo.cfg";
        return Finding::failure(CHECK, Cause::Setting, text, remedy);
    }
    if serving < count {
        let text = format!("{serving} of {count} servers open sessions");
        return Finding::warning(CHECK, text, "mend the others: with too few of them the ensemble stops");
    }
    match of_mode("standalone") {
        0 => Finding::ok(CHECK, format!("all {count} servers open sessions")),
        _ => Finding::ok(CHECK, "a standalone server: when it is down, so is everything"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Description;
    use super::super::finding::Level;
    use super::*;

    fn level(servers: &[(&str, bool)]) -> Level {
        let report = |&(mode, opened): &(&str, bool)| ServerReport {
            description: Some(Description { mode: mode.to_owned(), ..Description::default() }),
            opened,
            ..ServerReport::default()
        };
        check(&servers.iter().map(report).collect::<Vec<_>>()).level
    }

    #[test]
    fn an_ensemble_of_which_all_serve_is_well() {
        assert_eq!(level(&[("leader", true), ("follower", true), ("follower", true)]), Level::Ok);
        assert_eq!(level(&[("standalone", true)]), Level::Ok);
    }

    #[test]
    fn a_server_that_is_down_is_a_warning_while_others_serve() {
        assert_eq!(level(&[("leader", true), ("follower", true), ("", false)]), Level::Warning);
        assert_eq!(level(&[("", false), ("", false)]), Level::Failure);
    }

    #[test]
    fn servers_of_several_ensembles_are_a_failure() {
        assert_eq!(level(&[("standalone", true), ("standalone", true)]), Level::Failure);
        assert_eq!(level(&[("leader", true), ("leader", true)]), Level::Failure);
    }
}
