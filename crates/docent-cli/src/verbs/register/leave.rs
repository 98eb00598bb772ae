use super::arguments::Arguments;
use crate::app::App;
use crate::child::is_stop;
use docent::discovery::Registration;
use rustix::process::Signal;
use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Time after which a command that was asked to end but keeps running is considered to stay.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Delay before a failed state update is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Departure of an instance that was asked to end. From then on, its checks are ignored, unless its command
/// keeps running.
#[derive(Debug)]
pub(super) struct Leave<'a> {
    app: &'a App,
    registration: &'a Registration,
    arguments: &'a Arguments,
    is_leaving: Cell<bool>,
    /// How often the command has stayed.
    survivals: Cell<u32>,
    /// Notified when the command was asked to end.
    end_requested: Notify,
}

impl<'a> Leave<'a> {
    pub(super) fn new(app: &'a App, registration: &'a Registration, arguments: &'a Arguments) -> Self {
        let (is_leaving, survivals) = Default::default();
        Self { app, registration, arguments, is_leaving, survivals, end_requested: Notify::new() }
    }

    /// Returns true from the time the end was requested, while the instance must not be given work.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// Returns how often the command has stayed. A state that was published before does not apply after that.
    pub(super) fn survivals(&self) -> u32 {
        self.survivals.get()
    }

    /// Disables the instance, so that it gets no new work, and waits for work in progress. Does nothing if
    /// this was started before.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The instance then leaves without the rest of the wait.
    pub(super) async fn drain(&self) {
        if self.is_leaving.replace(true) || self.arguments.drain.is_zero() {
            return;
        }
        match self.registration.set_enabled(false).await {
            Ok(()) => sleep(self.arguments.drain).await,
            // No client can have learned that the instance is disabled, so waiting is pointless.
            Err(error) => self.app.output.remark(format!("cannot disable the instance: {error}")),
        }
    }

    /// Records a signal that was passed on to the command.
    pub(super) fn passed_on(&self, signal: Signal) {
        let was_out_of_use = self.arguments.check.is_some() || !self.arguments.drain.is_zero();
        if was_out_of_use && is_stop(signal) {
            self.end_requested.notify_one();
        }
    }

    /// Allows the instance to be given work again whenever its command stays.
    pub(super) async fn cancel_if_command_survives(&self) -> Infallible {
        loop {
            self.end_requested.notified().await;
            // Each further request gives the command the same time again.
            while timeout(END_PATIENCE, self.end_requested.notified()).await.is_ok() {}
            self.is_leaving.set(false);
            self.survivals.set(self.survivals.get() + 1);
            self.app.output.remark(
                "the command was asked to end but keeps running; its instance may be given work again",
            );
            // With a check, the next check decides.
            if self.arguments.check.is_none() {
                self.enable().await;
            }
        }
    }

    /// Enables the instance, unless it is leaving again.
    async fn enable(&self) {
        while !self.is_leaving() {
            match self.registration.set_enabled(true).await {
                Ok(()) => return,
                Err(error) => {
                    self.app.output.remark(format!("cannot enable the instance; retrying: {error}"));
                }
            }
            sleep(RETRY_DELAY).await;
        }
    }
}
