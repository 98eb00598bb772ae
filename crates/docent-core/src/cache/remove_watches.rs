use super::attachment::Attachment;
use crate::operation::Shared;
use crate::session::Lane;
use docent_proto::Request;

/// Number of watches removed at a time, so that other requests get through in between.
const WATCHES_PER_BATCH: usize = 128;

/// Removes watches, a few at a time. `up` is true while there is a link, and `full` is the path of any node.
pub(super) async fn remove_watches(
    shared: &Shared,
    attachment: &mut Attachment,
    mut up: bool,
    full: &str,
    mut watches: impl Iterator,
) {
    while watches.by_ref().take(WATCHES_PER_BATCH).count() == WATCHES_PER_BATCH {
        // Without a link, the server has no watches, and those dropped here are not set again.
        if up {
            // Requests are answered in order: the answer arrives after the server has removed these watches.
            let request = Request::Exists { path: full.to_owned(), watch: false };
            let removed = attachment.generation.session.submit(request, Lane::Call);
            tokio::select! {
                () = shared.closing.cancelled() => return,
                change = attachment.changed() => up = !change.lost,
                _ = removed => {}
            }
        }
    }
}
