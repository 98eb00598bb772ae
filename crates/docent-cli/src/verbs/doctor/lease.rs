use super::bounds::Bounds;
use super::finding::{Cause, Finding};
use std::time::Duration;

const CHECK: &str = "lease";

/// Ticks that a session timeout must have at least, so that locks are granted.
const TICKS: u32 = 4;

/// Remedy of a tick that is not told.
const ALLOW: &str = "4lw.commands.whitelist=srvr,conf lets the servers tell it";

/// Times that the lease of locks rests on.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// Session timeout that the client asks for.
    pub(super) asked: Duration,
    /// Session timeout that the servers granted.
    pub(super) granted: Duration,
    /// Longest tick that a server told; none when no server tells.
    pub(super) told_tick: Option<Duration>,
    /// Session timeouts that servers grant which do not tell their tick.
    pub(super) bounds: Vec<Bounds>,
    /// Tick that the client reckons with.
    pub(super) assumed_tick: Duration,
}

/// Knowledge about the servers' tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    /// A server told it.
    Told(Duration),
    /// It follows from the session timeouts that are granted, if those are the default ones.
    Concluded(Duration, Bounds),
    /// The session timeouts that are granted were set in another way, or are not known either.
    Unknown(Option<Bounds>),
}

impl Times {
    fn tick(&self) -> Tick {
        if let Some(told) = self.told_tick {
            return Tick::Told(told);
        }
        match self.bounds.iter().find(|bounds| bounds.tick().is_none()) {
            Some(strange) => Tick::Unknown(Some(*strange)),
            None => {
                let concluded = self.bounds.iter().filter_map(|bounds| Some((bounds.tick()?, *bounds)));
                let longest = concluded.max_by_key(|(tick, _)| *tick);
                longest.map_or(Tick::Unknown(None), |(tick, bounds)| Tick::Concluded(tick, bounds))
            }
        }
    }
}

/// Compares the granted session timeout with the servers' tick.
pub(super) fn check(times: &Times) -> Vec<Finding> {
    let Times { asked, granted, assumed_tick, .. } = *times;
    let tick = times.tick();
    let mut findings = vec![rule(granted, assumed_tick, tick)];
    if granted != asked {
        let text = format!("the servers granted {granted:?} in place of the session timeout {asked:?}");
        let remedy = "ask for what they grant, or set minSessionTimeout and maxSessionTimeout in zoo.cfg";
        findings.push(Finding::warning(CHECK, text, remedy));
    }
    findings.extend(reckoning(assumed_tick, tick));
    findings
}

/// The rule of four ticks. A tick that was concluded counts if it is longer than the one assumed: the other
/// way round, somebody may have set the timeouts.
fn rule(granted: Duration, assumed: Duration, tick: Tick) -> Finding {
    let (length, known) = match tick {
        Tick::Told(told) => (told, "the servers' tick".to_owned()),
        Tick::Concluded(tick, bounds) if tick >= assumed => {
            (tick, format!("the servers' tick, concluded from the timeouts that they grant ({bounds}),"))
        }
        _ => (assumed, "a tick, assumed,".to_owned()),
    };
    let least = TICKS * length;
    if granted >= least {
        let text = format!("session timeout {granted:?} is at least four times {known} of {length:?}");
        return Finding::ok(CHECK, text);
    }
    let text =
        format!("session timeout {granted:?} is below four times {known} of {length:?}: no lock is safe");
    let remedy = format!(
        "ask for {least:?} or more with --session-timeout, and let the servers grant it (maxSessionTimeout)"
    );
    Finding::failure(CHECK, Cause::Setting, text, remedy)
}

/// The tick that clients reckon with, beside what is known of the servers'.
fn reckoning(assumed: Duration, tick: Tick) -> Option<Finding> {
    match tick {
        Tick::Told(told) if told > assumed => {
            let text = format!("the servers' tick is {told:?}, and clients reckon with {assumed:?}");
            let remedy = format!("set the tick of every client that holds locks to {told:?} (--server-tick)");
            Some(Finding::failure(CHECK, Cause::Setting, text, remedy))
        }
        Tick::Concluded(tick, bounds) if tick > assumed => {
            let text = format!(
                "the servers' tick seems to be {tick:?}, by the timeouts that they grant ({bounds}), and clients \
                 reckon with {assumed:?}"
            );
            let remedy = format!(
                "look at tickTime in zoo.cfg, and set the tick of every client that holds locks to that \
                 (--server-tick); {ALLOW}"
            );
            Some(Finding::warning(CHECK, text, remedy))
        }
        Tick::Unknown(bounds) => {
            let granted = bounds.map_or_else(String::new, |bounds| {
                format!(", nor does it follow from the timeouts that they grant ({bounds})")
            });
            let text =
                format!("the servers do not tell their tick{granted}: clients reckon with {assumed:?}");
            let remedy = format!("look at tickTime in zoo.cfg: it must not be longer; {ALLOW}");
            Some(Finding::warning(CHECK, text, remedy))
        }
        Tick::Told(_) | Tick::Concluded(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn levels(asked: u32, granted: u32, told_tick: Option<u32>) -> Vec<Level> {
        let told_tick = told_tick.map(|ticks| ticks * SECOND);
        levels_of(&Times { asked: asked * SECOND, told_tick, ..times(granted, &[]) })
    }

    fn levels_of(times: &Times) -> Vec<Level> {
        check(times).into_iter().map(|finding| finding.level).collect()
    }

    /// Times of servers that do not tell their tick, and grant timeouts from and to these seconds.
    fn times(granted: u32, bounds: &[(u32, u32)]) -> Times {
        let bounds = bounds.iter().map(|(min, max)| Bounds { min: *min * SECOND, max: *max * SECOND });
        let granted = granted * SECOND;
        let bounds = bounds.collect();
        Times { asked: granted, granted, told_tick: None, bounds, assumed_tick: 2 * SECOND }
    }

    #[test]
    fn a_timeout_of_four_ticks_is_enough() {
        assert_eq!(levels(8, 8, Some(2)), [Level::Ok]);
    }

    #[test]
    fn a_shorter_timeout_is_a_failure_with_the_least_one_as_its_remedy() {
        let findings = check(&Times { told_tick: Some(2 * SECOND), ..times(1, &[]) });
        let [finding] = &findings[..] else { panic!("there is one") };
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

    #[test]
    fn a_tick_is_concluded_from_timeouts_that_agree() {
        let same = check(&times(8, &[(4, 40), (4, 40)]));
        assert_eq!(same.len(), 1, "{same:?}");
        assert!(
            same[0].text.contains("concluded from the timeouts that they grant (4s to 40s), of 2s"),
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
    fn a_tick_that_nothing_tells_is_said_to_be_unknown() {
        for bounds in [&[][..], &[(5, 40)], &[(4, 40), (5, 40)]] {
            let findings = check(&times(8, bounds));
            assert_eq!(findings.len(), 2, "{findings:?}");
            assert_eq!(findings[1].level, Level::Warning);
            assert!(findings[1].text.contains("do not tell their tick"), "{findings:?}");
        }
    }
}
