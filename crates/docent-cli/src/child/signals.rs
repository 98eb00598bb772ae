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

/// Signals that end a wait, and are passed on to a command that runs.
const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// True for a signal that is to end a command and all that it has started.
pub(crate) fn is_end(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// Signals that came to this process. From its making on they do not end the process by themselves, and
/// SIGTTIN and SIGTTOU do not stop it: it is to be made before other threads are.
#[derive(Debug)]
pub(crate) struct Signals {
    listeners: Vec<(Signal, unix::Signal)>,
    /// The last signal that was taken and asks this process to end.
    end: Option<Signal>,
}

impl Signals {
    /// Begins to listen. Signals that the process was started to ignore are left alone.
    pub(crate) fn listen() -> Result<Self, Failure> {
        job_control::block_terminal_stops().map_err(|error| unheard(&error.into()))?;
        // Whoever started us may have blocked it. The end of a command would not be heard.
        SigSet::from(Mask::SIGCHLD).thread_unblock().map_err(|error| unheard(&error.into()))?;
        let mut signals = Self { listeners: Vec::new(), end: None };
        FORWARDED.into_iter().try_for_each(|signal| signals.hear(signal))?;
        Ok(signals)
    }

    /// Begins to listen for SIGTSTP as well, so that a command that runs can be stopped before this process.
    pub(super) fn hear_suspend(&mut self) -> Result<(), Failure> {
        match self.listeners.iter().any(|(signal, _)| *signal == Signal::TSTP) {
            true => Ok(()),
            false => self.hear(Signal::TSTP),
        }
    }

    fn hear(&mut self, signal: Signal) -> Result<(), Failure> {
        let number = signal.as_raw();
        if ignored_signals() >> (number - 1) & 1 == 0 {
            let listener = unix::signal(SignalKind::from_raw(number)).map_err(|error| unheard(&error))?;
            self.listeners.push((signal, listener));
        }
        Ok(())
    }

    /// The next signal.
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

    /// Passes signals on to a group until one comes that asks for the end, and returns that one.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn asked_to_end(&mut self, group: &Group) -> Signal {
        loop {
            match self.next().await {
                Signal::TSTP => job_control::suspend(group),
                signal if is_end(signal) => return signal,
                signal => group.signal(signal),
            }
        }
    }

    /// Notes a signal that was typed at the terminal of a command and has ended it: it asks us to end, too.
    pub(super) fn note_end(&mut self, signal: Signal) {
        self.end = Some(signal);
    }

    /// Ends with a signal that asked this process to end, and was passed on to a command meanwhile.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check_end(&self) -> Result<(), Failure> {
        self.end.map_or(Ok(()), |signal| Err(Failure::signal(signal.as_raw())))
    }

    /// Ends with a signal that came and was not taken yet.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.next_end().now_or_never().map_or(Ok(()), |signal| Err(Failure::signal(signal.as_raw())))
    }

    /// Waits for `work`, or for a signal that ends the wait: `work` is dropped then.
    ///
    /// # Errors
    /// `Signal` with the signal that came.
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

    /// The next signal that ends a wait, in which no command runs.
    async fn next_end(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::TSTP => job_control::suspend_alone(),
                signal => return signal,
            }
        }
    }
}

fn unheard(error: &io::Error) -> Failure {
    Failure::other(format!("cannot listen for signals: {error}"))
}
