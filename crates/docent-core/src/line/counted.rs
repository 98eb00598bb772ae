//! Lines in which the first few hold; the recipe says how many.

use super::line::{Line, Ticket};
use super::name::is_in_danger_zone;

impl Line {
    /// Number of contenders among `names` that are ahead of `ticket`; `None` when the ticket is not among
    /// them. Once it is drawn the number only becomes less.
    pub fn ahead_of(&self, ticket: &Ticket, names: &[String]) -> Option<usize> {
        let (own, _) = self.contender(ticket.name())?;
        // A ticket of ours is never in the danger zone, and a contender that is came later.
        let is_ahead = |name: &&String| {
            self.contender(name).is_some_and(|(number, _)| number < own && !is_in_danger_zone(number))
        };
        let is_listed = names.iter().any(|name| name == ticket.name());
        is_listed.then(|| names.iter().filter(is_ahead).count())
    }
}

impl Ticket {
    /// Number of contenders that were ahead when it was drawn; `None` when that is not known. By now it may
    /// be fewer.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }
}
