use crate::guard::SessionGeneration;
use crate::session::{Fired, Watch};
use bytes::Bytes;
use docent_proto::Stat;
use futures_util::FutureExt;

/// Node as it was seen last, with the watch that tells of its next change.
///
/// While that has not fired, on the link on which it was set, the node is known without another look.
#[derive(Debug)]
pub(super) struct Armed {
    data: Bytes,
    version: i32,
    /// Number of the session's generation.
    generation: u64,
    /// Number of links that were lost before the watch was set.
    losses: u64,
    /// `None` once it fired.
    watch: Option<Box<Watch>>,
}

impl Armed {
    /// Takes note of the reply to a read that left `watch`, and that was sent after `losses` lost links. The
    /// data is mostly that which is `wanted`.
    pub(super) fn new(
        generation: &SessionGeneration,
        losses: u64,
        data: Option<&Bytes>,
        wanted: &Bytes,
        stat: &Stat,
        watch: Box<Watch>,
    ) -> Self {
        Self {
            data: kept(data, wanted),
            version: stat.version,
            generation: generation.number,
            losses,
            watch: Some(watch),
        }
    }

    pub(super) fn data(&self) -> &Bytes {
        &self.data
    }

    pub(super) fn version(&self) -> i32 {
        self.version
    }

    /// Number of links that were lost before the look.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// The watch; `None` once it fired.
    pub(super) fn watch(&self) -> Option<&Watch> {
        self.watch.as_deref()
    }

    /// True when its version tells it apart from a node that somebody made in its place since: such a one
    /// begins with version 0.
    pub(super) fn is_told_apart(&self) -> bool {
        self.version > 0
    }

    /// Waits until the watch fires. Never resolves once it has.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn fired(&mut self) -> Fired {
        let Some(watch) = &mut self.watch else { return std::future::pending().await };
        let fired = watch.await;
        self.watch = None;
        fired
    }

    /// Number of lost links with which the node is known to be as it was seen, as far as the server of the
    /// present link has told; `None` when it may have changed. A write that rests on it must go out on this
    /// link or not at all, for a change is told on the next one only after it is there.
    pub(super) fn stands(&mut self, generation: &SessionGeneration) -> Option<u64> {
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

/// The data found, as it is kept for as long as the node: not as a part of a read buffer, which would keep
/// all of it in memory.
fn kept(found: Option<&Bytes>, wanted: &Bytes) -> Bytes {
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
    fn the_data_that_is_kept_holds_no_read_buffer() {
        let buffer = Bytes::from(vec![7; 64 * 1024]);
        let (wanted, found) = (Bytes::from(vec![7; 10]), buffer.slice(100..110));
        let same = kept(Some(&found), &wanted);
        assert_eq!((same.as_ptr(), &same), (wanted.as_ptr(), &found), "it is there already");
        let other = kept(Some(&buffer.slice(..20)), &wanted);
        assert_eq!(other, buffer.slice(..20));
        assert!(kept(None, &wanted).is_empty());
        drop(found);
        assert!(buffer.is_unique());
    }
}
