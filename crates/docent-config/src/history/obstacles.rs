use super::{History, Plan};
use docent_core::recipe::{VersionedNode, full_error, full_path};
use docent_core::{Error, ErrorKind};
use futures_util::future::try_join_all;
use std::collections::BTreeSet;

/// Parts of the history that blocked a publish, which then continues without them.
#[derive(Debug, Default)]
pub(crate) struct Obstacles {
    /// Names of earlier values that are kept because another client created nodes below them.
    pub(super) occupied: BTreeSet<String>,
    /// Number of times such names were searched for.
    searches: u32,
    /// Nothing is deleted.
    pub(super) no_removal: bool,
    /// The history is not touched at all.
    pub(super) untouched: bool,
}

/// Maximum number of searches for earlier values with nodes below them. After that, the publish deletes none.
const MAX_SEARCHES: u32 = 4;

impl Obstacles {
    /// Returns true if nothing blocked the publish.
    pub(crate) fn is_none(&self) -> bool {
        self.searches == 0 && !self.no_removal && !self.untouched
    }
}

impl History {
    /// Determines how to publish without the part of `plan` that the servers refused with `error`.
    ///
    /// # Errors
    /// `error`, if it is not about the history.
    pub(crate) async fn skip_refused(
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
            ErrorKind::NotEmpty if obstacles.searches < MAX_SEARCHES => {
                obstacles.searches += 1;
                obstacles.occupied.extend(self.find_occupied(versioned, &plan.remove).await?);
            }
            ErrorKind::NotEmpty => obstacles.no_removal = true,
            ErrorKind::NoAuth if is_removal => obstacles.no_removal = true,
            ErrorKind::NoAuth | ErrorKind::NoChildrenForEphemerals => obstacles.untouched = true,
            _ => return Err(error),
        }
        // Event: A part of a value's history could not be changed, because of missing permissions or foreign
        // nodes below it. The value is published without that change.
        // Action: Grant the client CREATE on the value's node, and CREATE and DELETE on its `_history`
        // folder. Remove foreign nodes below the earlier values in that folder.
        tracing::warn!(target: "docent::config", client = %versioned.client().label(), path = %full_path(versioned.client(), path), error = %full_error(versioned.client(), &error), "cannot update a part of the history; publishing without this part");
        Ok(())
    }

    /// Returns those `names` that have nodes below them.
    async fn find_occupied(&self, versioned: &VersionedNode, names: &[String]) -> Result<Vec<String>, Error> {
        let check = async |name: &String| {
            let stat = versioned.client().exists(&format!("{}/{name}", self.folder)).await?;
            Ok::<_, Error>(stat.is_some_and(|stat| stat.num_children > 0).then(|| name.clone()))
        };
        let found = try_join_all(names.iter().map(check)).await?;
        Ok(found.into_iter().flatten().collect())
    }
}
