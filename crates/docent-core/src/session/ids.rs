use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Bits of an id that count: enough for a million ids a second for twelve days.
const COUNTER_BITS: u32 = 40;

/// The four bits of the upper half in which a UUID has its version.
const VERSION: u64 = 0xf << VERSION_SHIFT;
const VERSION_SHIFT: u32 = 12;

/// Version 4: a random UUID.
const RANDOM: u64 = 4;

/// The two highest bits of the lower half, in which a UUID has its variant.
const VARIANT_SHIFT: u32 = 62;

/// Ids of one session, in the form of random UUIDs.
///
/// An id holds the number of the session, which the servers give to no other one, and a counter. So two live
/// sessions never have the same id, whatever their processes share: forks of one process and machines that
/// were resumed from one snapshot have the same memory, and may have the same source of random numbers. No
/// id but the first asks the system for random bytes.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Halves of a number drawn for this session. The upper one stands in for the session's number until that
    /// is known.
    random: (u64, u64),
    count: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        if planted!(IdsOfTheProcess) {
            // What processes share that were forked after it was drawn.
            return Self { random: (1, 1), count: AtomicU64::new(0) };
        }
        Self { random: Uuid::new_v4().as_u64_pair(), count: AtomicU64::new(0) }
    }
}

impl Ids {
    /// An id of the session `session_id`; 0 stands for a session that was not attached yet.
    pub(crate) fn fresh(&self, session_id: i64) -> Uuid {
        let (upper, lower) = self.random;
        let session = match session_id {
            0 => upper,
            _ if planted!(IdsOfTheProcess) => upper,
            id => id.cast_unsigned(),
        };
        let count = self.count.fetch_add(1, Ordering::Relaxed) & ((1 << COUNTER_BITS) - 1);
        // The version takes the place of four bits of the session, which go to the lower half.
        let displaced = (session & VERSION) >> VERSION_SHIFT;
        let spare = lower & ((1 << (VARIANT_SHIFT - 4)) - 1) & !((1 << COUNTER_BITS) - 1);
        let lower = 0b10 << VARIANT_SHIFT | displaced << (VARIANT_SHIFT - 4) | spare | count;
        Uuid::from_u64_pair(session & !VERSION | RANDOM << VERSION_SHIFT, lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use uuid::Variant;

    #[test]
    fn no_id_is_given_out_twice_and_each_is_one_of_version_4() {
        let ids = Ids::default();
        let drawn: HashSet<_> = (0..10_000).map(|_| ids.fresh(0x1234_5678_9abc_def0)).collect();
        assert_eq!(drawn.len(), 10_000);
        assert!(drawn.iter().all(|id| id.get_version_num() == 4 && id.get_variant() == Variant::RFC4122));
    }

    #[test]
    fn sessions_of_processes_that_share_all_random_numbers_have_no_id_in_common() {
        let mut drawn = HashSet::new();
        // Numbers that differ in one bit each, also in those of the version.
        for session in (0..64).map(|bit| 0x0100_0000_0000_0000 ^ (1_i64 << bit)).filter(|id| *id != 0) {
            let copy = Ids { random: (7, 7), count: AtomicU64::new(3) };
            assert!((0..100).all(|_| drawn.insert(copy.fresh(session))), "{session:x}");
        }
    }

    #[test]
    fn before_a_session_has_a_number_its_ids_are_random() {
        let [one, other] = [(); 2].map(|()| Ids::default().fresh(0));
        assert_ne!(one, other);
        assert_eq!((one.get_version_num(), one.get_variant()), (4, Variant::RFC4122));
    }
}
