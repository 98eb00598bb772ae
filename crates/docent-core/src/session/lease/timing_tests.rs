use super::*;
use proptest::prelude::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ticks from 10 ms to 10 s, and timeouts from four ticks to minutes.
fn timings() -> impl Strategy<Value = Timing> {
    (10_u64..=10_000).prop_flat_map(|tick| {
        (tick * 4..=tick * 4 + 300_000)
            .prop_map(move |timeout| Timing { timeout: millis(timeout), tick: millis(tick) })
    })
}

/// Delays of a request, in thousandths of the allowed maximum.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Pause from the previous request to this one.
    pause: u32,
    /// Time from sending the request until the server receives it.
    to_server: u32,
    /// Time from receiving the request until the client has the answer.
    to_client: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let part = || prop_oneof![3 => 0..=1_000_u32, 1 => Just(0_u32), 1 => Just(1_000_u32)];
    let step = (part(), part(), part()).prop_map(|(pause, to_server, to_client)| Step {
        pause,
        to_server,
        to_client,
    });
    prop::collection::vec(step, 1..40)
}

fn part_of(whole: Duration, thousandths: u32) -> Duration {
    whole / 1_000 * thousandths
}

/// A request: when it was sent, received and answered.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    sent: Timestamp,
    received: Timestamp,
    answered: Timestamp,
}

/// Requests up to `longest` apart, each answered before its link would be abandoned as silent.
fn requests(timing: Timing, steps: &[Step], longest: Duration) -> Vec<Exchange> {
    let mut now = Timestamp::default() + timing.timeout;
    let mut last_answer = now;
    let step = |step: &Step| {
        now = now + part_of(longest, step.pause);
        let received = now + part_of(timing.silence() / 2, step.to_server);
        last_answer = last_answer.max(received + part_of(timing.silence() / 2, step.to_client));
        Exchange { sent: now, received, answered: last_answer }
    };
    steps.iter().map(step).collect()
}

/// Returns the send time of the newest request that had been answered for a relay at `sent`. The first
/// request attached the session.
fn contact_by(timing: Timing, requests: &[Exchange], sent: Timestamp) -> Timestamp {
    let relayed_at = |request: &&Exchange| request.answered + timing.relay() <= sent;
    requests
        .iter()
        .skip(1)
        .filter(relayed_at)
        .map(|request| request.sent)
        .chain([requests[0].sent])
        .max()
        .unwrap_or_default()
}

proptest! {
    /// The server is cut off from its leader right after it forwarded the last request, which is a write.
    #[test]
    fn a_lease_ends_before_the_leader_can_end_the_session(
        timing in timings(),
        steps in steps(),
        phase in 0..1_000_u32,
    ) {
        let requests = requests(timing, &steps, timing.timeout);
        let (write, before) = requests.split_last().unwrap();
        if before.is_empty() {
            return Ok(());
        }
        // The leader learns immediately of the session when it is attached, and then at each relay of the
        // requests received until that relay.
        let first_relay = part_of(timing.relay(), phase);
        let relayed_at = |received: Timestamp| {
            let since = received.since(Timestamp::default() + first_relay).as_nanos();
            let relays = since.div_ceil(timing.relay().as_nanos());
            let relay = u32::try_from(relays).unwrap();
            Timestamp::default() + first_relay + timing.relay() * relay
        };
        let relayed = before.iter().filter(|request| relayed_at(request.received) <= write.received);
        let last_contact = relayed.map(|request| request.received).chain([requests[0].sent]).max().unwrap();
        let proof = timing.proof(write.sent, contact_by(timing, before, write.sent));
        prop_assert!(timing.lease_end(proof) + SLACK <= last_contact + timing.timeout);
    }

    /// Holds as long as the client keeps its pulse and answers are not late.
    #[test]
    fn a_client_in_time_has_the_whole_lease_after_each_write(timing in timings(), steps in steps()) {
        let prompt: Vec<_> = steps.iter().map(|step| Step { to_server: 0, to_client: 0, ..*step }).collect();
        let requests = requests(timing, &prompt, timing.pulse());
        let write = requests[requests.len() - 1];
        prop_assert_eq!(timing.proof(write.sent, contact_by(timing, &requests, write.sent)), write.sent);
    }

    /// After the longest silence that a link survives, a lease lasts beyond the time at which the next write
    /// is due.
    #[test]
    fn every_pace_follows_from_the_margin(timing in timings()) {
        let sent = Timestamp::default() + timing.timeout * 10;
        let lateness = timing.silence() - timing.pulse();
        prop_assert!(timing.margin() >= timing.pulse() + timing.relay() + SLACK);
        prop_assert!(timing.margin() >= timing.silence());
        prop_assert!(lateness >= timing.timeout / 7, "a slightly late request costs the link");
        let received = sent - timing.silence() - timing.relay();
        let left = timing.lease_end(timing.proof(sent, received)).since(sent);
        prop_assert!(left + SLACK >= timing.timeout * 5 / 12 - Duration::from_nanos(10));
        prop_assert!(left + SLACK >= timing.pulse() * 2);
    }

    /// If a timeout of few ticks is accepted, its lease is short, and never longer than `received` allows.
    #[test]
    fn a_timeout_of_few_ticks_has_an_equally_safe_lease(tick in 10_u64..=10_000, part in 1_u64..=400) {
        let timing = Timing { timeout: millis(tick * part / 100), tick: millis(tick) };
        let sent = Timestamp::default() + timing.timeout * 10;
        let received = sent - timing.relay() - timing.pulse();
        prop_assert!(timing.lease_end(timing.proof(sent, received)) <= (received + timing.timeout).max(sent));
    }
}

#[test]
fn the_margin_is_a_third_or_what_a_pulse_and_a_relay_may_hide() {
    let margin = |timeout, tick| Timing { timeout: millis(timeout), tick: millis(tick) }.margin();
    assert_eq!(margin(30_000, 1_000), millis(10_000));
    assert_eq!(margin(6_000, 2_000), millis(3_100));
}

#[test]
fn no_duration_is_too_long() {
    let timing = Timing { timeout: Duration::MAX, tick: Duration::MAX };
    assert_eq!(timing.margin(), Duration::MAX);
    assert_eq!(timing.lease_end(Timestamp::default()), Timestamp::default());
}
