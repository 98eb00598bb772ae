use crate::guard::SessionGeneration;
use crate::session::{Fired, Watch};
use bytes::Bytes;
use docent_proto::Stat;
use futures_util::FutureExt;

/// Node as it was last read, with the watch that reports its next change.
///
/// While the watch has not fired on the link on which it was set, the state of the node is known without
/// another read.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) data: Bytes,
    pub(super) version: i32,
    /// Number of the session's generation.
    generation: u64,
    /// Number of links that were lost before the watch was set.
    pub(super) losses: u64,
    /// `None` after the watch fired.
    pub(super) watch: Option<Box<Watch>>,
}

impl Armed {
    /// Records the reply to a read that left `watch`, and that was sent after `losses` lost links. Usually
    /// the data equals `wanted`.
    pub(super) fn new(
        generation: &SessionGeneration,
        losses: u64,
        data: Option<&Bytes>,
        wanted: &Bytes,
        stat: &Stat,
        watch: Box<Watch>,
    ) -> Self {
        Self {
            data: compact(data, wanted),
            version: stat.version,
            generation: generation.number,
            losses,
            watch: Some(watch),
        }
    }

    /// Returns true if the version distinguishes the node from one that another client created in its place
    /// since: a new node has version 0.
    pub(super) fn is_distinguishable(&self) -> bool {
        self.version > 0
    }

    /// Waits until the watch fires. Never resolves after it has fired.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn fired(&mut self) -> Fired {
        let Some(watch) = &mut self.watch else { return std::future::pending().await };
        let fired = watch.await;
        self.watch = None;
        fired
    }

    /// Returns the number of lost links if the node is known to be as it was read, according to the events of
    /// the current link. Returns `None` if the node may have changed.
    ///
    /// A write that relies on this must go out on this link or not at all: after a reconnect, changes are
    /// reported only once the next link is established.
    pub(super) fn losses_if_unchanged(&mut self, generation: &SessionGeneration) -> Option<u64> {
        if planted!(KnownWithoutWatch) {
            return Some(self.losses);
        }
        let session = &generation.session;
        let is_unfired = self.fired().now_or_never().is_none() && self.watch.is_some();
        let is_same_link = generation.number == self.generation
            && session.orders_events()
            && session.link().borrow().losses == self.losses;
        (is_unfired && is_same_link).then_some(self.losses)
    }
}

/// Returns the found data in a form that is kept as long as the node: not as a slice of a read buffer, which
/// would keep the whole buffer in memory.
fn compact(found: Option<&Bytes>, wanted: &Bytes) -> Bytes {
    match found {
        Some(found) if found == wanted => wanted.clone(),
        Some(found) => Bytes::copy_from_slice(found),
        None => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retained_data_holds_no_read_buffer() {
        let buffer = Bytes::from(vec![7; 64 * 1024]);
        let (wanted, found) = (Bytes::from(vec![7; 10]), buffer.slice(100..110));
        let same = compact(Some(&found), &wanted);
        assert_eq!((same.as_ptr(), &same), (wanted.as_ptr(), &found), "the wanted data is reused");
        let other = compact(Some(&buffer.slice(..20)), &wanted);
        assert_eq!(other, buffer.slice(..20));
        assert!(compact(None, &wanted).is_empty());
        drop(found);
        assert!(buffer.is_unique());
    }
}
