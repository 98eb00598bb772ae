use super::{Listing, Store};
use crate::layout::{ItemName, Turns};
use tokio::time::Instant;

/// Items that a listing of the queue offers to this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// There is an item that this process may take.
    Item,
    /// There are free items, but this process leaves all of them to other consumers.
    Refused(Vec<String>),
    /// There is no free item.
    Nothing,
}

impl Store {
    /// Records which items exist, and which of them can be taken.
    pub(crate) fn note(&self, listing: &Listing) {
        if listing.folder == 0 {
            return;
        }
        self.skipped.retain_listed(listing.folder, &listing.items);
        match &self.lock {
            Some(_) => {
                let first = self.first_in_turn(listing);
                self.skipped.note_free(|name| first.is_some_and(|first| first.text == name));
            }
            None => self.skipped.note_free(|name| !listing.claimed.contains(name)),
        }
    }

    /// Returns which items `listing` offers to this process now. With `later`, delayed items count as well if
    /// no other item is free.
    pub(crate) fn prospect(&self, listing: &Listing, later: bool) -> Prospect {
        let (clock, now) = (self.time_of_day(), Instant::now());
        let mut free: Vec<_> = match &self.lock {
            // In ordered mode only the first item may be taken.
            Some(_) => self.first_in_turn(listing).into_iter().collect(),
            None => listing.items.iter().filter(|item| !listing.claimed.contains(&item.text)).collect(),
        };
        let is_due = |item: &ItemName| item.due.is_none_or(|due| due <= clock);
        if !later || free.iter().any(|item| is_due(item)) {
            free.retain(|item| is_due(item));
        }
        if free.is_empty() {
            Prospect::Nothing
        } else if free.iter().all(|item| self.skipped.contains(&item.text, now)) {
            Prospect::Refused(free.into_iter().map(|item| item.text.clone()).collect())
        } else {
            Prospect::Item
        }
    }

    /// Returns the item that would be handed out first now.
    fn first_in_turn<'a>(&self, listing: &'a Listing) -> Option<&'a ItemName> {
        let first = Turns::at(self.time_of_day(), listing.items.iter().cloned()).ready.into_iter().next()?;
        listing.items.iter().find(|item| **item == first)
    }
}
