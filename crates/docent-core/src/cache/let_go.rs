use super::attachment::Attachment;
use crate::operation::Shared;
use crate::session::Lane;
use docent_proto::Request;

/// Watches that are removed at a time; requests of others get in between.
const LETTING_GO: usize = 128;

/// Removes watches, a few at a time. `up` says whether there is a link, and `full` names any node.
pub(super) async fn let_go(
    shared: &Shared,
    attachment: &mut Attachment,
    mut up: bool,
    full: &str,
    mut watches: impl Iterator,
) {
    while watches.by_ref().take(LETTING_GO).count() == LETTING_GO {
        // Without a link there are no watches at the server, and those that are dropped here are not set
        // again.
        if up {
            // Answered in order: its answer comes when the server has removed these watches.
            let request = Request::Exists { path: full.to_owned(), watch: false };
            let removed = attachment.generation.session.submit(request, Lane::Call);
            tokio::select! {
                () = shared.closing.cancelled() => return,
                news = attachment.news() => up = !news.lost,
                _ = removed => {}
            }
        }
    }
}
