use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time for which a reading of the queue's length is used.
const FRESH: Duration = Duration::from_millis(500);
/// Divisor of the queue's room: a process may use up one part, of at most `MOST` items, without reading the
/// length again.
const PART: usize = 64;
const MOST: usize = 16;

/// Room that this process found in the queue. If the room is ample, the process does not read the length
/// before each put.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<(usize, Instant)>>);

impl Room {
    /// Takes room for `items`. Returns false if the length has to be read.
    pub(crate) fn take(&self, items: usize) -> bool {
        let mut room = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *room {
            Some((remaining, seen)) if *remaining >= items && seen.elapsed() < FRESH => {
                *remaining -= items;
                true
            }
            _ => false,
        }
    }

    /// Records that there is room for `room` items.
    pub(crate) fn seen(&self, room: usize) {
        let remaining = (room / PART).min(MOST);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((remaining, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_suffices_for_a_small_part_of_the_room() {
        let room = Room::default();
        assert!(!room.take(1));
        room.seen(PART * 2 + 1);
        assert!(room.take(1) && room.take(1) && !room.take(1));
        room.seen(usize::MAX);
        assert!(!room.take(MOST + 1) && room.take(MOST) && !room.take(1));
        room.seen(PART - 1);
        assert!(!room.take(1));
    }
}
