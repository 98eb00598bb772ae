//! Nodes as clients see them: data and stat, access control lists, paths and the namespace that maps them.

mod acl;
mod acl_policy;
pub(crate) mod identity;
pub(crate) mod namespace;
mod own;
mod path;
mod stat;

pub use acl::{Acl, Permissions};
pub(crate) use acl_policy::{AclPolicy, shared_list};
pub use identity::ClientIdentity;
pub(crate) use own::{NOT_OWN, OWN, PROOF, is_proof};
pub use own::{is_own_name, is_own_path};
pub use path::NodePath;
pub use stat::{Children, CreateMode, Created, Node, NodeAcl, Stat};
