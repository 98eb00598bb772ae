//! Counts of what went over links, for the four-letter words.

/// Frames and latencies of one link, or of all links of a member.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) latency: Latency,
}

/// Times from requests to their answers, in milliseconds.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Latency {
    count: u64,
    total: u64,
    least: u64,
    most: u64,
}

impl Latency {
    pub(super) fn add(&mut self, ms: u64) {
        self.least = if self.count == 0 { ms } else { self.least.min(ms) };
        self.most = self.most.max(ms);
        self.total = self.total.saturating_add(ms);
        self.count += 1;
    }

    /// The shortest; 0 before the first.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// The longest; 0 before the first.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// The mean, rounded down.
    pub(super) fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// The mean to four decimals, as Java prints a number: `0.0`, `6.5833`.
    pub(super) fn exact_mean(&self) -> String {
        let ten_thousandths = match self.count {
            0 => 0,
            count => (u128::from(self.total) * 10_000 + u128::from(count) / 2) / u128::from(count),
        };
        let decimals = format!("{:04}", ten_thousandths % 10_000);
        let significant = decimals.trim_end_matches('0');
        let shown = if significant.is_empty() { "0" } else { significant };
        format!("{}.{shown}", ten_thousandths / 10_000)
    }
}

/// Counts of one link.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Activity {
    pub(super) traffic: Traffic,
    /// Time at which the link was taken in.
    pub(super) since_ms: i64,
    /// Time of the last frame that came in.
    pub(super) heard_ms: i64,
    pub(super) last: Option<Answered>,
    /// Number of the last request that had one of its own.
    pub(super) last_xid: Option<i32>,
}

impl Activity {
    /// Takes note of an answer.
    pub(super) fn answered(&mut self, xid: i32, answered: Answered) {
        if xid >= 0 {
            self.last_xid = Some(xid);
        }
        self.traffic.latency.add(answered.took_ms);
        self.last = Some(answered);
    }

    /// Begins to count anew.
    pub(super) fn reset(&mut self) {
        *self = Self { since_ms: self.since_ms, heard_ms: self.heard_ms, ..Self::default() };
    }
}

/// The last answer on a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    /// Short name of the operation.
    pub(super) op: &'static str,
    /// The last transaction at that time.
    pub(super) zxid: i64,
    pub(super) at_ms: i64,
    pub(super) took_ms: u64,
}

/// Counts of all links that a member ever had.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) traffic: Traffic,
    pub(super) bytes_received: u64,
    /// Links that were not taken in.
    pub(super) links_refused: u64,
    /// Requests for a session.
    pub(super) handshakes: u64,
    /// Frames longer than the limit.
    pub(super) frames_refused: u64,
    /// Credentials that were refused.
    pub(super) auth_failures: u64,
    pub(super) reply_sizes: Option<Sizes>,
}

impl Totals {
    /// Takes note of a reply of so many bytes.
    pub(super) fn replied(&mut self, bytes: usize) {
        let sizes = self.reply_sizes.get_or_insert(Sizes { last: bytes, least: bytes, most: bytes });
        *sizes = Sizes { last: bytes, least: sizes.least.min(bytes), most: sizes.most.max(bytes) };
    }

    /// Begins to count anew.
    pub(super) fn reset(&mut self) {
        *self = Self { auth_failures: self.auth_failures, ..Self::default() };
    }
}

/// Sizes of replies in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) last: usize,
    pub(super) least: usize,
    pub(super) most: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(times: &[u64]) -> Latency {
        let mut latency = Latency::default();
        times.iter().for_each(|ms| latency.add(*ms));
        latency
    }

    #[test]
    fn means_are_printed_as_java_prints_them() {
        let printed = |times: &[u64]| latency(times).exact_mean();
        assert_eq!(printed(&[]), "0.0");
        assert_eq!(printed(&[2, 4]), "3.0");
        assert_eq!(printed(&[0, 1]), "0.5");
        assert_eq!(printed(&[1, 1, 0]), "0.6667");
        assert_eq!(printed(&[20, 0, 0]), "6.6667");
    }

    #[test]
    fn the_shortest_latency_is_that_of_an_answer() {
        let latency = latency(&[3, 1, 7]);
        assert_eq!((latency.least(), latency.mean(), latency.most()), (1, 3, 7));
    }
}
