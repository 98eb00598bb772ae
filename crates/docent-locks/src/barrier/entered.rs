use super::DoubleBarrier;
use docent_core::recipe::{InOperation, KeptNode, debug_handle};
use docent_core::{Error, planted};
use std::collections::HashSet;
use std::fmt;

/// Member that was let in by a [`DoubleBarrier`].
///
/// # On drop
/// The member leaves in the background, without waiting for the others.
#[must_use = "the member leaves when this is dropped"]
pub struct Entered {
    barrier: DoubleBarrier,
    member: KeptNode,
    name: String,
}

impl Entered {
    pub(crate) fn new(barrier: DoubleBarrier, member: KeptNode, name: String) -> Self {
        Self { barrier, member, name }
    }

    /// Returns the path of the member's node.
    pub fn path(&self) -> &str {
        self.member.path()
    }

    /// Leaves, and waits until all current members have left. Members that arrive later belong to the next
    /// round.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`: the member leaves in the background.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the member leaves in the background, without waiting for the others.
    pub async fn leave(self) -> Result<(), Error> {
        self.wait_for_others().await.in_operation("leave")
    }

    async fn wait_for_others(self) -> Result<(), Error> {
        let Self { barrier, member, name } = self;
        let round: HashSet<String> = barrier.names().await?.into_iter().collect();
        let mut member = Some(member);
        loop {
            let (mut names, ready) = barrier.listing().await?;
            let has_stale_ready = ready && names.is_empty();
            names.retain(|name| round.contains(name));
            // The first member leaves last, so that all others wait for the same node and are woken once.
            let awaited = match (names.as_slice(), member.is_some()) {
                ([first, .., last], true) if *first == name => last,
                (names, true) => {
                    if names == [name.as_str()] {
                        barrier.close(&name).await?;
                    }
                    if let Some(member) = member.take() {
                        // If the removal is pending, the next steps wait for this member's own node.
                        member.remove().await?;
                    }
                    continue;
                }
                (_, false) if planted!(LeavesAtOnce) => return Ok(()),
                ([first, ..], false) => first,
                ([], false) if has_stale_ready => return barrier.remove_stale_ready().await,
                ([], false) => return Ok(()),
            };
            barrier.until_deleted(awaited).await?;
        }
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Entered", self.path(), &self.barrier.client).finish_non_exhaustive()
    }
}
