use std::fmt;
use std::str::FromStr;

/// A fencing token: increases from one holder of a path to the next.
///
/// A resource that remembers the highest fence it has seen and refuses lower ones is safe from a holder that
/// was paused for so long that somebody else took over. The value is made from the transaction that created
/// the holder's node; treat it as opaque and compare only fences of the same path.
///
/// ```
/// # use docent_core::Fence;
/// let fence: Fence = "4294967301".parse()?;
/// assert_eq!(fence.to_string(), "4294967301");
/// assert!(fence < "4294967302".parse()?);
/// # Ok::<(), docent_core::ParseFenceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// Fence of a node by the transaction that created it. Transactions are numbered from 1 upwards.
    pub(crate) fn from_czxid(czxid: i64) -> Self {
        Self(u64::try_from(czxid).unwrap_or(0))
    }

    /// The value as a number, for stores that compare numbers.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not a fence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fence {0:?} is not a decimal number of 64 bits")]
pub struct ParseFenceError(String);

impl FromStr for Fence {
    type Err = ParseFenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| ParseFenceError(text.to_owned()))
    }
}
