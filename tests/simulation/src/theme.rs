//! Faults that do harm only one after the other, in an order that single draws hardly ever come upon.

use crate::plan::{Disturbance, Fault, Link, Planned};
use crate::setting::Setting;
use fastrand::Rng;
use std::time::Duration;

/// Theme of all faults of a run, in some runs: one sequence, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Sessions are taken up anew with a smaller timeout, and then some of their clients hear nothing for
    /// about the larger one: the servers end sessions earlier than their clients were told at first.
    SmallerTimeouts,
    /// Some clients hear nothing of their writes, and then the servers are away for so long that sessions are
    /// given up. When the servers come back these sessions are alive, with all that was written in them.
    GivenUpAlive,
    /// The follower loses its leader for as long as it takes clients to go to the leader themselves, and
    /// delivers then the requests that they had sent through it.
    LateWrites,
    /// Some clients that came to the follower stand still for most of a timeout, and the follower loses its
    /// leader as soon as something is granted to one of them after that: their writes were applied, and the
    /// leader is not told that they were heard.
    StallThenCutOff,
    /// Some clients are cut off for a part of a timeout, and meanwhile an operator deletes their claims, so
    /// that others can make the same.
    StolenClaims,
    /// Some processes stand still for a part of a timeout, and meanwhile an operator deletes their claims.
    /// Their sessions and links live on.
    StolenFromStalled,
    /// One client after the other dies, or several together, with nothing else wrong: their places in lines
    /// stay until the servers end their sessions. Only for workloads that ask for it.
    Deaths,
}

impl Theme {
    /// The theme of a run, in a few of them. Drawn apart from all else, so that runs without one are as if
    /// there were none.
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
            // Time for new sessions, and for holds to begin.
            begin = ends + setting.timeout.mul_f64(1.0 + 2.0 * rng.f64());
        }
        plan.retain(|planned| planned.at < setting.turbulence);
        plan.sort_by_key(|planned| planned.at);
        plan
    }
}

/// True when there is a follower that goes on for longer without its leader than it takes clients to leave a
/// link after a third of their timeout, to ask the follower once more, and to find the nodes that they look
/// for at the leader.
fn outlasts_clients(setting: &Setting) -> bool {
    setting.relay.is_some() && setting.sync_limit > setting.timeout.mul_f64(0.8)
}

/// Position of the leader among the servers.
const LEADER: usize = 0;

fn rng(setting: &Setting) -> Rng {
    Rng::with_seed(setting.seed ^ u64::from_be_bytes(*b"\0\0\0story"))
}

/// One sequence of faults. Times are counted from its begin, in timeouts.
struct Sequence<'a> {
    setting: &'a Setting,
    begin: Duration,
    rng: Rng,
    plan: &'a mut Vec<Planned>,
}

impl Sequence<'_> {
    /// Returns when it is over, as do the others.
    fn smaller_timeouts(&mut self) -> Duration {
        let granted = self.between(0.4, 0.6);
        self.push(0.0, 2.5, Fault::ShortTimeouts(self.setting.timeout.mul_f64(granted)));
        // All attach anew.
        self.push(0.01, 0.05, Fault::Bounce);
        let cut = self.between(0.4, 0.8);
        for client in self.some_clients() {
            let (at, lasts) = (cut + self.between(0.0, 0.2), self.between(0.8, 1.3));
            self.cut(client, at, lasts, Disturbance::Cut);
        }
        self.after(2.5)
    }

    fn given_up_alive(&mut self) -> Duration {
        let away = self.between(0.3, 0.8);
        for client in self.some_clients() {
            // For less than it takes the servers to end the session, which hears nothing of that.
            let at = away - self.between(0.1, 0.6).min(away);
            self.cut(client, at, away - at + 0.1, Disturbance::CutToClient);
        }
        let lasts = self.between(1.6, 2.2);
        self.push(away, lasts, Fault::Bounce);
        self.after(away + lasts)
    }

    fn late_writes(&mut self) -> Duration {
        // A follower gives up at its limit, and nothing is late then.
        let limit = self.setting.sync_limit.div_duration_f64(self.setting.timeout);
        let (begin, lasts) = (0.6, self.between(0.5, 1.6).min(0.95 * limit));
        self.push(begin, lasts, Fault::CutOffHolding);
        for client in self.some_clients() {
            // These are at the follower, and ask it for their sessions once more, before they find the
            // leader.
            let ends = begin + lasts * self.between(0.5, 0.8);
            self.push(0.0, ends, Fault::Link(Link { client, server: Some(LEADER) }, Disturbance::Cut));
        }
        self.after(begin + lasts)
    }

    fn stall_then_cut_off(&mut self) -> Duration {
        let stand_still = self.between(0.6, 0.8);
        // A stall of the whole timeout ends sessions before anything is granted.
        let spare = (self.setting.tick + Duration::from_millis(100)).div_duration_f64(self.setting.timeout);
        let goes_on = stand_still + self.between(0.65, 0.95) * (1.0 - spare);
        let clients = self.few_clients();
        for client in clients.clone() {
            // Long enough that it goes to the follower.
            self.push(0.0, goes_on, Fault::Link(Link { client, server: Some(0) }, Disturbance::Cut));
            self.push(stand_still, goes_on - stand_still, Fault::Freeze(client));
        }
        let lasts = self.between(0.7, 1.1);
        self.push(goes_on, lasts, Fault::CutOffAtGrant(clients));
        self.after(goes_on + lasts)
    }

    fn stolen_claims(&mut self) -> Duration {
        // Long enough that links are given up, and not that leases are over.
        let lasts = self.between(0.35, 0.5);
        for client in self.some_clients() {
            self.cut(client, 0.0, lasts, Disturbance::Cut);
            let at = self.between(0.02, 0.2);
            self.push(at, 0.0, Fault::Steal(client));
        }
        self.after(lasts)
    }

    fn stolen_from_stalled(&mut self) -> Duration {
        // Short enough that leases and links last.
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

    /// Each client or not.
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

    /// The plans of all runs with a theme among the first 400, each with its setting.
    fn plans(theme: Theme) -> Vec<(Setting, Vec<Planned>)> {
        let setting = |seed: u64| {
            let arguments = ["--seed".to_owned(), seed.to_string()];
            let options = Options::parse(arguments.into_iter()).expect("a seed is enough");
            Setting::draw(&options, &mut Rng::with_seed(seed))
        };
        let settings = (0..400).map(setting).filter(|setting| Theme::of(setting) == Some(theme));
        settings.map(|setting| (setting.clone(), theme.plan(&setting))).collect()
    }

    /// The faults of a kind: when they begin and when they end.
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
            assert!((20..60).contains(&plans.len()), "{} of 400 runs are about {theme:?}", plans.len());
            for (setting, plan) in plans {
                assert_eq!(theme.plan(&setting), plan);
                assert!(spans(&plan, |fault| *fault == Fault::Bounce).len() > 1, "seed {}", setting.seed);
                assert!(plan.iter().any(|planned| is_cut(&planned.fault)), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn sessions_are_taken_up_with_a_smaller_timeout_before_their_clients_hear_nothing_for_longer_than_that() {
        for (setting, plan) in plans(Theme::SmallerTimeouts) {
            let short = spans(&plan, |fault| matches!(fault, Fault::ShortTimeouts(_)));
            let away = spans(&plan, |fault| *fault == Fault::Bounce);
            for (begins, ends) in spans(&plan, is_cut) {
                let (from, to) = short.iter().rfind(|(from, _)| *from < begins).expect("that comes first");
                let anew = away.iter().any(|(at, back)| at > from && *back < begins);
                assert!(anew && ends < *to, "seed {}", setting.seed);
                assert!(ends - begins > setting.timeout.mul_f64(0.7), "seed {}", setting.seed);
            }
        }
    }

    #[test]
    fn a_follower_loses_its_leader_again_and_again_and_finds_it_before_it_gives_up() {
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
            "{longer} of {} leave clients the time to go elsewhere",
            plans.len()
        );
    }

    #[test]
    fn a_follower_loses_its_leader_right_after_clients_stood_still_there() {
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
                    let (from, to) = *stalls.iter().find(|stall| before(stall)).expect("it stood still");
                    assert!(to - from + setting.tick < setting.timeout, "seed {}", setting.seed);
                    let to_leader = Link { client: *client, server: Some(0) };
                    let away = spans(&plan, |fault| *fault == Fault::Link(to_leader, Disturbance::Cut));
                    let (left, _) = *away.iter().find(|away| before(away)).expect("it came to the follower");
                    assert!(from - left > setting.timeout / 2, "seed {}", setting.seed);
                }
                cuts += 1;
            }
            assert!(cuts > 1, "seed {}", setting.seed);
        }
    }

    #[test]
    fn clients_die_one_after_the_other_or_together_and_only_where_that_is_asked_for() {
        assert!(plans(Theme::Deaths).is_empty());
        for (setting, _) in plans(Theme::StolenClaims) {
            let deaths = spans(&Theme::Deaths.plan(&setting), |fault| matches!(fault, Fault::Crash(_)));
            assert!(deaths.len() > 1, "seed {}", setting.seed);
            let in_turn = |pair: &[(Duration, Duration)]| pair[0] == pair[1] || pair[0].1 < pair[1].0;
            assert!(deaths.windows(2).all(in_turn), "seed {}", setting.seed);
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
    fn claims_are_stolen_while_their_processes_stand_still_and_leases_last() {
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
    fn servers_go_away_before_they_end_a_session_and_come_back_after_it_was_given_up() {
        for (setting, plan) in plans(Theme::GivenUpAlive) {
            let away = spans(&plan, |fault| *fault == Fault::Bounce);
            assert!(away.iter().all(|(at, back)| *back - *at > setting.timeout.mul_f64(1.5)));
            for (begins, ends) in spans(&plan, is_cut) {
                // Faults that would strike later than faults last are not in the plan.
                let Some((at, _)) = away.iter().find(|(at, _)| *at > begins) else { continue };
                assert!(*at - begins < setting.timeout.mul_f64(0.7) && ends > *at, "seed {}", setting.seed);
            }
        }
    }
}
