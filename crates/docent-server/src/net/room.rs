use std::collections::VecDeque;

/// Bytes that all links together may hold for one purpose. A link that needs more than the free bytes waits
/// for its turn: first come, first served.
#[derive(Debug)]
pub(super) struct Room {
    limit: usize,
    used: usize,
    /// The waiting links, each with the number of bytes that it needs.
    waiting: VecDeque<(u64, usize)>,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: 0, waiting: VecDeque::new() }
    }

    /// Returns the number of bytes in use.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Replaces the number of bytes that a link uses.
    pub(super) fn replace(&mut self, before: usize, now: usize) {
        self.used = self.used + now - before;
    }

    /// Returns whether a link may use up to `bytes` more, and no other link waits.
    pub(super) fn has(&self, bytes: usize) -> bool {
        self.waiting.is_empty() && self.fits(bytes)
    }

    /// Requests bytes. Returns `true` if the link may use them right away. Otherwise the link waits for its
    /// [turn](Self::turn), and then asks again.
    pub(super) fn reserve(&mut self, id: u64, bytes: usize) -> bool {
        let place = self.waiting.iter().position(|(other, _)| *other == id);
        let is_first = place.unwrap_or(self.waiting.len()) == 0;
        if is_first && self.fits(bytes) {
            self.leave(id);
            return true;
        }
        match place {
            Some(place) => self.waiting[place].1 = bytes,
            None => self.waiting.push_back((id, bytes)),
        }
        false
    }

    /// Removes a link from the queue.
    pub(super) fn leave(&mut self, id: u64) {
        self.waiting.retain(|(other, _)| *other != id);
    }

    /// Returns the link that has waited longest, if the bytes that it needs are free now.
    pub(super) fn turn(&self) -> Option<u64> {
        let (id, bytes) = *self.waiting.front()?;
        self.fits(bytes).then_some(id)
    }

    /// Returns the waiting links.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|(id, _)| *id)
    }

    fn fits(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_get_room_in_order_of_arrival() {
        let mut room = Room::new(10);
        assert!(room.has(10) && room.reserve(1, 8));
        room.replace(0, 8);
        assert!(!room.reserve(2, 9) && !room.reserve(3, 1), "link 3 overtakes link 2, which waits");
        assert!(!room.has(1));
        assert_eq!(room.turn(), None);
        room.replace(8, 1);
        assert_eq!(room.turn(), Some(2));
        assert!(!room.reserve(3, 1) && room.reserve(2, 9));
        room.replace(0, 9);
        assert!(!room.reserve(3, 1));
        room.replace(9, 0);
        assert!(room.reserve(3, 1) && room.has(9) && !room.has(10));
    }

    #[test]
    fn a_link_that_leaves_the_line_blocks_no_other() {
        let mut room = Room::new(10);
        room.replace(0, 5);
        assert!(!room.reserve(1, 10) && !room.reserve(2, 2));
        assert_eq!((room.waiting().collect::<Vec<_>>(), room.turn()), (vec![1, 2], None));
        room.leave(1);
        assert_eq!(room.turn(), Some(2));
        assert!(room.reserve(2, 2));
    }
}
