use super::DoubleBarrier;
use docent_core::recipe::{KeptNode, debug_handle};
use docent_core::{Error, planted};
use std::collections::HashSet;
use std::fmt;

/// A member that was let in by a [`DoubleBarrier`].
///
/// # On drop
/// It leaves in the background, without waiting for the others.
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

    /// The path of the member's node.
    pub fn path(&self) -> &str {
        self.member.path()
    }

    /// Leaves, and waits until all members that are in now have left. Members that come later are of the next
    /// round.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`: it leaves in the background.
    ///
    /// # Cancel safety
    /// This method is cancel safe: it leaves in the background, without waiting for the others.
    pub async fn leave(self) -> Result<(), Error> {
        let Self { barrier, member, name } = self;
        let round: HashSet<String> = barrier.names().await?.into_iter().collect();
        let mut member = Some(member);
        loop {
            let (mut names, ready) = barrier.listing().await?;
            let is_left_over = ready && names.is_empty();
            names.retain(|name| round.contains(name));
            // The first one leaves last, so that all others wait for the same and are woken once.
            let awaited = match (names.as_slice(), member.is_some()) {
                ([first, .., last], true) if *first == name => last,
                (names, true) => {
                    if names == [name.as_str()] {
                        barrier.close(&name).await?;
                    }
                    if let Some(member) = member.take() {
                        member.remove().await?;
                    }
                    continue;
                }
                (_, false) if planted!(LeavesAtOnce) => return Ok(()),
                ([first, ..], false) => first,
                ([], false) if is_left_over => return barrier.remove_left_over().await,
                ([], false) => return Ok(()),
            };
            barrier.until_gone(awaited).await?;
        }
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Entered", self.path(), &self.barrier.client).finish_non_exhaustive()
    }
}
