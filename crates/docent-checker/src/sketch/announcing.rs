use super::Sketch;
use crate::event::{Announcing, AttemptId, Listed, Viewing, What};
use std::time::Duration;

/// Number of the viewer of a folder.
const VIEW: u64 = 901;

impl Sketch {
    /// A member wants to be listed, or says another number.
    pub(crate) fn wants(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self {
        let path = path.to_owned();
        self.tell(client, What::Announced(AttemptId(id), Announcing::Wants { path, number }))
    }

    /// A viewer looks at a folder.
    pub(crate) fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self {
        let (folder, grace) = (folder.to_owned(), Duration::from_millis(grace));
        self.tell(client, What::Viewed(AttemptId(VIEW), Viewing::Opened { folder, grace }))
    }

    /// Shows a viewer these nodes below `/s`.
    pub(crate) fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self {
        let list = |(name, number): &(&str, Option<u64>)| {
            let zxid = number.and_then(|number| self.written(&format!("/s/{name}"), number));
            Listed { name: (*name).to_owned(), number: *number, zxid }
        };
        let listed = listed.iter().map(list).collect();
        self.tell(client, What::Viewed(AttemptId(VIEW), Viewing::Shown(listed)))
    }
}
