use super::bounds::Bounds;
use super::finding::{Cause, Finding};
use std::time::Duration;

const CHECK: &str = "lease";

/// Minimum number of ticks in a session timeout for which locks are granted.
const TICKS: u32 = 4;

/// Remedy for a tick that the servers do not report.
const ALLOW: &str = "with 4lw.commands.whitelist=srvr,conf the servers report it";

/// Times that determine the lease of locks.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// Session timeout that the client requests.
    pub(super) requested: Duration,
    /// Session timeout that the servers granted.
    pub(super) granted: Duration,
    /// Longest tick that a server reported. `None` if no server reports its tick.
    pub(super) reported_tick: Option<Duration>,
    /// Session timeouts granted by servers that do not report their tick.
    pub(super) bounds: Vec<Bounds>,
    /// Tick that the client assumes.
    pub(super) assumed_tick: Duration,
}

/// Knowledge of the servers' tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    /// Reported by a server.
    Reported(Duration),
    /// Inferred from the granted session timeouts, assuming that these are the defaults.
    Inferred(Duration, Bounds),
    /// Unknown: the session timeouts were set in another way, or are unknown too.
    Unknown(Option<Bounds>),
}

impl Times {
    fn tick(&self) -> Tick {
        if let Some(reported) = self.reported_tick {
            return Tick::Reported(reported);
        }
        match self.bounds.iter().find(|bounds| bounds.tick().is_none()) {
            Some(unusual) => Tick::Unknown(Some(*unusual)),
            None => {
                let inferred = self.bounds.iter().filter_map(|bounds| Some((bounds.tick()?, *bounds)));
                let longest = inferred.max_by_key(|(tick, _)| *tick);
                longest.map_or(Tick::Unknown(None), |(tick, bounds)| Tick::Inferred(tick, bounds))
            }
        }
    }
}

/// Compares the granted session timeout with the servers' tick.
pub(super) fn check(times: &Times) -> Vec<Finding> {
    let Times { requested, granted, assumed_tick, .. } = *times;
    let tick = times.tick();
    let mut findings = vec![rule(granted, assumed_tick, tick)];
    if granted != requested {
        let text = format!("the servers granted a session timeout of {granted:?} instead of {requested:?}");
        let remedy =
            "request a timeout that they grant, or change minSessionTimeout and maxSessionTimeout in zoo.cfg";
        findings.push(Finding::warning(CHECK, text, remedy));
    }
    findings.extend(reckoning(assumed_tick, tick));
    findings
}

/// Checks the rule of four ticks. An inferred tick counts only if it is longer than the assumed one: a
/// shorter one may come from timeouts that were set explicitly.
fn rule(granted: Duration, assumed: Duration, tick: Tick) -> Finding {
    let (length, known) = match tick {
        Tick::Reported(reported) => (reported, "the servers' tick".to_owned()),
        Tick::Inferred(tick, bounds) if tick >= assumed => {
            (tick, format!("the servers' tick, inferred from the session timeouts they grant ({bounds}),"))
        }
        _ => (assumed, "the assumed tick".to_owned()),
    };
    let least = TICKS * length;
    if granted >= least {
        let text = format!("session timeout {granted:?} is at least four times {known} of {length:?}");
        return Finding::ok(CHECK, text);
    }
    let text =
        format!("session timeout {granted:?} is below four times {known} of {length:?}: no lock is safe");
    let remedy = format!(
        "request {least:?} or more with --session-timeout, and let the servers grant it (maxSessionTimeout)"
    );
    Finding::failure(CHECK, Cause::Setting, text, remedy)
}

/// Compares the tick that clients assume with what is known of the servers' tick.
fn reckoning(assumed: Duration, tick: Tick) -> Option<Finding> {
    match tick {
        Tick::Reported(reported) if reported > assumed => {
            let text = format!("the servers' tick is {reported:?}, but clients assume {assumed:?}");
            let remedy =
                format!("set the tick of every client that holds locks to {reported:?} (--server-tick)");
            Some(Finding::failure(CHECK, Cause::Setting, text, remedy))
        }
        Tick::Inferred(tick, bounds) if tick > assumed => {
            let text = format!(
                "the servers' tick seems to be {tick:?}, judging by the session timeouts they grant ({bounds}), but \
                 clients assume {assumed:?}"
            );
            let remedy = format!(
                "check tickTime in zoo.cfg, and set the tick of every client that holds locks to that value \
                 (--server-tick); {ALLOW}"
            );
            Some(Finding::warning(CHECK, text, remedy))
        }
        Tick::Unknown(bounds) => {
            let granted = bounds.map_or_else(String::new, |bounds| {
                format!(" and it does not follow from the session timeouts they grant ({bounds})")
            });
            let text = format!("the servers do not report their tick{granted}; clients assume {assumed:?}");
            let remedy = format!("check that tickTime in zoo.cfg is not longer; {ALLOW}");
            Some(Finding::warning(CHECK, text, remedy))
        }
        Tick::Reported(_) | Tick::Inferred(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn levels(requested: u32, granted: u32, reported_tick: Option<u32>) -> Vec<Level> {
        let reported_tick = reported_tick.map(|ticks| ticks * SECOND);
        levels_of(&Times { requested: requested * SECOND, reported_tick, ..times(granted, &[]) })
    }

    fn levels_of(times: &Times) -> Vec<Level> {
        check(times).into_iter().map(|finding| finding.level).collect()
    }

    /// Returns the times of servers that do not report their tick and grant timeouts between these seconds.
    fn times(granted: u32, bounds: &[(u32, u32)]) -> Times {
        let bounds = bounds.iter().map(|(min, max)| Bounds { min: *min * SECOND, max: *max * SECOND });
        let granted = granted * SECOND;
        let bounds = bounds.collect();
        Times { requested: granted, granted, reported_tick: None, bounds, assumed_tick: 2 * SECOND }
    }

    #[test]
    fn a_timeout_of_four_ticks_is_enough() {
        assert_eq!(levels(8, 8, Some(2)), [Level::Ok]);
    }

    #[test]
    fn a_shorter_timeout_is_a_failure_whose_remedy_names_the_minimum() {
        let findings = check(&Times { reported_tick: Some(2 * SECOND), ..times(1, &[]) });
        let [finding] = &findings[..] else { panic!("there is one finding") };
        assert_eq!(finding.level, Level::Failure);
        assert!(finding.remedy.as_ref().is_some_and(|remedy| remedy.contains("8s")), "{finding:?}");
    }

    #[test]
    fn a_timeout_other_than_requested_is_a_warning() {
        assert_eq!(levels(60, 40, Some(2)), [Level::Ok, Level::Warning]);
    }

    #[test]
    fn a_tick_that_is_longer_than_clients_assume_is_a_failure() {
        assert_eq!(levels(20, 20, Some(3)), [Level::Ok, Level::Failure]);
    }

    #[test]
    fn a_tick_is_inferred_from_timeouts_that_agree() {
        let same = check(&times(8, &[(4, 40), (4, 40)]));
        assert_eq!(same.len(), 1, "{same:?}");
        assert!(
            same[0].text.contains("inferred from the session timeouts they grant (4s to 40s), of 2s"),
            "{same:?}"
        );
        assert_eq!(levels_of(&times(8, &[(4, 40), (6, 60)])), [Level::Failure, Level::Warning]);
        assert_eq!(levels_of(&times(12, &[(4, 40), (6, 60)])), [Level::Ok, Level::Warning]);
    }

    #[test]
    fn a_tick_that_seems_shorter_than_assumed_does_not_count() {
        assert_eq!(levels_of(&times(4, &[(1, 10)])), [Level::Failure]);
        assert_eq!(levels_of(&times(8, &[(1, 10)])), [Level::Ok]);
    }

    #[test]
    fn a_tick_that_cannot_be_inferred_is_reported_as_unknown() {
        for bounds in [&[][..], &[(5, 40)], &[(4, 40), (5, 40)]] {
            let findings = check(&times(8, bounds));
            assert_eq!(findings.len(), 2, "{findings:?}");
            assert_eq!(findings[1].level, Level::Warning);
            assert!(findings[1].text.contains("do not report their tick"), "{findings:?}");
        }
    }
}
