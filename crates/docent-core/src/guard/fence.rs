use crate::error::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A fencing token: increases from one holder of a path to the next.
///
/// A resource that remembers the highest fence it has seen and refuses lower ones is safe from a holder that
/// was paused until another client took over. The value derives from the transaction that created the
/// holder's node. Treat the value as opaque, and compare only fences of the same path.
///
/// # In databases and messages
/// A fence is a number from 0 to 2^63 − 1, so a signed 64-bit column (`BIGINT`) holds every fence and keeps
/// their order. [`as_i64`](Self::as_i64) and `TryFrom<i64>` convert between the two. A fence is serialized as
/// that number. As text it is decimal without leading zeros, so texts do not sort in the order of the fences.
///
/// ```
/// # use docent_core::Fence;
/// let fence: Fence = "4294967301".parse()?;
/// assert_eq!(fence.to_string(), "4294967301");
/// assert!(fence < "4294967302".parse()?);
/// assert_eq!(Fence::try_from(fence.as_i64())?, fence);
/// # Ok::<(), docent_core::ParseFenceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Fence(u64);

impl Fence {
    /// Returns the fence of a node from the transaction that created the node. Transactions are numbered from
    /// 1 upwards.
    pub(crate) fn from_czxid(czxid: i64) -> Self {
        Self(u64::try_from(czxid).unwrap_or(0))
    }

    /// Returns the value as a number, for stores that compare numbers.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the value as a signed number, for stores that have no unsigned numbers. The number is not
    /// negative and preserves the order of the fences.
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

impl From<Fence> for i64 {
    fn from(fence: Fence) -> Self {
        fence.as_i64()
    }
}

impl TryFrom<u64> for Fence {
    type Error = ParseFenceError;

    fn try_from(number: u64) -> Result<Self, ParseFenceError> {
        if i64::try_from(number).is_ok() {
            Ok(Self(number))
        } else {
            Err(ParseFenceError(number.to_string()))
        }
    }
}

impl TryFrom<i64> for Fence {
    type Error = ParseFenceError;

    fn try_from(number: i64) -> Result<Self, ParseFenceError> {
        u64::try_from(number).map(Self).map_err(|_| ParseFenceError(number.to_string()))
    }
}

/// A text or number that is not a valid fence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fence {0:?} must be a decimal number from 0 to 2^63 − 1")]
pub struct ParseFenceError(String);

impl From<ParseFenceError> for Error {
    fn from(error: ParseFenceError) -> Self {
        Self::of_recipe(ErrorKind::InvalidInput, "parse", error)
    }
}

impl FromStr for Fence {
    type Err = ParseFenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse::<u64>().ok().and_then(|number| Self::try_from(number).ok());
        number.ok_or_else(|| ParseFenceError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_survives_a_signed_column_and_keeps_its_order() {
        let numbers = [0, 1, 4_294_967_301, i64::MAX];
        let fences = numbers.map(|number| Fence::try_from(number).unwrap());
        assert!(fences.is_sorted());
        assert_eq!(fences.map(Fence::as_i64), numbers);
        assert_eq!(fences.map(i64::from), numbers);
        assert_eq!(fences.map(u64::from), fences.map(Fence::as_u64));
    }

    #[test]
    fn a_fence_is_serialized_as_its_number() {
        let fence = Fence::from_czxid(4_294_967_301);
        assert_eq!(serde_json::to_string(&fence).unwrap(), "4294967301");
        assert_eq!(serde_json::from_str::<Fence>("4294967301").unwrap(), fence);
    }

    #[test]
    fn numbers_that_no_signed_column_holds_are_refused() {
        let rule = "must be a decimal number from 0 to 2^63 − 1";
        assert_eq!(Fence::try_from(-1_i64).unwrap_err().to_string(), format!("fence \"-1\" {rule}"));
        let large = "9223372036854775808";
        assert_eq!(large.parse::<Fence>().unwrap_err().to_string(), format!("fence {large:?} {rule}"));
        assert!(Fence::try_from(1_u64 << 63).is_err());
        assert!(serde_json::from_str::<Fence>(large).unwrap_err().to_string().contains(rule));
        assert!(serde_json::from_str::<Fence>("-1").is_err());
    }
}
