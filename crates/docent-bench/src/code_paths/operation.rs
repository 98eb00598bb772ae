use clap::ValueEnum;
use std::fmt;

/// An operation whose code is profiled.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Operation {
    /// Acquires a free mutex.
    Acquire,
    /// Acquires a mutex that has a holder and a waiter.
    AcquireBehindTwo,
    /// Publishes a configuration value and waits until a subscription returns it.
    Publish,
    /// Takes an item and acknowledges it.
    TakeAndAck,
}

impl Operation {
    /// Returns the name of the operation on the command line of a worker.
    pub(super) fn argument(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquire => "`Mutex::acquire`, free",
            Self::AcquireBehindTwo => "`Mutex::acquire`, behind two",
            Self::Publish => "`Config::publish` until `changed()`",
            Self::TakeAndAck => "`Queue::take` and `ack`",
        })
    }
}
