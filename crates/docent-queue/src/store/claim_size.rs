use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of items that are claimed in one write.
pub(crate) const MOST: usize = 1000;

/// Maximum number of items that the next write claims.
///
/// Claims whose items cannot be read are given back, and the next write claims half as many. Therefore an
/// unreadable item does not block the items before it, and a slow connection gets as many items as it can
/// transfer. Each claim that is read doubles the number again. While the number is below [`MOST`], claims do
/// not count as deliveries; otherwise items that no consumer got would use up their deliveries.
#[derive(Debug)]
pub(crate) struct ClaimSize(AtomicUsize);

impl Default for ClaimSize {
    fn default() -> Self {
        Self(AtomicUsize::new(MOST))
    }
}

impl ClaimSize {
    pub(crate) fn most(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether claims count as deliveries.
    pub(crate) fn counts(&self) -> bool {
        self.most() == MOST
    }

    /// Records that `items` items were claimed, or may have been, and could not be read.
    pub(crate) fn unread(&self, items: usize) {
        self.0.store((items / 2).max(1), Ordering::Relaxed);
    }

    /// Records that items were claimed and read.
    pub(crate) fn read(&self) {
        self.0.store((2 * self.most()).min(MOST), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_that_cannot_be_read_become_smaller_and_count_again_once_they_are_as_large_as_before() {
        let size = ClaimSize::default();
        assert!(size.counts());
        size.unread(1);
        assert_eq!((size.most(), size.counts()), (1, false));
        for most in [2, 4, 8] {
            size.read();
            assert_eq!((size.most(), size.counts()), (most, false));
        }
        size.unread(8);
        assert_eq!(size.most(), 4);
        (0..8).for_each(|_| size.read());
        assert!(size.counts());
    }
}
