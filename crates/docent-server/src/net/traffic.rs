//! Traffic counters of links, for the four-letter words.

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

    /// Returns the minimum latency; 0 before the first answer.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// Returns the maximum latency; 0 before the first answer.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Returns the mean latency, rounded down.
    pub(super) fn mean(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// Returns the mean latency with up to four decimals, as Java prints a number: `0.0`, `6.5833`.
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

/// Counters of one link.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Activity {
    pub(super) traffic: Traffic,
    /// Time at which the link was accepted.
    pub(super) since_ms: i64,
    /// Time of the last frame received.
    pub(super) heard_ms: i64,
    pub(super) last: Option<Answered>,
    /// Xid of the last request with a non-negative xid.
    pub(super) last_xid: Option<i32>,
}

impl Activity {
    /// Counts an answer.
    pub(super) fn answered(&mut self, xid: i32, answered: Answered) {
        if xid >= 0 {
            self.last_xid = Some(xid);
        }
        self.traffic.latency.add(answered.took_ms);
        self.last = Some(answered);
    }

    /// Resets the counters.
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

/// Counters of all links that a member has had.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) traffic: Traffic,
    pub(super) bytes_received: u64,
    /// Links that were not accepted.
    pub(super) links_refused: u64,
    /// Session requests.
    pub(super) handshakes: u64,
    /// Frames that were too long or invalid.
    pub(super) frames_refused: u64,
    /// Credentials that were refused.
    pub(super) auth_failures: u64,
    pub(super) reply_sizes: Option<Sizes>,
}

impl Totals {
    /// Records the size of a reply.
    pub(super) fn replied(&mut self, bytes: usize) {
        let sizes = self.reply_sizes.get_or_insert(Sizes { last: bytes, least: bytes, most: bytes });
        *sizes = Sizes { last: bytes, least: sizes.least.min(bytes), most: sizes.most.max(bytes) };
    }

    /// Resets the counters, except that of refused credentials.
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
