//! Methods of all guards.

/// The methods that all guards have, for a field `hold` that is a hold or a set of holds.
macro_rules! guard_methods {
    ($thing:literal, $revoke:literal) => {
        #[doc = concat!("True while it is certain that the ", $thing, " is held. No I/O: compares clock and session, and is right")]
        /// even after the process was frozen. Once false it stays false.
        pub fn is_held(&self) -> bool {
            self.hold.is_held()
        }

        #[doc = concat!("Resolves with the reason when the ", $thing, " is lost; never, when it is released.")]
        ///
        /// # Cancel safety
        /// This method is cancel safe.
        pub async fn lost(&self) -> docent_core::LostReason {
            self.hold.lost().await
        }

        #[doc = concat!("Cancelled when the ", $thing, " is lost; not when it is released. For work that stops by a token.")]
        pub fn token(&self) -> tokio_util::sync::CancellationToken {
            self.hold.token()
        }

        #[doc = concat!("Resolves when somebody asked for the ", $thing, " with [`", $revoke, "`](crate::", $revoke, ").")]
        /// It is held on; release it when it suits.
        ///
        /// # Cancel safety
        /// This method is cancel safe.
        pub async fn revoked(&self) {
            self.hold.revoked().await;
        }

        #[doc = concat!("Runs `future` for as long as the ", $thing, " is held. The clock is looked at before every poll, so that")]
        /// work which was paused does not go on after the loss. A future that blocks its thread cannot be
        /// stopped.
        ///
        /// # Errors
        #[doc = concat!("[`Lost`](docent_core::Lost) as soon as the ", $thing, " is lost; `future` is dropped then.")]
        ///
        /// # Cancel safety
        /// As cancel safe as `future`.
        pub async fn run<F: std::future::Future>(&self, future: F) -> Result<F::Output, docent_core::Lost> {
            self.hold.run(future).await
        }

        #[doc = concat!("Asks the servers whether the ", $thing, " is held: a linearizable check. It was held at one moment between")]
        /// call and return; [`is_held`](Self::is_held) says whether it may still be.
        ///
        /// # Errors
        /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
        ///
        /// # Cancel safety
        /// This method is cancel safe.
        pub async fn verify(&self) -> Result<(), docent_core::Error> {
            self.hold.verify().await
        }

        #[doc = concat!("Prepares writes to ZooKeeper that are applied, all together, only while the ", $thing, " is held.")]
        pub fn transaction(&self) -> docent_core::Transaction {
            self.hold.transaction()
        }
    };
}

pub(crate) use guard_methods;
