use crate::{Rejection, Revision};
use bytes::Bytes;
use docent_core::recipe::{VersionedNode, full_error, full_path, if_exists};
use docent_core::{CreateMode, Error, ErrorKind, Node, Transaction};
use futures_util::future::try_join_all;
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Name of the node, below a value's own node, that holds the earlier values.
pub const FOLDER: &str = "_history";

/// Maximum number of surplus values that one publish deletes. The next publish continues.
const MOST_AT_ONCE: usize = 256;

/// Bytes of a transaction besides the two values.
const FIELDS: usize = 64 * 1024;

/// Bytes that the deletion of one earlier value adds to a transaction, besides the folder's path.
const NAME: usize = 128;

/// Earlier values of a node, each unchanged in a child of `_history` whose name encodes its revision.
#[derive(Debug, Clone)]
pub(crate) struct History {
    folder: String,
    keep: Keep,
}

/// How many earlier values a publisher keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) length: usize,
    /// True to leave a longer history as long as it is.
    pub(crate) or_more: bool,
}

/// Listing of the history's folder.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// True if the folder exists.
    exists: bool,
    /// Names of all children.
    names: Vec<String>,
}

/// Changes that a publish makes to the history.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    make_folder: bool,
    add: Option<(String, Bytes)>,
    remove: Vec<String>,
    /// Name of an earlier value that must exist.
    prove: Option<String>,
}

impl Keep {
    /// Keeps no history, and leaves one of other publishers alone.
    pub(crate) const NONE: Self = Self { length: 0, or_more: false };
}

impl Listed {
    /// Returns the name of the latest earlier value.
    pub(crate) fn newest(&self) -> Option<&String> {
        self.names.iter().filter(|name| parse(name).is_some()).max()
    }

    /// Returns the listing after the changes of `plan`.
    pub(crate) fn after(&self, plan: Plan) -> Self {
        let Plan { make_folder, add, remove, .. } = plan;
        let kept = self.names.iter().filter(|name| !remove.contains(name)).cloned();
        let names = kept.chain(add.map(|(name, _)| name)).collect();
        Self { exists: self.exists || make_folder, names }
    }
}

impl Plan {
    /// Returns a plan that the servers refuse unless the latest of the `listed` values exists. A deletion of
    /// a listed value proves the same.
    pub(crate) fn proving(self, listed: &Listed) -> Self {
        let prove = if self.remove.is_empty() { listed.newest().cloned() } else { None };
        Self { prove, ..self }
    }
}

impl History {
    pub(crate) fn new(path: &str, keep: Keep) -> Self {
        Self { folder: format!("{path}/{FOLDER}"), keep }
    }

    /// Returns true unless the length is 0.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep.length > 0
    }

    /// Lists the history. Returns `None` if no history is kept, or if it may not be listed.
    pub(crate) async fn list_kept(&self, versioned: &VersionedNode) -> Result<Option<Listed>, Error> {
        if !self.is_kept() {
            return Ok(None);
        }
        match self.list(versioned).await {
            Err(error) if error.kind() == ErrorKind::NoAuth => {
                // Event: A value was published without recording the replaced value, because the client may
                // not list the history's folder.
                // Action: Grant the client READ on the `_history` folder of the value, or configure a history
                // length of 0.
                tracing::warn!(target: "docent::config", client = %versioned.client().label(), folder = %full_path(versioned.client(), &self.folder), error = %full_error(versioned.client(), &error), "may not list the history of a value; publishing without a history");
                Ok(None)
            }
            listed => listed.map(Some),
        }
    }

    pub(crate) async fn list(&self, versioned: &VersionedNode) -> Result<Listed, Error> {
        let children = if_exists(versioned.client().children(&self.folder).await)?;
        let exists = children.is_some();
        Ok(Listed { exists, names: children.map_or_else(Vec::new, |children| children.names) })
    }

    /// Returns true for an error about the history.
    pub(crate) fn is_about(&self, error: &Error) -> bool {
        error.path().is_some_and(|path| path.starts_with(&self.folder))
    }

    /// Returns the changes to make when a value of `length` bytes replaces `node`, with requests of at most
    /// `limit` bytes.
    pub(crate) fn plan(
        &self,
        node: &Node,
        listed: &Listed,
        length: usize,
        limit: usize,
        obstacles: &Obstacles,
    ) -> Plan {
        if obstacles.untouched {
            return Plan::default();
        }
        let name = name(&Revision::from(&node.stat));
        let is_removable = |name: &&String| parse(name).is_some() && !obstacles.occupied.contains(*name);
        let mut names: Vec<_> = listed.names.iter().filter(is_removable).cloned().collect();
        names.sort_unstable();
        // A value that leaves no room for its successor is not kept, because it could never be removed.
        let fits = node.data.len() + length + FIELDS <= limit;
        let add = (fits && !listed.names.contains(&name)).then(|| (name, node.data.clone()));
        let remove = match obstacles.no_removal {
            true => Vec::new(),
            false => self.removed(names, usize::from(add.is_some()), length, limit),
        };
        Plan { make_folder: !listed.exists && add.is_some(), add, remove, prove: None }
    }

    /// Returns those `names`, in order, that are surplus when `more` values are added.
    fn removed(&self, mut names: Vec<String>, more: usize, length: usize, limit: usize) -> Vec<String> {
        let surplus = (names.len() + more).saturating_sub(self.keep.length);
        let surplus = if self.keep.or_more { surplus.min(more) } else { surplus };
        // The deletions must also fit into the request.
        let room = if length + FIELDS <= limit { FIELDS / 2 / (self.folder.len() + NAME) } else { 0 };
        names.truncate(surplus.min(MOST_AT_ONCE).min(room));
        names
    }

    pub(crate) fn carry_out(&self, plan: &Plan, transaction: Transaction) -> Transaction {
        let mut transaction = transaction;
        if let Some(name) = &plan.prove {
            transaction = transaction.check(&format!("{}/{name}", self.folder), None);
        }
        if plan.make_folder {
            transaction = transaction.create(&self.folder, Bytes::new(), CreateMode::Persistent);
        }
        if let Some((name, data)) = &plan.add {
            let path = format!("{}/{name}", self.folder);
            transaction = transaction.create(&path, data.clone(), CreateMode::Persistent);
        }
        self.remove(&plan.remove, transaction)
    }

    fn remove(&self, names: &[String], transaction: Transaction) -> Transaction {
        let remove =
            |transaction: Transaction, name| transaction.delete(&format!("{}/{name}", self.folder), None);
        names.iter().fold(transaction, remove)
    }

    /// Deletes the whole history.
    pub(crate) fn remove_all(&self, listed: &Listed, transaction: Transaction) -> Transaction {
        let transaction = self.remove(&listed.names, transaction);
        if listed.exists { transaction.delete(&self.folder, None) } else { transaction }
    }

    /// Returns the data and the revision of the value that the transaction `mzxid` wrote. Only that value is
    /// read, because the names encode the revisions.
    pub(crate) async fn find(
        &self,
        versioned: &VersionedNode,
        mzxid: i64,
    ) -> Result<Option<(Revision, Bytes)>, Error> {
        let listed = self.list(versioned).await?.names;
        let mut known = listed.iter().filter_map(|name| Some((name, parse(name)?)));
        let Some((name, revision)) = known.find(|(_, revision)| revision.mzxid == mzxid) else {
            return Ok(None);
        };
        Ok(self.get(versioned, name).await?.map(|data| (revision, data)))
    }

    async fn get(&self, versioned: &VersionedNode, name: &str) -> Result<Option<Bytes>, Error> {
        // A value that has become surplus may be deleted meanwhile.
        let node = if_exists(versioned.client().get(&format!("{}/{name}", self.folder)).await)?;
        Ok(node.map(|node| node.data))
    }

    /// Returns the revisions with their data, the latest first.
    pub(crate) async fn read(&self, versioned: &VersionedNode) -> Result<Vec<(Revision, Bytes)>, Error> {
        let mut listed = self.list(versioned).await?.names;
        listed.sort_unstable_by(|one, other| other.cmp(one));
        let read =
            listed.iter().filter_map(|name| Some((name, parse(name)?))).map(|(name, revision)| async move {
                Ok::<_, Error>(self.get(versioned, name).await?.map(|data| (revision, data)))
            });
        Ok(try_join_all(read).await?.into_iter().flatten().collect())
    }
}

/// Returns the name of a revision. Transactions come first, so that names sort in the order of revisions.
pub fn name(revision: &Revision) -> String {
    let Revision { czxid, mzxid, version, modified } = revision;
    let modified = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{mzxid:016x}-{czxid:016x}-{version}-{modified}")
}

/// Returns the revision of the earlier value whose node has this name, or `None` for other names.
pub fn parse(name: &str) -> Option<Revision> {
    let mut parts = name.splitn(4, '-');
    let mut zxid = || {
        let part = parts.next().filter(|part| part.len() == 16)?;
        i64::from_str_radix(part, 16).ok()
    };
    let (mzxid, czxid) = (zxid()?, zxid()?);
    let version = parts.next()?.parse().ok()?;
    let modified = Duration::from_millis(parts.next()?.parse().ok()?);
    Some(Revision { czxid, mzxid, version, modified: SystemTime::UNIX_EPOCH.checked_add(modified)? })
}

/// Parts of the history that blocked a publish, which then continues without them.
#[derive(Debug, Default)]
pub(crate) struct Obstacles {
    /// Names of earlier values that are kept because another client created nodes below them.
    occupied: BTreeSet<String>,
    /// Number of times such names were searched for.
    searches: u32,
    /// Nothing is deleted.
    no_removal: bool,
    /// The history is not touched at all.
    untouched: bool,
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

/// An earlier value.
#[derive(Clone)]
#[non_exhaustive]
pub struct HistoryEntry<T> {
    /// Revision of the value.
    pub revision: Revision,
    /// Value, or why it cannot be decoded.
    pub value: Result<T, Rejection>,
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for HistoryEntry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryEntry")
            .field("revision", &self.revision)
            .field("refusal", &self.value.as_ref().err())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(mzxid: i64) -> Revision {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        Revision { czxid: 7, mzxid, version: 12, modified }
    }

    #[test]
    fn names_contain_the_revision_and_sort_in_order_of_revisions() {
        let names: Vec<_> = [8, 0xff, 0x1_0000_0000].map(|mzxid| name(&revision(mzxid))).into();
        assert!(names.is_sorted());
        assert_eq!(names[1], "00000000000000ff-0000000000000007-12-1700000000123");
        assert_eq!(parse(&names[1]), Some(revision(0xff)));
    }

    #[test]
    fn other_names_are_not_revisions() {
        for name in
            ["", "a", "00000000000000ff", "ff-07-12-17", "00000000000000ff-0000000000000007-x-1", "é-é-é-é"]
        {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn deletions_leave_room_for_the_values_in_the_transaction() {
        let limit = 1024 * 1024;
        let path = format!("/{}", "x".repeat(400));
        let history = History::new(&path, Keep { length: 10, or_more: false });
        let names: Vec<_> = (0..1_000).map(|mzxid| name(&revision(mzxid))).collect();
        let removed = |length| history.removed(names.clone(), 0, length, limit).len();
        assert!((1..=FIELDS / (2 * path.len())).contains(&removed(1)), "{}", removed(1));
        assert_eq!(removed(limit - 1_000), 0, "the value must be published anyway");
    }
}
