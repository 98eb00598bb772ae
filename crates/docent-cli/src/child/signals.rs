use super::group::Group;
use super::ignored::ignored_signals;
use super::job_control;
use crate::exit::Failure;
use futures_util::FutureExt;
use futures_util::future::select_all;
use nix::sys::signal::{SigSet, Signal as Mask};
use rustix::process::Signal;
use std::io;
use tokio::signal::unix::{self, SignalKind};

/// Signals that end a wait, and that are passed on to a running command.
const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Returns true for a signal that must end a command and everything that it has started.
pub(crate) fn is_end(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// Signals sent to this process. Once this value exists, these signals no longer end the process, and SIGTTIN
/// and SIGTTOU do not stop it. Create it before any other thread.
#[derive(Debug)]
pub(crate) struct Signals {
    listeners: Vec<(Signal, unix::Signal)>,
    /// Last received signal that asks this process to end.
    end: Option<Signal>,
}

impl Signals {
    /// Starts listening. Signals that the process was started to ignore are left alone.
    pub(crate) fn listen() -> Result<Self, Failure> {
        job_control::block_terminal_stops().map_err(|error| cannot_listen(&error.into()))?;
        // The parent may have blocked SIGCHLD. The end of a command would then go unnoticed.
        SigSet::from(Mask::SIGCHLD).thread_unblock().map_err(|error| cannot_listen(&error.into()))?;
        let mut signals = Self { listeners: Vec::new(), end: None };
        FORWARDED.into_iter().try_for_each(|signal| signals.add_listener(signal))?;
        Ok(signals)
    }

    /// Starts listening for SIGTSTP as well, so that a running command can be stopped before this process.
    pub(super) fn listen_for_suspend(&mut self) -> Result<(), Failure> {
        match self.listeners.iter().any(|(signal, _)| *signal == Signal::TSTP) {
            true => Ok(()),
            false => self.add_listener(Signal::TSTP),
        }
    }

    fn add_listener(&mut self, signal: Signal) -> Result<(), Failure> {
        let number = signal.as_raw();
        if ignored_signals() >> (number - 1) & 1 == 0 {
            let listener =
                unix::signal(SignalKind::from_raw(number)).map_err(|error| cannot_listen(&error))?;
            self.listeners.push((signal, listener));
        }
        Ok(())
    }

    /// Returns the next signal.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        if self.listeners.is_empty() {
            return std::future::pending().await;
        }
        let next = self.listeners.iter_mut().map(|(signal, listener)| {
            Box::pin(async move {
                match listener.recv().await {
                    Some(()) => *signal,
                    None => std::future::pending().await,
                }
            })
        });
        let signal = select_all(next).await.0;
        if is_end(signal) {
            self.end = Some(signal);
        }
        signal
    }

    /// Passes signals on to a group until a signal asks for the end, and returns that signal.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn next_end_request(&mut self, group: &Group) -> Signal {
        loop {
            match self.next().await {
                Signal::TSTP => job_control::suspend(group),
                signal if is_end(signal) => return signal,
                signal => group.signal(signal),
            }
        }
    }

    /// Records a signal that was typed at the terminal of a command and has ended the command: it asks docent
    /// to end, too.
    pub(super) fn note_end(&mut self, signal: Signal) {
        self.end = Some(signal);
    }

    /// Fails if a signal asked this process to end and was passed on to a command.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check_end(&self) -> Result<(), Failure> {
        self.end.map_or(Ok(()), |signal| Err(Failure::signal(signal.as_raw())))
    }

    /// Fails if a signal was received that no one has taken yet.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.next_end().now_or_never().map_or(Ok(()), |signal| Err(Failure::signal(signal.as_raw())))
    }

    /// Waits for `work`, or for a signal that ends the wait and drops `work`.
    ///
    /// # Errors
    /// `Signal` with the received signal.
    ///
    /// # Cancel safety
    /// As cancel safe as `work`.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            signal = self.next_end() => Err(Failure::signal(signal.as_raw())),
            done = work => Ok(done),
        }
    }

    /// Returns the next signal that ends a wait in which no command runs.
    async fn next_end(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::TSTP => job_control::suspend_alone(),
                signal => return signal,
            }
        }
    }
}

fn cannot_listen(error: &io::Error) -> Failure {
    Failure::other(format!("cannot listen for signals: {error}"))
}
