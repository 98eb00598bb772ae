use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of items of a stream that one write hands out.
///
/// An item counts as handed out before its consumer has it, so that an item which kills the process is
/// counted. A write for each item would cost as much as its acknowledgement. So a process begins with one
/// item, and each write hands out twice as many as the last one: an item that kills the process is the first
/// of a new process, and those behind it are counted without reason once at most. An item that no call asks
/// for in time begins that again.
#[derive(Debug)]
pub(crate) struct HandOutSize(AtomicUsize);

impl Default for HandOutSize {
    fn default() -> Self {
        Self(AtomicUsize::new(1))
    }
}

impl HandOutSize {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that a write has handed out items of a stream that claims `prefetch` items at a time.
    pub(crate) fn grow(&self, prefetch: usize) {
        self.0.store((2 * self.get()).min(prefetch.max(1)), Ordering::Relaxed);
    }

    /// Notes that an item was handed out and no call asked for it, or that a write failed.
    pub(crate) fn unasked(&self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_many_are_handed_out_each_time_up_to_what_is_claimed() {
        let size = HandOutSize::default();
        let sizes: Vec<_> = (0..5)
            .map(|_| {
                let now = size.get();
                size.grow(6);
                now
            })
            .collect();
        assert_eq!(sizes, [1, 2, 4, 6, 6]);
        size.unasked();
        assert_eq!(size.get(), 1);
        size.grow(0);
        assert_eq!(size.get(), 1);
    }
}
