use super::{Hold, run_while};
use crate::client::{Transaction, while_held};
use crate::error::Error;
use crate::guard::{Lost, LostReason};
use futures_util::future::{join_all, select_all};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Several holds as one, of one client: it is held while all of them are, and lost as soon as one of them is.
///
/// # On drop
/// All are given up, but for those that somebody else shares.
#[derive(Debug)]
#[must_use = "dropping the set gives its holds up"]
pub struct HoldSet {
    holds: Vec<Arc<Hold>>,
    /// Cancelled when one is lost.
    token: CancellationToken,
    /// Number under which the holds know that token.
    number: u64,
}

impl HoldSet {
    /// All of `holds` as one.
    ///
    /// # Errors
    /// `InvalidInput` when there is none.
    pub fn new(holds: Vec<Arc<Hold>>) -> Result<Self, Error> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
        if holds.is_empty() {
            return Err(Error::invalid_input("acquire", "a set of 0 holds must have at least one"));
        }
        let (token, number) = (CancellationToken::new(), NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        holds.iter().for_each(|hold| hold.state().join(number, &token));
        Ok(Self { holds, token, number })
    }

    /// All of `holds` as one, once it is certain that all were held at the same moment: the first may have
    /// been deleted before the last came, which is not known yet. `None` when one was lost.
    ///
    /// # Errors
    /// `InvalidInput` when there is none; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the holds are given up.
    pub async fn together(holds: Vec<Arc<Hold>>) -> Result<Option<Self>, Error> {
        let set = Self::new(holds)?;
        // `verify` asks for each node: all stood at the moment when the first was found, for all were made
        // before that.
        let proven = if set.holds.len() > 1 { set.verify().await } else { Ok(()) };
        match proven {
            Err(error) if !error.is_lost() => Err(error),
            _ => Ok(set.is_held().then_some(set)),
        }
    }

    /// The holds, in the order they were given.
    pub fn holds(&self) -> &[Arc<Hold>] {
        &self.holds
    }

    /// True while all are certainly held. See [`Hold::is_held`].
    pub fn is_held(&self) -> bool {
        self.check().is_ok()
    }

    /// Time for which all are certain to be held, if no further write is acknowledged. See
    /// [`Guard::lease_left`](crate::Guard::lease_left).
    pub fn lease_left(&self) -> Duration {
        self.holds.iter().map(|hold| hold.lease_left()).min().unwrap_or_default()
    }

    /// As [`is_held`](Self::is_held), with the reason.
    ///
    /// # Errors
    /// [`Lost`] with the first one's reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.holds.iter().try_for_each(|hold| hold.check())
    }

    /// Resolves when one is lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        select_all(self.holds.iter().map(|hold| Box::pin(hold.lost()))).await.0
    }

    /// Cancelled when one is lost; not when they are released. Cancelling it changes nothing about the holds.
    pub fn token(&self) -> CancellationToken {
        self.token.child_token()
    }

    /// Resolves when somebody asked for one of them.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        select_all(self.holds.iter().map(|hold| Box::pin(hold.revoked()))).await;
    }

    /// Polls `future` for as long as all are held. See [`Hold::run`].
    ///
    /// # Errors
    /// [`Lost`] as soon as one is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        run_while(|| self.check(), self.lost(), future).await
    }

    /// Asks a quorum whether all are held. See [`Hold::verify`].
    ///
    /// # Errors
    /// As [`Hold::verify`].
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        let states: Vec<_> = self.holds.iter().map(|hold| Arc::clone(hold.state())).collect();
        // One check for all would do, but would not tell which hold is lost.
        let verify = join_all(self.holds.iter().map(|hold| hold.verify()));
        let answers = Box::pin(while_held(&states, verify)).await;
        answers.into_iter().flatten().collect::<Result<(), Error>>()?;
        // A hold may have been lost since its answer, while those of the others were waited for.
        self.holds.iter().try_for_each(|hold| hold.check_for("verify"))
    }

    /// Prepares writes that are applied, all together, only while all are held.
    pub fn transaction(&self) -> Transaction {
        let client = self.holds[0].client().clone();
        Transaction::held(client, self.holds.iter().map(|hold| Arc::clone(hold.state())))
    }

    /// Gives all up and waits until their nodes are deleted. Holds that somebody else shares are left to
    /// that.
    ///
    /// # Errors
    /// That of the first one that failed, as [`Hold::release`]. All are given up whatever it is.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(mut self) -> Result<(), Error> {
        let was_held = self.holds.iter().try_for_each(|hold| hold.check_for("release"));
        self.separate();
        let holds = std::mem::take(&mut self.holds);
        // All deletes are submitted before the first one is waited for.
        let releases = holds.into_iter().filter_map(Arc::into_inner).map(Hold::release);
        was_held.and(join_all(releases).await.into_iter().collect())
    }

    fn separate(&self) {
        self.holds.iter().for_each(|hold| hold.state().leave(self.number));
    }
}

impl Drop for HoldSet {
    fn drop(&mut self) {
        self.separate();
    }
}
