//! Lines in which the first few hold. How many that are is for the recipe to say.

use super::line::{Line, Ticket};
use super::name::is_in_danger_zone;

impl Line {
    /// How many of `names` are ahead of `ticket`; `None` when it is not among them. Once it is drawn that only becomes less.
    pub fn ahead_of(&self, ticket: &Ticket, names: &[String]) -> Option<usize> {
        let (own, _) = self.contender(ticket.name())?;
        // A ticket of ours is never in the danger zone, and whatever is came later.
        let is_ahead = |name: &&String| {
            self.contender(name).is_some_and(|(number, _)| number < own && !is_in_danger_zone(number))
        };
        let is_listed = names.iter().any(|name| name == ticket.name());
        is_listed.then(|| names.iter().filter(is_ahead).count())
    }
}

impl Ticket {
    /// How many were ahead when it was drawn; `None` when that is not known. By now it may be fewer.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }
}
