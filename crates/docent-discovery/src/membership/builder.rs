use super::Membership;
use docent_core::recipe::NodePath;
use docent_core::{Client, Error, ParentKind};
use std::fmt;

/// Builder of a [`Membership`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct MembershipBuilder {
    client: Client,
    path: String,
    parents: ParentKind,
}

impl MembershipBuilder {
    pub(super) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), parents: ParentKind::Persistent }
    }

    /// Sets the kind of node that the group's folder is created as. Default [`ParentKind::Persistent`], so
    /// that a watch of another library on the folder stays valid while the group is empty. With
    /// [`ParentKind::Container`], the servers delete the folder of an empty group.
    pub fn parents(self, kind: ParentKind) -> Self {
        Self { parents: kind, ..self }
    }

    /// Creates the group. Does no I/O.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn build(self) -> Result<Membership, Error> {
        let Self { client, path, parents } = self;
        let path = NodePath::of_recipe(&client, "membership", path)?.into();
        Ok(Membership::at(client.with_parents(parents), path))
    }
}

impl fmt::Debug for MembershipBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MembershipBuilder")
            .field("path", &self.path)
            .field("parents", &self.parents)
            .finish_non_exhaustive()
    }
}
