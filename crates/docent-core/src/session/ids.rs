use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Number of bits of an id that form the counter: enough for a million ids per second for twelve days.
const COUNTER_BITS: u32 = 40;

/// The four bits of the upper half that hold the version of a UUID.
const VERSION: u64 = 0xf << VERSION_SHIFT;
const VERSION_SHIFT: u32 = 12;

/// Version 4: a random UUID.
const RANDOM: u64 = 4;

/// Position of the two highest bits of the lower half, which hold the variant of a UUID.
const VARIANT_SHIFT: u32 = 62;

/// Ids of one session, in the form of random UUIDs.
///
/// An id consists of the session's number, which the servers assign to no other session, and a counter. Two
/// live sessions therefore never produce the same id, whatever their processes share. Forks of one process,
/// and machines resumed from one snapshot, have the same memory and may have the same source of random
/// numbers. Only the first id asks the system for random bytes.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Halves of a number drawn for this session. The upper half replaces the session's number until that
    /// number is known.
    random: (u64, u64),
    count: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        if planted!(IdsOfTheProcess) {
            // State that processes forked after the draw share.
            return Self { random: (1, 1), count: AtomicU64::new(0) };
        }
        Self { random: Uuid::new_v4().as_u64_pair(), count: AtomicU64::new(0) }
    }
}

impl Ids {
    /// Returns a new id of the session `session_id`; 0 means that the session has not been attached yet.
    pub(crate) fn fresh(&self, session_id: i64) -> Uuid {
        let (upper, lower) = self.random;
        let session = match session_id {
            0 => upper,
            _ if planted!(IdsOfTheProcess) => upper,
            id => id.cast_unsigned(),
        };
        let count = self.count.fetch_add(1, Ordering::Relaxed) & ((1 << COUNTER_BITS) - 1);
        // The version replaces four bits of the session's number, which move to the lower half.
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
    fn sessions_of_processes_with_equal_random_numbers_have_no_id_in_common() {
        let mut drawn = HashSet::new();
        // Numbers that differ in one bit each, including the bits of the version.
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
