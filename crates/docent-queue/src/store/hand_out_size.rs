use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of items of a stream that one write hands out.
///
/// An item is counted as handed out before its consumer has it, so that an item that crashes the process is
/// counted. A write for each item would cost as much as its acknowledgement. Therefore a process starts with
/// one item, and each write hands out twice as many as the last one. An item that crashes the process is then
/// the first item of the restarted process, and the items behind it are counted wrongly at most once. If no
/// call asks for an item in time, the number starts at one again.
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

    /// Records that a write has handed out items of a stream that claims `prefetch` items at a time.
    pub(crate) fn grow(&self, prefetch: usize) {
        self.0.store((2 * self.get()).min(prefetch.max(1)), Ordering::Relaxed);
    }

    /// Records that an item was handed out and no call asked for it, or that a write failed.
    pub(crate) fn reset(&self) {
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
        size.reset();
        assert_eq!(size.get(), 1);
        size.grow(0);
        assert_eq!(size.get(), 1);
    }
}
