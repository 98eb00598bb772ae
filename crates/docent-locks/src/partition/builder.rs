use super::Partitioner;
use super::layout::member_name;
use docent_core::recipe::{InOperation, KeptNode, NodePath, debug_handle};
use docent_core::{ChildrenCache, Client, Error};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Default time for which the members must stay the same before the items are distributed.
const SETTLE: Duration = Duration::from_secs(1);

/// Settings of a [`Partitioner`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `join` is called"]
pub struct PartitionerBuilder {
    client: Client,
    path: String,
    items: BTreeSet<String>,
    identity: Option<String>,
    settle: Duration,
}

impl PartitionerBuilder {
    pub(super) fn new(client: &Client, path: &str, items: BTreeSet<String>) -> Self {
        Self { client: client.clone(), path: path.to_owned(), items, identity: None, settle: SETTLE }
    }

    /// Sets the identity of the member. Members are ordered by identity, and the member's node shows it. The
    /// default is the client's identity. It must not contain '/'.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: Some(identity.into()), ..self }
    }

    /// Sets the time for which the members must stay the same before a share is acquired. Default 1 s. With a
    /// longer time, fewer shares are given up while many processes start one after another.
    pub fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Joins the group.
    ///
    /// # Errors
    /// `InvalidInput` if the path, the identity or an item breaks a rule; `Closed`.
    pub fn join(self) -> Result<Partitioner, Error> {
        let Self { client, path, items, identity, settle } = self;
        let path = NodePath::of_recipe(&client, "partition", path)?;
        for item in &items {
            lock_path(&path, item)?;
        }
        let identity = identity.unwrap_or_else(|| client.identity().to_owned());
        let own = member_name(&identity);
        let party = format!("{path}/party");
        let member = segment(&party, &own, "identity", &identity)?;
        Ok(Partitioner {
            party: ChildrenCache::new(&client, &party).in_operation("partition")?,
            member: KeptNode::new(&client, &member, identity)
                .in_operation("partition")?
                .labelled("partition"),
            items: items.into_iter().collect(),
            client,
            path,
            own,
            settle,
        })
    }
}

pub(super) fn lock_path(path: &str, item: &str) -> Result<String, Error> {
    segment(&format!("{path}/locks"), item, "item", item)
}

/// Returns the path of the child `name` of `folder`.
fn segment(folder: &str, name: &str, kind: &str, value: &str) -> Result<String, Error> {
    if value.is_empty() || value.contains('/') {
        let detail = format!("{kind} {value:?} must be the name of a node, without '/'");
        return Err(Error::invalid_input("partition", detail));
    }
    Ok(NodePath::new("partition", format!("{folder}/{name}"))?.into())
}

impl fmt::Debug for PartitionerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "PartitionerBuilder", &self.path, &self.client)
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}
