use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a look at the room of a queue is relied on.
const FRESH: Duration = Duration::from_millis(500);
/// Part of the room that one process uses up without looking again, and most items of it.
const PART: usize = 64;
const MOST: usize = 16;

/// Room for items that this process saw in the queue, where it is ample: it need not look before each put.
#[derive(Debug, Default)]
pub(crate) struct Room(Mutex<Option<(usize, Instant)>>);

impl Room {
    /// Takes room for `items`; false when it must be looked for.
    pub(crate) fn take(&self, items: usize) -> bool {
        let mut room = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *room {
            Some((left, seen)) if *left >= items && seen.elapsed() < FRESH => {
                *left -= items;
                true
            }
            _ => false,
        }
    }

    /// Notes that there is room for so many items.
    pub(crate) fn seen(&self, room: usize) {
        let left = (room / PART).min(MOST);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((left, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_enough_for_a_small_part_of_the_room() {
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
