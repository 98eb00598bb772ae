use super::Place;
use docent_checker::{AttemptId, Following, What};

/// Writes down what somebody who follows a value is shown.
///
/// # On drop
/// It is written down that it is over; not when its process dies.
pub(super) struct Shown<'a> {
    place: &'a Place,
    id: AttemptId,
}

impl<'a> Shown<'a> {
    pub(super) fn begin(place: &'a Place, path: &str) -> Self {
        let shown = Self { place, id: place.scribe.attempt() };
        shown.write(Following::Begins(path.to_owned()));
        shown
    }

    pub(super) fn write(&self, step: Following) {
        self.place.scribe.write(What::Followed(self.id, step));
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if !self.place.controls.is_dying() {
            self.write(Following::Over);
        }
    }
}
