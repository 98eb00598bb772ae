use super::builder::HistoryBuilder;
use crate::event::{Announcing, AttemptId, EventKind, Listed, Viewing};
use std::time::Duration;

/// Number of the viewer of a folder.
const VIEW: u64 = 901;

/// Events of the members that are listed below a folder, and of its viewer.
pub(crate) trait DiscoveryEvents {
    /// A member wants to be listed, or says another number.
    fn wants(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self;

    /// A viewer looks at a folder.
    fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self;

    /// Shows a viewer these nodes below `/s`.
    fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self;
}

impl DiscoveryEvents for HistoryBuilder {
    fn wants(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self {
        let path = path.to_owned();
        self.tell(client, EventKind::Announced(AttemptId(id), Announcing::Wants { path, number }))
    }

    fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self {
        let (folder, grace) = (folder.to_owned(), Duration::from_millis(grace));
        self.tell(client, EventKind::Viewed(AttemptId(VIEW), Viewing::Opened { folder, grace }))
    }

    fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self {
        let list = |(name, number): &(&str, Option<u64>)| {
            let zxid = number.and_then(|number| self.written(&format!("/s/{name}"), number));
            Listed { name: (*name).to_owned(), number: *number, zxid }
        };
        let listed = listed.iter().map(list).collect();
        self.tell(client, EventKind::Viewed(AttemptId(VIEW), Viewing::Shown(listed)))
    }
}
