use std::time::Duration;

/// Transaction numbers per microsecond.
const ZXIDS_PER_MICRO: i64 = 2;

/// Number of bits below the microseconds in a session id.
const SESSION_BITS: u32 = 4;

/// Last distinguishable time, in the year 2112. With this limit no number overflows. Session ids do not use
/// the highest byte, in which ZooKeeper stores the number of a server.
const LAST_MICROS: i64 = (1 << 52) - 1;

/// Numbers after which the transactions and sessions of a server start.
///
/// The numbers are derived from the time, so that successive servers on one port never reuse a number. A
/// server refuses clients that have seen a newer transaction than its own last one, and must not mistake an
/// older server's session for one of its own.
///
/// # Transactions
/// The first number is twice the number of microseconds since 1970. This gives two guarantees:
///
/// - *It is above all numbers of an earlier server.* The exceptions are a server that committed more than two
///   million transactions per second on average over its life, and a clock that was set back. The fastest
///   server measured commits 0.4 million per second.
/// - *It is below 2^53,* the first number that JavaScript clients cannot distinguish from its successor. In
///   November 2026 the first number is 3.6 × 10^15. It reaches 2^53, which is 9.0 × 10^15, in 2112.
///
/// # Sessions
/// Sixteen million sessions may be opened per second. Their ids are above 2^53, like ZooKeeper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
}

impl Origin {
    /// Returns the numbers of a server that starts at this time.
    pub(crate) fn at(since_1970: Duration) -> Self {
        let micros = i64::try_from(since_1970.as_micros()).unwrap_or(LAST_MICROS).min(LAST_MICROS);
        let per_micro = if planted!(ZxidsAboveDoubles) { 1_000 } else { ZXIDS_PER_MICRO };
        Self { zxid: micros * per_micro, session: micros << SESSION_BITS }
    }

    /// Returns the same session number, with transactions that start at 1.
    pub(super) fn without_transactions(self) -> Self {
        Self { zxid: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_is_beyond_what_an_earlier_one_can_have_used() {
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        for start in [Duration::ZERO, 56 * year, 100 * year, 140 * year] {
            let (one, other) = (Origin::at(start), Origin::at(start + Duration::from_millis(1)));
            assert_eq!((other.zxid - one.zxid, other.session - one.session), (2_000, 16_000), "{start:?}");
        }
    }

    #[test]
    fn numbers_are_positive_and_far_from_their_end() {
        for start in [Duration::ZERO, Duration::from_secs(1 << 31), Duration::MAX] {
            let origin = Origin::at(start);
            assert!((0..1 << 53).contains(&origin.zxid), "{origin:?}");
            assert!((0..1 << 56).contains(&origin.session), "{origin:?}");
        }
    }

    #[test]
    fn the_transactions_of_a_server_that_runs_for_decades_stay_exact_in_javascript() {
        const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
        const SECOND: i64 = 1_000_000 * ZXIDS_PER_MICRO;
        let year = Duration::from_secs(365 * 24 * 60 * 60 + 6 * 60 * 60);
        // The server starts at the end of 2026, and commits as many transactions as a later server can still
        // exceed.
        let first = Origin::at(57 * year).zxid;
        assert!(first + 84 * 31_557_600 * SECOND < MAX_SAFE_INTEGER);
        assert!(first + 86 * 31_557_600 * SECOND > MAX_SAFE_INTEGER, "the documented year is too early");
    }
}
