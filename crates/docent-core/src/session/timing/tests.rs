use super::*;
use proptest::prelude::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ticks from 10 ms to 10 s, and timeouts from four of them to minutes.
fn timings() -> impl Strategy<Value = Timing> {
    (10_u64..=10_000).prop_flat_map(|tick| {
        (tick * 4..=tick * 4 + 300_000)
            .prop_map(move |timeout| Timing { timeout: millis(timeout), tick: millis(tick) })
    })
}

/// Delays of a request, in thousandths of the most that is allowed.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Pause from the last request to this one.
    pause: u32,
    /// Time from the request to the server's hearing of it.
    there: u32,
    /// Time from that to the answer.
    back: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let part = || prop_oneof![3 => 0..=1_000_u32, 1 => Just(0_u32), 1 => Just(1_000_u32)];
    let step = (part(), part(), part()).prop_map(|(pause, there, back)| Step { pause, there, back });
    prop::collection::vec(step, 1..40)
}

fn part_of(whole: Duration, thousandths: u32) -> Duration {
    whole / 1_000 * thousandths
}

/// A request: when it was sent, heard and answered.
#[derive(Debug, Clone, Copy)]
struct Asked {
    sent: Timestamp,
    heard: Timestamp,
    answered: Timestamp,
}

/// Requests up to `longest` apart, each of which is answered before its link would be left as silent.
fn asked(timing: Timing, steps: &[Step], longest: Duration) -> Vec<Asked> {
    let mut now = Timestamp::default() + timing.timeout;
    let mut last_answer = now;
    let step = |step: &Step| {
        now = now + part_of(longest, step.pause);
        let heard = now + part_of(timing.silence() / 2, step.there);
        last_answer = last_answer.max(heard + part_of(timing.silence() / 2, step.back));
        Asked { sent: now, heard, answered: last_answer }
    };
    steps.iter().map(step).collect()
}

/// The send time of the newest request that had been answered for a relay by `sent`. The first one attached
/// the session.
fn heard_by(timing: Timing, asked: &[Asked], sent: Timestamp) -> Timestamp {
    let told = |asked: &&Asked| asked.answered + timing.relay() <= sent;
    asked.iter().skip(1).filter(told).map(|asked| asked.sent).chain([asked[0].sent]).max().unwrap_or_default()
}

proptest! {
    /// The server is cut off from its leader right after it passed the last request on, which is a write.
    #[test]
    fn a_lease_ends_before_the_leader_can_end_the_session(
        timing in timings(),
        steps in steps(),
        phase in 0..1_000_u32,
    ) {
        let asked = asked(timing, &steps, timing.timeout);
        let (write, before) = asked.split_last().unwrap();
        if before.is_empty() {
            return Ok(());
        }
        // The leader hears at once of the session that attaches, and then at each relay of the requests heard
        // up to it.
        let first_relay = part_of(timing.relay(), phase);
        let told = |heard: Timestamp| {
            let since = heard.since(Timestamp::default() + first_relay).as_nanos();
            let relays = since.div_ceil(timing.relay().as_nanos());
            let relay = u32::try_from(relays).unwrap();
            Timestamp::default() + first_relay + timing.relay() * relay
        };
        let relayed = before.iter().filter(|asked| told(asked.heard) <= write.heard);
        let last_heard = relayed.map(|asked| asked.heard).chain([asked[0].sent]).max().unwrap();
        let proof = timing.proof(write.sent, heard_by(timing, before, write.sent));
        prop_assert!(timing.lease_end(proof) + SLACK <= last_heard + timing.timeout);
    }

    /// As long as the client keeps its pulse and answers are not late.
    #[test]
    fn a_client_in_time_has_the_whole_lease_after_each_write(timing in timings(), steps in steps()) {
        let prompt: Vec<_> = steps.iter().map(|step| Step { there: 0, back: 0, ..*step }).collect();
        let asked = asked(timing, &prompt, timing.pulse());
        let write = asked[asked.len() - 1];
        prop_assert_eq!(timing.proof(write.sent, heard_by(timing, &asked, write.sent)), write.sent);
    }

    /// After the longest silence that a link survives, a lease outlasts the time at which the next write is
    /// due.
    #[test]
    fn every_pace_follows_from_the_margin(timing in timings()) {
        let sent = Timestamp::default() + timing.timeout * 10;
        let lateness = timing.silence() - timing.pulse();
        prop_assert!(timing.margin() >= timing.pulse() + timing.relay() + SLACK);
        prop_assert!(timing.margin() >= timing.silence());
        prop_assert!(lateness >= timing.timeout / 7, "a request that is a little late costs the link");
        let heard = sent - timing.silence() - timing.relay();
        let left = timing.lease_end(timing.proof(sent, heard)).since(sent);
        prop_assert!(left + SLACK >= timing.timeout * 5 / 12 - Duration::from_nanos(10));
        prop_assert!(left + SLACK >= timing.pulse() * 2);
    }

    /// Where a timeout of few ticks is accepted, its lease is short, and never longer than `heard` allows.
    #[test]
    fn a_timeout_of_few_ticks_has_a_lease_that_is_as_safe(tick in 10_u64..=10_000, part in 1_u64..=400) {
        let timing = Timing { timeout: millis(tick * part / 100), tick: millis(tick) };
        let sent = Timestamp::default() + timing.timeout * 10;
        let heard = sent - timing.relay() - timing.pulse();
        prop_assert!(timing.lease_end(timing.proof(sent, heard)) <= (heard + timing.timeout).max(sent));
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
