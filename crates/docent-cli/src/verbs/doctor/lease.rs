use super::finding::{Cause, Finding};
use std::time::Duration;

const CHECK: &str = "lease";

/// Ticks that a session timeout must have at least, so that locks are granted.
const TICKS: u32 = 4;

/// Times that the lease of locks rests on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Session timeout that the client asks for.
    pub(super) asked: Duration,
    /// Session timeout that the servers granted.
    pub(super) granted: Duration,
    /// Longest tick that a server told; none when no server tells.
    pub(super) told_tick: Option<Duration>,
    /// Tick that the client reckons with.
    pub(super) assumed_tick: Duration,
}

/// Compares the granted session timeout with the servers' tick.
pub(super) fn check(times: Times) -> Vec<Finding> {
    let Times { asked, granted, told_tick, assumed_tick } = times;
    let tick = told_tick.unwrap_or(assumed_tick);
    let known = if told_tick.is_some() { "the servers' tick" } else { "a tick, assumed," };
    let mut findings = vec![if granted < TICKS * tick {
        let least = TICKS * tick;
        let text =
            format!("session timeout {granted:?} is below four times {known} of {tick:?}: no lock is safe");
        let remedy = format!(
            "ask for {least:?} or more with --session-timeout, and let the servers grant it (maxSessionTimeout)"
        );
        Finding::failure(CHECK, Cause::Setting, text, remedy)
    } else {
        Finding::ok(CHECK, format!("session timeout {granted:?} is at least four times {known} of {tick:?}"))
    }];
    if granted != asked {
        let text = format!("the servers granted {granted:?} in place of the session timeout {asked:?}");
        let remedy = "ask for what they grant, or set minSessionTimeout and maxSessionTimeout in zoo.cfg";
        findings.push(Finding::warning(CHECK, text, remedy));
    }
    if let Some(told) = told_tick.filter(|told| *told > assumed_tick) {
        let text = format!("the servers' tick is {told:?}, and clients reckon with {assumed_tick:?}");
        let remedy = format!("set the tick of every client that holds locks to {told:?} (`server_tick`)");
        findings.push(Finding::failure(CHECK, Cause::Setting, text, remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn levels(asked: u32, granted: u32, told_tick: Option<u32>) -> Vec<Level> {
        let told_tick = told_tick.map(|ticks| ticks * SECOND);
        let times =
            Times { asked: asked * SECOND, granted: granted * SECOND, told_tick, assumed_tick: 2 * SECOND };
        check(times).into_iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_timeout_of_four_ticks_is_enough() {
        assert_eq!(levels(8, 8, Some(2)), [Level::Ok]);
        assert_eq!(levels(8, 8, None), [Level::Ok]);
    }

    #[test]
    fn a_shorter_timeout_is_a_failure_with_the_least_one_as_its_remedy() {
        let times = Times { asked: SECOND, granted: SECOND, told_tick: None, assumed_tick: 2 * SECOND };
        let [finding] = &check(times)[..] else { panic!("there is one") };
        assert_eq!(finding.level, Level::Failure);
        assert!(finding.remedy.as_ref().is_some_and(|remedy| remedy.contains("8s")), "{finding:?}");
    }

    #[test]
    fn a_timeout_that_was_not_asked_for_is_a_warning() {
        assert_eq!(levels(60, 40, Some(2)), [Level::Ok, Level::Warning]);
    }

    #[test]
    fn a_tick_that_is_longer_than_clients_assume_is_a_failure() {
        assert_eq!(levels(20, 20, Some(3)), [Level::Ok, Level::Failure]);
    }
}
