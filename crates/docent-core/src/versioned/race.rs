use super::Cell;
use crate::error::{Error, ErrorKind};
use std::time::Duration;
use tokio::time::Instant;

/// The attempts of one read-and-write on a [`Cell`] that others write, too: one deadline for all of them, and a pause between two.
#[derive(Debug)]
pub struct Race {
    cell: Cell,
    deadline: Instant,
    lost: u32,
}

/// A pause is a random part of this, and twice as much each time,
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// up to so many times.
const DOUBLINGS: u32 = 6;

impl Race {
    pub(super) fn new(cell: &Cell) -> Self {
        Self { cell: cell.clone(), deadline: cell.client().deadline(), lost: 0 }
    }

    /// The cell, whose operations have what is left of the time.
    pub fn cell(&self) -> Cell {
        self.cell.within(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Somebody else was faster: pauses, and lets the server catch up with what that one wrote.
    ///
    /// # Errors
    /// `Timeout` when there is no time left, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&mut self) -> Result<(), Error> {
        if Instant::now() >= self.deadline {
            let detail = format!("others were faster {} times", self.lost + 1);
            return Err(Error::new(ErrorKind::Timeout, "write").at(self.cell.path()).because(detail));
        }
        // The first time there may be nobody but the one who was faster.
        if self.lost > 0 {
            let longest = FIRST_PAUSE * 2_u32.pow(self.lost.min(DOUBLINGS));
            tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        }
        self.lost += 1;
        self.cell().client().sync(self.cell.path()).await
    }
}
