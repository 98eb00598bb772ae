use super::{History, Plan};
use docent_core::recipe::VersionedNode;
use docent_core::{Error, ErrorKind};
use futures_util::future::try_join_all;
use std::collections::BTreeSet;

/// Parts of the history that stood in the way of one publish, which then goes on without them.
#[derive(Debug, Default)]
pub(crate) struct Obstacles {
    /// Names of earlier values that stay, because somebody put nodes below them.
    pub(super) stay: BTreeSet<String>,
    /// How often such names were looked for.
    looks: u32,
    /// Nothing is deleted.
    pub(super) no_removal: bool,
    /// The history is not touched at all.
    pub(super) untouched: bool,
}

/// Times that one publish looks for earlier values with nodes below them, before it deletes none.
const MOST_LOOKS: u32 = 4;

impl Obstacles {
    /// True when nothing stood in the way.
    pub(crate) fn is_none(&self) -> bool {
        self.looks == 0 && !self.no_removal && !self.untouched
    }
}

impl History {
    /// Finds out how to publish without the part of `plan` that the servers refused with `error`.
    ///
    /// # Errors
    /// `error` where it is not about the history.
    pub(crate) async fn give_way(
        &self,
        versioned: &VersionedNode,
        plan: &Plan,
        error: Error,
        obstacles: &mut Obstacles,
    ) -> Result<(), Error> {
        let Some(path) = error.path().filter(|path| path.starts_with(&self.folder)) else {
            return Err(error);
        };
        let is_removal = plan.remove.iter().any(|name| path.ends_with(name));
        match error.kind() {
            ErrorKind::NotEmpty if obstacles.looks < MOST_LOOKS => {
                obstacles.looks += 1;
                obstacles.stay.extend(self.occupied(versioned, &plan.remove).await?);
            }
            ErrorKind::NotEmpty => obstacles.no_removal = true,
            ErrorKind::NoAuth if is_removal => obstacles.no_removal = true,
            ErrorKind::NoAuth | ErrorKind::NoChildrenForEphemerals => obstacles.untouched = true,
            _ => return Err(error),
        }
        tracing::warn!(path, %error, "publishing without this part of the history");
        Ok(())
    }

    /// Those of the `names` that have nodes below them.
    async fn occupied(&self, versioned: &VersionedNode, names: &[String]) -> Result<Vec<String>, Error> {
        let look = async |name: &String| {
            let stat = versioned.client().exists(&format!("{}/{name}", self.folder)).await?;
            Ok(stat.is_some_and(|stat| stat.num_children > 0).then(|| name.clone()))
        };
        let found = try_join_all(names.iter().map(look)).await?;
        Ok(found.into_iter().flatten().collect())
    }
}
