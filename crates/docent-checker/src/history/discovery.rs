use super::builder::HistoryBuilder;
use crate::event::{Announcing, AttemptId, EventKind, Listed, Viewing};
use std::time::Duration;

/// Number of the viewer of a folder.
const VIEW: u64 = 901;

/// Events of members of a folder, and of the folder's viewer.
pub(crate) trait DiscoveryEvents {
    /// A member starts to announce itself, or changes its number.
    fn request(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self;

    /// A client starts to view a folder.
    fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self;

    /// The viewer is shown these nodes below `/s`.
    fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self;
}

impl DiscoveryEvents for HistoryBuilder {
    fn request(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self {
        let path = path.to_owned();
        self.record(client, EventKind::Announced(AttemptId(id), Announcing::Requested { path, number }))
    }

    fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self {
        let (folder, grace) = (folder.to_owned(), Duration::from_millis(grace));
        self.record(client, EventKind::Viewed(AttemptId(VIEW), Viewing::Opened { folder, grace }))
    }

    fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self {
        let list = |(name, number): &(&str, Option<u64>)| {
            let zxid = number.and_then(|number| self.written(&format!("/s/{name}"), number));
            Listed { name: (*name).to_owned(), number: *number, zxid }
        };
        let listed = listed.iter().map(list).collect();
        self.record(client, EventKind::Viewed(AttemptId(VIEW), Viewing::Shown(listed)))
    }
}
