//! Nodes as clients see them: data and stat, access control lists, paths and the namespace that maps them.

mod acl;
pub(crate) mod identity;
pub(crate) mod namespace;
mod stat;

pub use acl::{Acl, Permissions};
pub(crate) use acl::{AclPolicy, shared_list};
pub use identity::ClientIdentity;
pub(crate) use namespace::{NOT_OWN, OWN, PROOF, is_proof};
pub use namespace::{NodePath, is_own_name, is_own_path};
pub use stat::{Children, CreateMode, Created, Node, NodeAcl, Stat};
