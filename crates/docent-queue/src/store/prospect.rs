use super::{Listing, Store};
use crate::layout::{ItemName, Turns};
use tokio::time::Instant;

/// Items that a listing of the queue has for this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// An item that this process may take.
    Item,
    /// Free items, all of which this process leaves to others.
    Refused(Vec<String>),
    /// No free item.
    Nothing,
}

impl Store {
    /// Notes which items there are, and which of them can be taken.
    pub(crate) fn note(&self, listing: &Listing) {
        if listing.folder == 0 {
            return;
        }
        self.aside.keep_only(listing.folder, &listing.items);
        match &self.lock {
            Some(_) => {
                let first = self.first_in_turn(listing);
                self.aside.note_free(|name| first.is_some_and(|first| first.text == name));
            }
            None => self.aside.note_free(|name| !listing.claimed.contains(name)),
        }
    }

    /// The items that `listing` has for this process now. With `later` also those whose time is still to
    /// come, if no other one is free.
    pub(crate) fn prospect(&self, listing: &Listing, later: bool) -> Prospect {
        let (clock, now) = (self.time_of_day(), Instant::now());
        let mut free: Vec<_> = match &self.lock {
            // Strictly in order, only the first one may be taken.
            Some(_) => self.first_in_turn(listing).into_iter().collect(),
            None => listing.items.iter().filter(|item| !listing.claimed.contains(&item.text)).collect(),
        };
        let is_due = |item: &ItemName| item.due.is_none_or(|due| due <= clock);
        if !later || free.iter().any(|item| is_due(item)) {
            free.retain(|item| is_due(item));
        }
        if free.is_empty() {
            Prospect::Nothing
        } else if free.iter().all(|item| self.aside.has(&item.text, now)) {
            Prospect::Refused(free.into_iter().map(|item| item.text.clone()).collect())
        } else {
            Prospect::Item
        }
    }

    /// The item that is handed out first now.
    fn first_in_turn<'a>(&self, listing: &'a Listing) -> Option<&'a ItemName> {
        let first = Turns::at(self.time_of_day(), listing.items.iter().cloned()).ready.into_iter().next()?;
        listing.items.iter().find(|item| **item == first)
    }
}
