use crate::setting::{Setting, apart};
use crate::theme::Theme;
use crate::trap::{Bait, Effect, Trap};
use docent_proto::OpCode;
use fastrand::Rng;
use std::time::Duration;

/// A fault that is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    /// When it begins.
    pub(crate) at: Duration,
    /// Duration of the fault; zero for a momentary fault.
    pub(crate) lasts: Duration,
    /// The fault itself.
    pub(crate) fault: Fault,
}

/// A fault and what it affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A disturbance of the network between a client and servers.
    Link(Link, Disturbance),
    /// A client's process is paused.
    Freeze(usize),
    /// A client's process dies, and a new one is started.
    Crash(usize),
    /// A client's request triggers a trap.
    Trap(usize, Trap),
    /// The server ends a client's session.
    Expire(usize),
    /// A server reports that a client's session is over, although the session lives.
    Deny(usize),
    /// An operator deletes a client's latest node, or the first node of its line.
    Delete(usize, bool),
    /// An operator deletes all claims of a client.
    Steal(usize),
    /// All servers are down for a while.
    Bounce,
    /// The servers grant at most this timeout to clients that open or resume a session.
    ShortTimeouts(Duration),
    /// The follower loses its leader, and all requests that it forwards are lost.
    CutOff,
    /// The follower loses its leader as soon as something is granted to one of these clients, if that happens
    /// within a tick.
    CutOffAtGrant(Vec<usize>),
    /// The follower loses its leader, which receives the forwarded requests when the fault ends.
    CutOffHolding,
}

/// A client's links: to all servers, or to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) client: usize,
    pub(crate) server: Option<usize>,
}

/// Disturbance of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// All messages are lost.
    Cut,
    /// Messages from the client are lost.
    CutToServer,
    /// Messages from the server are lost.
    CutToClient,
    /// Messages are held back.
    Hold,
    /// Messages are delayed by this time.
    Slow(Duration),
}

/// Kind of faults: draws a fault that affects the client with this number.
type Kind = fn(&Setting, &mut Rng, usize) -> Fault;

/// Lanes of kinds of faults. Faults of one lane exclude each other. Faults of different lanes can happen at
/// the same time.
const LANES: &[&[Kind]] = &[NETWORK, PROCESS, REQUESTS, SESSION];

const NETWORK: &[Kind] = &[
    |setting, rng, client| disturbed(setting, rng, client, Disturbance::Cut),
    |setting, rng, client| disturbed(setting, rng, client, Disturbance::CutToServer),
    |setting, rng, client| disturbed(setting, rng, client, Disturbance::CutToClient),
    |setting, rng, client| disturbed(setting, rng, client, Disturbance::Hold),
    |setting, rng, client| {
        let slow = Disturbance::Slow(setting.timeout.mul_f64(0.2 * rng.f64()));
        disturbed(setting, rng, client, slow)
    },
];

const PROCESS: &[Kind] = &[|_, _, client| Fault::Freeze(client), |_, _, client| Fault::Crash(client)];

const REQUESTS: &[Kind] = &[
    |_, rng, client| Fault::Trap(client, trap(rng, Effect::ResetBefore)),
    |_, rng, client| Fault::Trap(client, trap(rng, Effect::ResetAfter)),
    |_, rng, client| Fault::Trap(client, trap(rng, Effect::Swallow)),
];

const SESSION: &[Kind] =
    &[|_, _, client| Fault::Expire(client), |_, rng, client| Fault::Delete(client, rng.bool())];

impl Fault {
    /// Returns false for a momentary fault.
    fn lasts(&self) -> bool {
        !matches!(self, Self::Trap(..) | Self::Expire(_) | Self::Deny(_) | Self::Delete(..) | Self::Steal(_))
    }
}

/// Draws all faults of a run, ordered by time.
///
/// These are the faults of the run's theme, which the workload requested or which was drawn. Without a theme,
/// only some kinds of faults are used, so that rare combinations are not hidden by the others.
pub(crate) fn draw(setting: &Setting, requested_theme: Option<Theme>, rng: &mut Rng) -> Vec<Planned> {
    if let Some(theme) = requested_theme.or_else(|| Theme::of(setting)) {
        return theme.plan(setting);
    }
    let mut plan = Vec::new();
    for lane in LANES {
        let kinds: Vec<Kind> = lane.iter().copied().filter(|_| rng.u8(..5) < 3).collect();
        if kinds.is_empty() {
            continue;
        }
        for client in 0..setting.clients {
            let mut rng = rng.fork();
            fill(setting, &mut rng, &mut plan, |rng| {
                let kind = kinds[rng.usize(..kinds.len())];
                strike(setting, rng, kind, client)
            });
        }
    }
    for fault in common_faults(setting, rng) {
        let mut rng = rng.fork();
        fill(setting, &mut rng, &mut plan, |rng| {
            // The longer its clients rely on a follower without a leader, the more harm it does.
            let longer = rng.bool() && matches!(fault, Fault::CutOff | Fault::CutOffHolding);
            (
                fault.clone(),
                if longer { setting.timeout.mul_f64(1.0 + 2.0 * rng.f64()) } else { setting.span(rng) },
            )
        });
    }
    // If the servers differ, the outcome of a write is hard to determine.
    if setting.lag.is_some() && rng.bool() {
        for client in 0..setting.clients {
            let mut rng = rng.fork();
            fill(setting, &mut rng, &mut plan, |rng| (lost_reply(rng, client), Duration::ZERO));
        }
    }
    // A client that relies on the zxid of events may assume after the first of several events of a
    // transaction that it has seen all of them.
    let mut rng = apart(setting.seed, *b"\0between");
    if setting.zxid_in_events && rng.bool() {
        for client in 0..setting.clients {
            let mut rng = rng.fork();
            fill(setting, &mut rng, &mut plan, |rng| {
                let trap = Trap::new(Bait::NextEvent, rng.u32(1..=2), Effect::ResetAfter);
                (Fault::Trap(client, trap), Duration::ZERO)
            });
        }
    }
    // A leader that has lost its followers expires sessions by its own clock, and the next leader does not
    // know of that.
    let mut rng = apart(setting.seed, *b"\0\0denied");
    if rng.u8(..3) == 0 {
        for client in 0..setting.clients {
            let mut rng = rng.fork();
            fill(setting, &mut rng, &mut plan, |_| (Fault::Deny(client), Duration::ZERO));
        }
    }
    plan.sort_by_key(|planned| planned.at);
    plan
}

/// Faults of the observers: all kinds except deletions, which would affect other clients.
pub(crate) fn of_observers(setting: &Setting, count: u32, rng: &mut Rng) -> Vec<Planned> {
    let mut plan = Vec::new();
    let observers = 0..usize::try_from(count).unwrap_or(0);
    for (lane, observer) in [NETWORK, PROCESS, REQUESTS, &SESSION[..1]]
        .into_iter()
        .flat_map(|lane| observers.clone().map(move |n| (lane, n)))
    {
        let mut rng = rng.fork();
        fill(setting, &mut rng, &mut plan, |rng| {
            let kind = lane[rng.usize(..lane.len())];
            strike(setting, rng, kind, observer)
        });
    }
    plan.sort_by_key(|planned| planned.at);
    plan
}

/// Faults that affect all clients.
fn common_faults(setting: &Setting, rng: &mut Rng) -> Vec<Fault> {
    let mut faults = Vec::new();
    if rng.u8(..5) < 2 {
        faults.push(Fault::Bounce);
    }
    if rng.u8(..5) < 2 {
        faults.push(Fault::ShortTimeouts(setting.timeout.mul_f64(0.4 + 0.5 * rng.f64())));
    }
    if setting.relay.is_some() && rng.u8(..4) < 3 {
        faults.push(if holds(setting) { Fault::CutOffHolding } else { Fault::CutOff });
    }
    faults
}

/// Returns whether requests that a cut-off follower forwards are late instead of lost. Drawn separately, so
/// that other draws stay the same.
fn holds(setting: &Setting) -> bool {
    apart(setting.seed, *b"\0\0\0\0hold").bool()
}

/// Adds one fault after the other, as long as faults may happen.
fn fill(
    setting: &Setting,
    rng: &mut Rng,
    plan: &mut Vec<Planned>,
    mut next: impl FnMut(&mut Rng) -> (Fault, Duration),
) {
    let mut at = setting.pause(rng);
    while at < setting.turbulence {
        let (fault, lasts) = next(rng);
        plan.push(Planned { at, lasts, fault });
        at += lasts + setting.pause(rng);
    }
}

fn strike(setting: &Setting, rng: &mut Rng, kind: Kind, client: usize) -> (Fault, Duration) {
    let lasts = setting.span(rng);
    let fault = kind(setting, rng, client);
    let lasts = if fault.lasts() { lasts } else { Duration::ZERO };
    (fault, lasts)
}

/// A disturbance of a client's links to all servers, or to one of them.
fn disturbed(setting: &Setting, rng: &mut Rng, client: usize, disturbance: Disturbance) -> Fault {
    let servers = if setting.relay.is_some() { 2 } else { 1 };
    let server = (rng.u8(..3) == 0).then(|| rng.usize(..servers));
    Fault::Link(Link { client, server }, disturbance)
}

/// A write is applied and its reply lost, so that its client continues at a server that may not know of the
/// write yet.
fn lost_reply(rng: &mut Rng, client: usize) -> Fault {
    let op = if rng.u8(..4) == 0 { OpCode::Multi } else { OpCode::Create2 };
    let effect = if rng.u8(..4) == 0 { Effect::Swallow } else { Effect::ResetAfter };
    Fault::Trap(client, Trap::new(Bait::Op(op), rng.u32(1..=3), effect))
}

fn trap(rng: &mut Rng, effect: Effect) -> Trap {
    let bait = match rng.u8(..10) {
        0 => Bait::Handshake,
        1 | 2 => Bait::Any,
        3..=5 => Bait::Op(OpCode::Create2),
        6 => Bait::Op(OpCode::Delete),
        7 => Bait::Op(OpCode::Multi),
        8 => Bait::Op(OpCode::GetData),
        _ => Bait::Op(OpCode::GetChildren2),
    };
    Trap::new(bait, rng.u32(1..=4), effect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn options(seed: u64) -> Options {
        let arguments = ["--seed".to_owned(), seed.to_string()];
        Options::parse(arguments.into_iter()).expect("the arguments are valid")
    }

    fn draw_from(seed: u64) -> (Setting, Vec<Planned>) {
        let mut rng = Rng::with_seed(seed);
        let setting = Setting::draw(&options(seed), &mut rng);
        let plan = draw(&setting, None, &mut rng);
        (setting, plan)
    }

    #[test]
    fn a_plan_repeats_and_is_in_order() {
        for seed in 0..200 {
            let (setting, plan) = draw_from(seed);
            assert_eq!(draw_from(seed).1, plan);
            assert!(plan.is_sorted_by_key(|planned| planned.at));
            assert!(plan.iter().all(|planned| planned.at < setting.turbulence));
        }
    }

    #[test]
    fn faults_of_one_lane_do_not_overlap_at_a_client() {
        for seed in 0..200 {
            let (setting, plan) = draw_from(seed);
            for client in 0..setting.clients {
                let strikes = |fault: &Fault| matches!(fault, Fault::Link(link, _) if link.client == client);
                let at_client = plan.iter().filter(|planned| strikes(&planned.fault));
                let strikes: Vec<_> = at_client.map(|planned| (planned.at, planned.lasts)).collect();
                assert!(strikes.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "seed {seed}");
            }
        }
    }

    #[test]
    fn if_a_follower_lags_replies_are_lost_in_addition_to_other_faults() {
        let (mut lagging, mut with) = (0, 0);
        for seed in 0..300 {
            let (setting, mut plan) = draw_from(seed);
            let Some(_) = setting.lag else { continue };
            assert!(setting.relay.is_some(), "seed {seed}: no server could lag");
            let prompt = Setting { lag: None, ..setting };
            let mut rng = Rng::with_seed(seed);
            Setting::draw(&options(seed), &mut rng);
            for fault in draw(&prompt, None, &mut rng) {
                let same = plan.iter().position(|planned| *planned == fault);
                plan.remove(same.expect("a lag removes no fault"));
            }
            assert!(plan.iter().all(|planned| matches!(planned.fault, Fault::Trap(..))), "seed {seed}");
            lagging += 1;
            with += u32::from(!plan.is_empty());
        }
        assert!(with > 8 && lagging - with > 20, "{with} of {lagging}, most of which have a theme");
    }

    #[test]
    fn every_kind_of_fault_is_drawn() {
        let mut kinds = std::collections::BTreeSet::new();
        for planned in (0..200).flat_map(|seed| draw_from(seed).1) {
            let kind = match planned.fault {
                Fault::Link(_, disturbance) => format!("{disturbance:?}"),
                fault => format!("{fault:?}"),
            };
            kinds.insert(kind.split(['(', ' ']).next().unwrap_or_default().to_owned());
        }
        let all = "Bounce Crash Cut CutOff CutOffAtGrant CutOffHolding CutToClient CutToServer Delete Deny Expire Freeze Hold ShortTimeouts Slow Steal Trap";
        assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), all);
    }
}
