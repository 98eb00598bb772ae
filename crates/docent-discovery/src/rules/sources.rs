use super::ServiceKey;
use crate::layout::Placement;
use docent_core::{Client, Error, ErrorKind, TreeCache, TreeEvent};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, future};
use std::time::Duration;

/// End of the names of nodes that contain rules.
const SUFFIX: &str = ".configurators";

/// Caches of the nodes in which the rules of a service are written. Does not keep the client open.
#[derive(Debug, Clone)]
pub(crate) struct RuleSources {
    /// Nodes whose names are rules.
    pub(super) folder: TreeCache,
    /// Nodes that contain rules of the service, and those of any application.
    pub(super) documents: TreeCache,
}

impl RuleSources {
    /// Starts following the rules of `service`, if its layout has rules.
    pub(crate) fn start(
        client: &Client,
        placement: &Placement,
        service: &str,
    ) -> Result<Option<Self>, Error> {
        let Some((folder, documents)) = placement.rules(service) else { return Ok(None) };
        let folder = TreeCache::builder(client, folder).max_depth(1).without_data().build()?;
        let (start, interface) = (format!("{documents}/"), service.to_owned());
        let is_relevant = move |path: &str| {
            let stem = path.strip_prefix(&start).and_then(stem_of);
            stem.is_some_and(|stem| !is_of_service(stem) || ServiceKey::parse(stem).interface == interface)
        };
        let documents = TreeCache::builder(client, documents).max_depth(1).select(is_relevant).build()?;
        Ok(Some(Self { folder, documents }))
    }

    /// Returns a stream with an item once both parts were read or refused, and then for each event. Ends with
    /// the client.
    pub(crate) fn changes(&self) -> BoxStream<'static, ()> {
        let is_unknown =
            |event: &Result<TreeEvent, Error>| future::ready(!matches!(event, Ok(TreeEvent::Ready) | Err(_)));
        let mut folder = self.folder.changes().skip_while(is_unknown);
        let mut documents = self.documents.changes().skip_while(is_unknown);
        let changes = async move {
            let (folder_known, documents_known) = future::join(folder.next(), documents.next()).await;
            let are_known = folder_known.is_some() && documents_known.is_some();
            let changes = stream::iter([()]).chain(stream::select(folder, documents).map(drop));
            // A part that ends before it is known ends with the client, and so does this stream.
            changes.take_while(move |()| future::ready(are_known))
        };
        changes.flatten_stream().boxed()
    }

    /// Returns for how long the rules may have been out of date, or `None` if they are not. Rules that the
    /// client may not read do not count.
    pub(crate) fn stale_for(&self) -> Option<Duration> {
        // Read before the error: a part that is refused in between then counts as current.
        let stale_for = |part: &TreeCache| part.stale_for().filter(|_| part.last_error().is_none());
        [&self.folder, &self.documents].into_iter().filter_map(stale_for).max()
    }

    /// Waits until the rules were read once, or were refused, for at most the operation timeout.
    ///
    /// # Errors
    /// `Timeout`, `Closed`.
    pub(crate) async fn ready(self) -> Result<(), Error> {
        let (folder, documents) = tokio::join!(self.folder.ready(), self.documents.ready());
        for read in [folder, documents] {
            match read {
                Err(error) if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Closed) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the service or application of a rule node's name.
pub(super) fn stem_of(name: &str) -> Option<&str> {
    name.strip_suffix(SUFFIX).filter(|stem| !stem.is_empty())
}

/// Returns true if a stem is that of a service; that of an application has none of these characters.
pub(super) fn is_of_service(stem: &str) -> bool {
    stem.contains([':', '*'])
}
