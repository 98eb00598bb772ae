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

/// Time after which a command that was told to end, and lives on, is taken to stay.
const STAYS: Duration = Duration::from_secs(5);

/// Time until a state that could not be told is told again.
const AGAIN: Duration = Duration::from_secs(1);

/// Leave of an instance whose end was asked for. Its checks do not count from then on, unless its command
/// lives on.
#[derive(Debug)]
pub(super) struct Leave<'a> {
    app: &'a App,
    registration: &'a Registration,
    arguments: &'a Arguments,
    is_leaving: Cell<bool>,
    /// Number of the times that the command stayed.
    stays: Cell<u32>,
    /// Comes when the command was told to end.
    told: Notify,
}

impl<'a> Leave<'a> {
    pub(super) fn new(app: &'a App, registration: &'a Registration, arguments: &'a Arguments) -> Self {
        let (is_leaving, stays) = Default::default();
        Self { app, registration, arguments, is_leaving, stays, told: Notify::new() }
    }

    /// True from the time at which the end was asked for, while the instance may be given no work.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// Number of the times that the command stayed. What was told of the instance before does not hold then.
    pub(super) fn stays(&self) -> u32 {
        self.stays.get()
    }

    /// Disables the instance, so that nobody gives it work any more, and waits for work that is under way.
    /// Does nothing when that was begun before.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the instance leaves without the rest of the wait.
    pub(super) async fn drain(&self) {
        if self.is_leaving.replace(true) || self.arguments.drain.is_zero() {
            return;
        }
        match self.registration.set_enabled(false).await {
            Ok(()) => sleep(self.arguments.drain).await,
            // Nobody can have heard of it then.
            Err(error) => self.app.output.remark(format!("the instance could not be disabled: {error}")),
        }
    }

    /// Takes note of a signal that was passed on to the command.
    pub(super) fn passed_on(&self, signal: Signal) {
        let was_out_of_use = self.arguments.check.is_some() || !self.arguments.drain.is_zero();
        if was_out_of_use && is_stop(signal) {
            self.told.notify_one();
        }
    }

    /// Lets the instance be given work again whenever its command stays.
    pub(super) async fn end_if_command_stays(&self) -> Infallible {
        loop {
            self.told.notified().await;
            // Told again, it has as much time again.
            while timeout(STAYS, self.told.notified()).await.is_ok() {}
            self.is_leaving.set(false);
            self.stays.set(self.stays.get() + 1);
            self.app.output.remark("the command was told to end and lives on: its instance gets work again");
            // Else the next check tells.
            if self.arguments.check.is_none() {
                self.enable().await;
            }
        }
    }

    /// Enables the instance, unless it leaves again.
    async fn enable(&self) {
        while !self.is_leaving() {
            match self.registration.set_enabled(true).await {
                Ok(()) => return,
                Err(error) => self.app.output.remark(format!("the instance could not be enabled: {error}")),
            }
            sleep(AGAIN).await;
        }
    }
}
