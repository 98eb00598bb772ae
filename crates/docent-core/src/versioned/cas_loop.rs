use super::VersionedNode;
use crate::error::{Error, ErrorKind};
use std::time::Duration;
use tokio::time::Instant;

/// The attempts of a read-modify-write on a [`VersionedNode`] that other clients also write: one deadline for
/// all attempts, and pauses between them.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::VersionedNode;
/// # use docent_core::Error;
/// /// Appends to the text in a node.
/// async fn append(text: &VersionedNode, more: &str) -> Result<(), Error> {
///     let mut cas = text.cas_loop();
///     loop {
///         let node = cas.versioned();
///         let seen = node.read().await?;
///         let mut data = seen.as_ref().map_or_else(Vec::new, |node| node.data.to_vec());
///         data.extend_from_slice(more.as_bytes());
///         let stat = seen.as_ref().map(|node| &node.stat);
///         if node.write(stat, &data.into(), |with| with).await?.is_some() {
///             return Ok(());
///         }
///         cas.lost().await?;
///     }
/// }
/// ```
#[derive(Debug)]
pub struct CasLoop {
    versioned: VersionedNode,
    deadline: Instant,
    lost: u32,
}

/// Maximum length of the first pause. Each pause is a random part of its maximum, which doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Number of times that the maximum pause doubles.
const DOUBLINGS: u32 = 6;

impl CasLoop {
    pub(super) fn new(versioned: &VersionedNode) -> Self {
        Self { versioned: versioned.clone(), deadline: versioned.client().deadline(), lost: 0 }
    }

    /// The node, whose operations use the remaining time.
    pub fn versioned(&self) -> VersionedNode {
        self.versioned.within(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Pauses after another client wrote first, and lets the server catch up with that write.
    ///
    /// # Errors
    /// `Timeout` if no time is left; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&mut self) -> Result<(), Error> {
        if Instant::now() >= self.deadline {
            let detail = format!("other clients wrote first {} times", self.lost + 1);
            return Err(Error::new(ErrorKind::Timeout, "write").at(self.versioned.path()).because(detail));
        }
        // No pause the first time: there may be only one other writer, and it has finished.
        if self.lost > 0 {
            let longest = FIRST_PAUSE * 2_u32.pow(self.lost.min(DOUBLINGS));
            tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        }
        self.lost += 1;
        self.versioned().client().sync(self.versioned.path()).await
    }
}
