use super::ignored::ignored_signals;
use crate::exit::Failure;
use futures_util::FutureExt;
use futures_util::future::select_all;
use rustix::process::Signal;
use std::io;
use tokio::signal::unix::{self, SignalKind};

/// Signals that end a wait, and are passed on to a command that runs.
const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// True for a signal that is to end a command and all that it has started.
pub(super) fn is_end(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// Signals that came to this process. From its making on they do not end the process by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    listeners: Vec<(Signal, unix::Signal)>,
    /// The last signal that was taken and asks this process to end.
    end: Option<Signal>,
}

impl Signals {
    /// Begins to listen. Signals that the process was started to ignore are left alone.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let ignored = ignored_signals();
        let heard = FORWARDED.into_iter().filter(|signal| ignored >> (signal.as_raw() - 1) & 1 == 0);
        let listen = |signal: Signal| -> io::Result<_> {
            Ok((signal, unix::signal(SignalKind::from_raw(signal.as_raw()))?))
        };
        let listeners = heard.map(listen).collect::<io::Result<_>>();
        Ok(Self {
            listeners: listeners
                .map_err(|error| Failure::Other(format!("cannot listen for signals: {error}")))?,
            end: None,
        })
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
        if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal) {
            self.end = Some(signal);
        }
        signal
    }

    /// Ends with a signal that asked this process to end, and was passed on to a command meanwhile.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check_end(&self) -> Result<(), Failure> {
        self.end.map_or(Ok(()), |signal| Err(Failure::Signal(signal.as_raw())))
    }

    /// Ends with a signal that came and was not taken yet.
    ///
    /// # Errors
    /// `Signal` with that signal.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.next().now_or_never().map_or(Ok(()), |signal| Err(Failure::Signal(signal.as_raw())))
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
            signal = self.next() => Err(Failure::Signal(signal.as_raw())),
            done = work => Ok(done),
        }
    }
}
