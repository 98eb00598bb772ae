//! Sequences of faults that do harm only in a certain order, which independent draws hardly ever produce.

use crate::plan::{Disturbance, Fault, Link, Planned};
use crate::setting::Setting;
use fastrand::Rng;
use std::time::Duration;

/// Theme of all faults of some runs: one sequence, repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Sessions are resumed with a smaller timeout, and then some of their clients are cut off for about the
    /// larger one. The servers end these sessions earlier than their clients were promised at first.
    SmallerTimeouts,
    /// Some clients do not learn the outcome of their writes, and then the servers are unavailable until the
    /// clients give up their sessions. When the servers return, these sessions are alive, with everything
    /// that was written in them.
    GivenUpAlive,
    /// The follower loses its leader for as long as its clients need to connect to the leader, and then
    /// delivers the requests that they had sent through it.
    LateWrites,
    /// Some clients of the follower are paused for most of a timeout. The follower loses its leader as soon
    /// as something is granted to one of them after that. Their writes were applied, but the leader does not
    /// learn that these clients are alive.
    StallThenCutOff,
    /// Some clients are cut off for a part of a timeout, and meanwhile an operator deletes their claims, so
    /// that other clients can create the same claims.
    StolenClaims,
    /// Some processes are paused for a part of a timeout, and meanwhile an operator deletes their claims.
    /// Their sessions and links stay alive.
    StolenFromStalled,
    /// Clients die one after the other, or several together, without other faults. Their places in lines stay
    /// until the servers end their sessions. Only for workloads that request it.
    Deaths,
}

impl Theme {
    /// The theme of a run, if it has one. Drawn separately, so that runs without a theme are unchanged.
    pub(crate) fn of(setting: &Setting) -> Option<Self> {
        match rng(setting).u8(..10) {
            0 => Some(Self::SmallerTimeouts),
            1 => Some(Self::GivenUpAlive),
            7..10 if outlasts_clients(setting) => Some(Self::LateWrites),
            2 if outlasts_clients(setting) => Some(Self::StallThenCutOff),
            3 => Some(Self::StolenClaims),
            4 => Some(Self::StolenFromStalled),
            _ => None,
        }
    }

    /// All faults of a run with this theme.
    pub(crate) fn plan(self, setting: &Setting) -> Vec<Planned> {
        let mut rng = rng(setting).fork();
        let (mut plan, mut begin) = (Vec::new(), setting.timeout);
        while begin < setting.turbulence {
            let mut sequence = Sequence { setting, begin, rng: rng.fork(), plan: &mut plan };
            let ends = match self {
                Self::SmallerTimeouts => sequence.smaller_timeouts(),
                Self::GivenUpAlive => sequence.given_up_alive(),
                Self::LateWrites => sequence.late_writes(),
                Self::StallThenCutOff => sequence.stall_then_cut_off(),
                Self::StolenClaims => sequence.stolen_claims(),
                Self::StolenFromStalled => sequence.stolen_from_stalled(),
                Self::Deaths => sequence.death(),
            };
            // Time for new sessions, and for new holds.
            begin = ends + setting.timeout.mul_f64(1.0 + 2.0 * rng.f64());
        }
        plan.retain(|planned| planned.at < setting.turbulence);
        plan.sort_by_key(|planned| planned.at);
        plan
    }
}

/// Returns true if there is a follower that continues to serve without its leader for long enough.
///
/// In this time clients must be able to give up a link after a third of their timeout, to try the follower
/// once more, and to find their nodes at the leader.
fn outlasts_clients(setting: &Setting) -> bool {
    setting.relay.is_some() && setting.sync_limit > setting.timeout.mul_f64(0.8)
}

/// Index of the leader among the servers.
const LEADER: usize = 0;

fn rng(setting: &Setting) -> Rng {
    Rng::with_seed(setting.seed ^ u64::from_be_bytes(*b"\0\0\0story"))
}

/// One sequence of faults. Times are relative to its begin, in timeouts.
struct Sequence<'a> {
    setting: &'a Setting,
    begin: Duration,
    rng: Rng,
    plan: &'a mut Vec<Planned>,
}

impl Sequence<'_> {
    /// Each of these methods returns the end of its sequence.
    fn smaller_timeouts(&mut self) -> Duration {
        let granted = self.between(0.4, 0.6);
        self.push(0.0, 2.5, Fault::ShortTimeouts(self.setting.timeout.mul_f64(granted)));
        // All clients reconnect.
        self.push(0.01, 0.05, Fault::Bounce);
        let cut = self.between(0.4, 0.8);
        for client in self.some_clients() {
            let (at, lasts) = (cut + self.between(0.0, 0.2), self.between(0.8, 1.3));
            self.cut(client, at, lasts, Disturbance::Cut);
        }
        self.after(2.5)
    }

    fn given_up_alive(&mut self) -> Duration {
        let outage = self.between(0.3, 0.8);
        for client in self.some_clients() {
            // Short enough that the servers do not end the session. Its client receives no replies.
            let at = outage - self.between(0.1, 0.6).min(outage);
            self.cut(client, at, outage - at + 0.1, Disturbance::CutToClient);
        }
        let lasts = self.between(1.6, 2.2);
        self.push(outage, lasts, Fault::Bounce);
        self.after(outage + lasts)
    }

    fn late_writes(&mut self) -> Duration {
        // At its limit a follower stops serving, and then no request is late.
        let limit = self.setting.sync_limit.div_duration_f64(self.setting.timeout);
        let (begin, lasts) = (0.6, self.between(0.5, 1.6).min(0.95 * limit));
        self.push(begin, lasts, Fault::CutOffHolding);
        for client in self.some_clients() {
            // These clients are connected to the follower, and try to resume their sessions there once more
            // before they reach the leader.
            let ends = begin + lasts * self.between(0.5, 0.8);
            self.push(0.0, ends, Fault::Link(Link { client, server: Some(LEADER) }, Disturbance::Cut));
        }
        self.after(begin + lasts)
    }

    fn stall_then_cut_off(&mut self) -> Duration {
        let pause_start = self.between(0.6, 0.8);
        // A pause of the whole timeout would end sessions before anything is granted.
        let spare = (self.setting.tick + Duration::from_millis(100)).div_duration_f64(self.setting.timeout);
        let pause_end = pause_start + self.between(0.65, 0.95) * (1.0 - spare);
        let clients = self.few_clients();
        for client in clients.clone() {
            // Long enough that the client moves to the follower.
            self.push(0.0, pause_end, Fault::Link(Link { client, server: Some(0) }, Disturbance::Cut));
            self.push(pause_start, pause_end - pause_start, Fault::Freeze(client));
        }
        let lasts = self.between(0.7, 1.1);
        self.push(pause_end, lasts, Fault::CutOffAtGrant(clients));
        self.after(pause_end + lasts)
    }

    fn stolen_claims(&mut self) -> Duration {
        // Long enough that links are given up, but not so long that leases end.
        let lasts = self.between(0.35, 0.5);
        for client in self.some_clients() {
            self.cut(client, 0.0, lasts, Disturbance::Cut);
            let at = self.between(0.02, 0.2);
            self.push(at, 0.0, Fault::Steal(client));
        }
        self.after(lasts)
    }

    fn stolen_from_stalled(&mut self) -> Duration {
        // Short enough that leases and links survive.
        let lasts = self.between(0.1, 0.3);
        for client in self.some_clients() {
            self.push(0.0, lasts, Fault::Freeze(client));
            let at = self.between(0.01, 0.05);
            self.push(at, 0.0, Fault::Steal(client));
        }
        self.after(lasts)
    }

    fn death(&mut self) -> Duration {
        let lasts = self.between(0.8, 1.2);
        let dying = match self.rng.bool() {
            true => self.few_clients(),
            false => vec![self.rng.usize(..self.setting.clients)],
        };
        for client in dying {
            self.push(0.0, lasts, Fault::Crash(client));
        }
        self.after(lasts)
    }

    /// One client, or up to half of them.
    fn few_clients(&mut self) -> Vec<usize> {
        let mut clients: Vec<usize> = (0..self.setting.clients).collect();
        self.rng.shuffle(&mut clients);
        clients.truncate(self.rng.usize(1..=self.setting.clients.div_ceil(2)));
        clients
    }

    /// A random subset of the clients.
    fn some_clients(&mut self) -> Vec<usize> {
        (0..self.setting.clients).filter(|_| self.rng.bool()).collect()
    }

    fn cut(&mut self, client: usize, at: f64, lasts: f64, disturbance: Disturbance) {
        self.push(at, lasts, Fault::Link(Link { client, server: None }, disturbance));
    }

    fn push(&mut self, at: f64, lasts: f64, fault: Fault) {
        let planned = Planned { at: self.after(at), lasts: self.setting.timeout.mul_f64(lasts), fault };
        self.plan.push(planned);
    }

    fn after(&self, timeouts: f64) -> Duration {
        self.begin + self.setting.timeout.mul_f64(timeouts)
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.rng.f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    /// The plans of all runs with this theme among the first 400, each with its setting.
    fn plans(theme: Theme) -> Vec<(Setting, Vec<Planned>)> {
        let setting = |seed: u64| {
            let arguments = ["--seed".to_owned(), seed.to_string()];
            let options = Options::parse(arguments.into_iter()).expect("the arguments are valid");
            Setting::draw(&options, &mut Rng::with_seed(seed))
        };
        let settings = (0..400).map(setting).filter(|setting| Theme::of(setting) == Some(theme));
        settings.map(|setting| (setting.clone(), theme.plan(&setting))).collect()
    }

    /// Begin and end of the faults of a kind.
    fn spans(plan: &[Planned], is: impl Fn(&Fault) -> bool) -> Vec<(Duration, Duration)> {
        let those = plan.iter().filter(|planned| is(&planned.fault));
        those.map(|planned| (planned.at, planned.at + planned.lasts)).collect()
    }

    fn is_cut(fault: &Fault) -> bool {
        matches!(fault, Fault::Link(..))
    }

    #[test]
    fn few_runs_have_a_theme_and_repeat_it() {
        for theme in [Theme::SmallerTimeouts, Theme::GivenUpAlive] {
            let plans = plans(theme);
            assert!((20..60).contains(&plans.len()), "{} of 400 runs have {theme:?}", plans.len());
            for (setting, plan) in plans {
                assert_eq!(theme.plan(&setting), plan);
                assert!(spans(&plan, |fault| *fault == Fault::Bounce).len() > 1, "seed {}", setting.seed);
                assert!(plan.iter().any(|planned| is_cut(&planned.fault)), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn sessions_are_resumed_with_a_smaller_timeout_before_their_clients_are_cut_off_for_longer_than_that() {
        for (setting, plan) in plans(Theme::SmallerTimeouts) {
            let short = spans(&plan, |fault| matches!(fault, Fault::ShortTimeouts(_)));
            let outages = spans(&plan, |fault| *fault == Fault::Bounce);
            for (begins, ends) in spans(&plan, is_cut) {
                let (from, to) = short.iter().rfind(|(from, _)| *from < begins).expect("a smaller timeout");
                let reconnected = outages.iter().any(|(at, end)| at > from && *end < begins);
                assert!(reconnected && ends < *to, "seed {}", setting.seed);
                assert!(ends - begins > setting.timeout.mul_f64(0.7), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn a_follower_repeatedly_loses_its_leader_and_finds_it_before_it_gives_up() {
        let plans = plans(Theme::LateWrites);
        assert!((20..60).contains(&plans.len()), "{} of 400 runs", plans.len());
        let mut longer = 0;
        for (setting, plan) in &plans {
            assert!(setting.relay.is_some() && plan.len() > 2, "seed {}", setting.seed);
            let cuts = spans(plan, |fault| *fault == Fault::CutOffHolding);
            assert!(cuts.iter().all(|(from, to)| *to - *from < setting.sync_limit), "seed {}", setting.seed);
            longer += usize::from(cuts.iter().any(|(from, to)| *to - *from > setting.timeout.mul_f64(0.5)));
        }
        assert!(
            longer > plans.len() / 2,
            "{longer} of {} leave clients the time to move elsewhere",
            plans.len()
        );
    }

    #[test]
    fn a_follower_loses_its_leader_right_after_its_clients_were_paused() {
        let plans = plans(Theme::StallThenCutOff);
        assert!((8..30).contains(&plans.len()), "{} of 400 runs", plans.len());
        for (setting, plan) in plans {
            assert_eq!(Theme::StallThenCutOff.plan(&setting), plan);
            let mut cuts = 0;
            for planned in &plan {
                let Fault::CutOffAtGrant(clients) = &planned.fault else { continue };
                assert!((1..=setting.clients.div_ceil(2)).contains(&clients.len()), "seed {}", setting.seed);
                for client in clients {
                    let before = |(from, to): &(Duration, Duration)| {
                        *from < planned.at && to.abs_diff(planned.at) < Duration::from_millis(1)
                    };
                    let stalls = spans(&plan, |fault| *fault == Fault::Freeze(*client));
                    let (from, to) = *stalls.iter().find(|stall| before(stall)).expect("it was paused");
                    assert!(to - from + setting.tick < setting.timeout, "seed {}", setting.seed);
                    let to_leader = Link { client: *client, server: Some(0) };
                    let outages = spans(&plan, |fault| *fault == Fault::Link(to_leader, Disturbance::Cut));
                    let (moved, _) =
                        *outages.iter().find(|outage| before(outage)).expect("it moved to the follower");
                    assert!(from - moved > setting.timeout / 2, "seed {}", setting.seed);
                }
                cuts += 1;
            }
            assert!(cuts > 1, "seed {}", setting.seed);
        }
    }

    #[test]
    fn clients_crash_in_sequence_or_together_and_only_if_the_theme_requests_that() {
        assert!(plans(Theme::Deaths).is_empty());
        for (setting, _) in plans(Theme::StolenClaims) {
            let deaths = spans(&Theme::Deaths.plan(&setting), |fault| matches!(fault, Fault::Crash(_)));
            assert!(deaths.len() > 1, "seed {}", setting.seed);
            let in_sequence = |pair: &[(Duration, Duration)]| pair[0] == pair[1] || pair[0].1 < pair[1].0;
            assert!(deaths.windows(2).all(in_sequence), "seed {}", setting.seed);
        }
    }

    #[test]
    fn claims_are_stolen_while_their_clients_are_cut_off() {
        let plans = plans(Theme::StolenClaims);
        assert!((20..60).contains(&plans.len()), "{} of 400 runs", plans.len());
        for (setting, plan) in plans {
            let cuts = spans(&plan, is_cut);
            for (at, _) in spans(&plan, |fault| matches!(fault, Fault::Steal(_))) {
                assert!(cuts.iter().any(|(from, to)| (*from..*to).contains(&at)), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn claims_are_stolen_while_their_processes_are_paused_and_leases_last() {
        let plans = plans(Theme::StolenFromStalled);
        assert!((20..60).contains(&plans.len()), "{} of 400 runs", plans.len());
        for (setting, plan) in plans {
            let stalls = spans(&plan, |fault| matches!(fault, Fault::Freeze(_)));
            assert!(
                stalls.iter().all(|(from, to)| *to - *from < setting.timeout / 3),
                "seed {}",
                setting.seed
            );
            for (at, _) in spans(&plan, |fault| matches!(fault, Fault::Steal(_))) {
                assert!(stalls.iter().any(|(from, to)| (*from..*to).contains(&at)), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn servers_stop_before_they_end_a_session_and_return_after_it_was_given_up() {
        for (setting, plan) in plans(Theme::GivenUpAlive) {
            let outages = spans(&plan, |fault| *fault == Fault::Bounce);
            assert!(outages.iter().all(|(at, end)| *end - *at > setting.timeout.mul_f64(1.5)));
            for (begins, ends) in spans(&plan, is_cut) {
                // The plan omits faults that would begin after the end of all faults.
                let Some((at, _)) = outages.iter().find(|(at, _)| *at > begins) else { continue };
                assert!(*at - begins < setting.timeout.mul_f64(0.7) && ends > *at, "seed {}", setting.seed);
            }
        }
    }
}
