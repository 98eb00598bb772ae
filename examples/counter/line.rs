use docent::Fence;
use std::fmt;
use std::str::FromStr;

/// Report of a process to its parent, one line each on its standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// The process added 1 under this fence.
    Done(Fence),
    /// The process holds the lock.
    Holding(Fence),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(fence) => write!(f, "done {fence}"),
            Self::Holding(fence) => write!(f, "holding {fence}"),
        }
    }
}

impl FromStr for Line {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once(' ') {
            Some(("done", fence)) => Ok(Self::Done(fence.parse()?)),
            Some(("holding", fence)) => Ok(Self::Holding(fence.parse()?)),
            _ => anyhow::bail!("unexpected output of a process: {text:?}"),
        }
    }
}
