use std::time::Duration;

/// Bits below the microseconds in the number of a transaction.
const ZXID_BITS: u32 = 10;

/// Bits below the microseconds in the id of a session.
const SESSION_BITS: u32 = 4;

/// Last time that is told apart from later ones, in the year 2112. No number overflows then, and ids of
/// sessions leave the uppermost byte alone, where ZooKeeper has the number of a server.
const LAST_MICROS: i64 = (1 << 52) - 1;

/// Numbers that the transactions and sessions of a server come after.
///
/// They are taken from the time, so that servers that follow each other on one port never give out the same
/// one: clients that have seen an older server's transactions are refused by a server that has fewer, and an
/// older server's session must not be taken for one of this server. An older server has used fewer numbers
/// than there are between the two starts, unless it made a thousand million transactions or opened sixteen
/// million sessions in each second, or the clock was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
}

impl Origin {
    /// The numbers of a server that starts at this time.
    pub(crate) fn at(since_1970: Duration) -> Self {
        let micros = i64::try_from(since_1970.as_micros()).unwrap_or(LAST_MICROS).min(LAST_MICROS);
        Self { zxid: micros << ZXID_BITS, session: micros << SESSION_BITS }
    }

    /// The same for sessions, but transactions from 1 on.
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
            assert_eq!(
                (other.zxid - one.zxid, other.session - one.session),
                (1_024_000, 16_000),
                "{start:?}"
            );
        }
    }

    #[test]
    fn numbers_are_positive_and_far_from_their_end() {
        for start in [Duration::ZERO, Duration::from_secs(1 << 31), Duration::MAX] {
            let origin = Origin::at(start);
            assert!((0..1 << 62).contains(&origin.zxid), "{origin:?}");
            assert!((0..1 << 56).contains(&origin.session), "{origin:?}");
        }
    }
}
