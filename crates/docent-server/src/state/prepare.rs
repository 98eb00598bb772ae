//! Checks of a write against the tree and the pending changes of earlier operations of the same multi. The
//! order of the checks determines which of several errors a client sees, so it follows ZooKeeper's.

use super::acl::{self, Identity};
use super::database::Database;
use super::node::{Lifetime, Node};
use super::refusal::Notes;
use super::tree::{self, SYSTEM, Tree};
use crate::Limits;
use bytes::Bytes;
use docent_proto::{Acl, Code, Create, CreateKind, CreateMode, MultiOp, Permissions, validate_path};
use std::collections::HashMap;
use std::sync::Arc;

/// A change that passed its checks, so applying it cannot fail.
pub(crate) enum Change {
    Create {
        path: String,
        data: Option<Bytes>,
        acl: Arc<[Acl]>,
        lifetime: Lifetime,
        parent_creates: i32,
        with_stat: bool,
    },
    Delete {
        path: String,
    },
    SetData {
        path: String,
        data: Option<Bytes>,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: Arc<[Acl]>,
        version: i32,
    },
    Check,
}

/// Facts about a node that the checks need.
#[derive(Debug, Clone)]
struct Record {
    version: i32,
    creates: i32,
    children: usize,
    bytes: usize,
    is_ephemeral: bool,
    acl: Arc<[Acl]>,
}

impl From<&Node> for Record {
    fn from(node: &Node) -> Self {
        Self {
            version: node.version,
            creates: node.creates,
            children: node.children.len(),
            bytes: tree::size(node.data.as_ref()),
            is_ephemeral: matches!(node.lifetime, Lifetime::Ephemeral(_)),
            acl: Arc::clone(&node.acl),
        }
    }
}

/// Checks the operations of one transaction.
pub(crate) struct Preparation<'a> {
    tree: &'a Tree,
    limits: &'a Limits,
    ttl_nodes: bool,
    has_sasl: bool,
    session: i64,
    identities: &'a [Identity],
    /// Nodes that earlier operations of the transaction change; `None` for nodes that they delete.
    pending: HashMap<String, Option<Record>>,
    nodes: usize,
    /// Bytes of all nodes, as the limit counts them.
    bytes: usize,
    pub(super) notes: Notes,
}

impl<'a> Preparation<'a> {
    pub(crate) fn new(database: &'a Database, limits: &'a Limits, session: i64) -> Self {
        let Database { tree, sessions, ttl_nodes, .. } = database;
        Self {
            tree,
            limits,
            ttl_nodes: *ttl_nodes,
            has_sasl: !sessions.sasl_users.is_empty(),
            session,
            identities: sessions.identities(session),
            pending: HashMap::new(),
            nodes: tree.len() - SYSTEM.len(),
            bytes: tree.weight(),
            notes: Notes::default(),
        }
    }

    /// Checks one operation of a multi.
    pub(super) fn operation(&mut self, op: &MultiOp) -> Result<Change, Code> {
        match op {
            MultiOp::Create(create) => self.create(&Create { kind: kind_in_multi(create), ..create.clone() }),
            MultiOp::Delete { path, version } => self.delete(path, *version),
            MultiOp::SetData { path, data, version } => self.set_data(path, data.as_ref(), *version),
            MultiOp::Check { path, version } => self.check(path, *version),
            MultiOp::GetData { .. } | MultiOp::GetChildren { .. } => Err(Code::MARSHALLING_ERROR),
        }
    }

    pub(crate) fn create(&mut self, create: &Create) -> Result<Change, Code> {
        let mode = CreateMode::from_flags(create.flags).ok_or(Code::BAD_ARGUMENTS)?;
        if mode.has_ttl() && !self.ttl_nodes {
            return Err(Code::UNIMPLEMENTED);
        }
        check_ttl(mode, create.kind)?;
        let parent_path = parent_of(&create.path)?;
        let acl = self.fix(&create.acl)?;
        let mut parent = self.record(parent_path)?;
        acl::check(&parent.acl, Permissions::CREATE, self.identities)?;
        let path = match mode.is_sequential() {
            true if planted!(SequenceCountsChildren) => format!("{}{:010}", create.path, parent.children),
            true => format!("{}{:010}", create.path, parent.creates),
            false => create.path.clone(),
        };
        valid(&path)?;
        if self.record(&path).is_ok() {
            return Err(Code::NODE_EXISTS);
        }
        if parent.is_ephemeral {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let bytes = tree::size(create.data.as_ref());
        self.grow(1, tree::weight(&path, bytes, &acl))?;
        // At the end of its range, the counter continues with negative numbers within a multi, but these are
        // not stored.
        parent.creates = parent.creates.wrapping_add(1);
        parent.children += 1;
        let parent_creates = parent.creates;
        let is_ephemeral = mode.is_ephemeral();
        self.pending.insert(parent_path.to_owned(), Some(parent));
        let record =
            Record { version: 0, creates: 0, children: 0, bytes, is_ephemeral, acl: Arc::clone(&acl) };
        self.pending.insert(path.clone(), Some(record));
        let lifetime = match create.kind {
            CreateKind::Container => Lifetime::Container,
            CreateKind::Ttl(ttl) if mode.has_ttl() => Lifetime::Ttl(ttl),
            _ if is_ephemeral => Lifetime::Ephemeral(self.session),
            _ => Lifetime::Persistent,
        };
        let with_stat = create.kind != CreateKind::Plain;
        let data = tree::owned(create.data.as_ref());
        Ok(Change::Create { path, data, acl, lifetime, parent_creates, with_stat })
    }

    pub(crate) fn delete(&mut self, path: &str, version: i32) -> Result<Change, Code> {
        if SYSTEM.contains(&path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent_path = parent_of(path)?;
        let mut parent = self.record(parent_path)?;
        acl::check(&parent.acl, Permissions::DELETE, self.identities)?;
        let node = self.record(path)?;
        next_version(node.version, version)?;
        if node.children > 0 {
            return Err(Code::NOT_EMPTY);
        }
        parent.children -= 1;
        self.nodes -= 1;
        self.bytes -= tree::weight(path, node.bytes, &node.acl);
        self.pending.insert(parent_path.to_owned(), Some(parent));
        self.pending.insert(path.to_owned(), None);
        Ok(Change::Delete { path: path.to_owned() })
    }

    pub(crate) fn set_data(
        &mut self,
        path: &str,
        data: Option<&Bytes>,
        version: i32,
    ) -> Result<Change, Code> {
        valid(path)?;
        let mut node = self.record(path)?;
        if !planted!(WriteWithoutPermission) {
            acl::check(&node.acl, Permissions::WRITE, self.identities)?;
        }
        let version = next_version(node.version, version)?;
        let bytes = tree::size(data);
        self.grow(0, bytes.saturating_sub(node.bytes))?;
        self.bytes -= node.bytes.saturating_sub(bytes);
        node.bytes = bytes;
        node.version = version;
        self.pending.insert(path.to_owned(), Some(node));
        Ok(Change::SetData { path: path.to_owned(), data: tree::owned(data), version })
    }

    pub(crate) fn set_acl(&mut self, path: &str, acl: &[Acl], version: i32) -> Result<Change, Code> {
        valid(path)?;
        let acl = self.fix(acl)?;
        let node = self.tree.get(path).ok_or(Code::NO_NODE)?;
        acl::check(&node.acl, Permissions::ADMIN, self.identities)?;
        let version = next_version(node.aversion, version)?;
        self.grow(0, acl::weight(&acl).saturating_sub(acl::weight(&node.acl)))?;
        Ok(Change::SetAcl { path: path.to_owned(), acl, version })
    }

    pub(super) fn check(&mut self, path: &str, version: i32) -> Result<Change, Code> {
        valid(path)?;
        let node = self.record(path)?;
        acl::check(&node.acl, Permissions::READ, self.identities)?;
        next_version(node.version, version)?;
        Ok(Change::Check)
    }

    /// Converts a list that the client sent into the list to store. Both must be within the size limit.
    fn fix(&mut self, list: &[Acl]) -> Result<Arc<[Acl]>, Code> {
        self.notes.admit("acl_bytes", acl::weight(list), self.limits.acl_bytes)?;
        let fixed = acl::fix(list, self.identities, self.has_sasl)?;
        self.notes.admit("acl_bytes", acl::weight(&fixed), self.limits.acl_bytes)?;
        Ok(fixed)
    }

    fn record(&self, path: &str) -> Result<Record, Code> {
        match self.pending.get(path) {
            Some(pending) => pending.clone(),
            None => self.tree.get(path).map(Record::from),
        }
        .ok_or(Code::NO_NODE)
    }

    /// Counts nodes and bytes that are about to be added, and checks them against the limits.
    fn grow(&mut self, nodes: usize, bytes: usize) -> Result<(), Code> {
        if nodes > 0 {
            self.notes.admit("nodes", self.nodes + nodes, self.limits.nodes)?;
        }
        if bytes > 0 {
            self.notes.admit("total_bytes", self.bytes + bytes, self.limits.total_bytes)?;
        }
        self.nodes += nodes;
        self.bytes += bytes;
        Ok(())
    }
}

/// In a multi the mode alone determines the kind of create, and only containers and nodes with a time to live
/// are answered with a stat.
fn kind_in_multi(create: &Create) -> CreateKind {
    match (CreateMode::from_flags(create.flags), create.kind) {
        (Some(CreateMode::Container), _) => CreateKind::Container,
        (Some(mode), CreateKind::Ttl(ttl)) if mode.has_ttl() => CreateKind::Ttl(ttl),
        _ => CreateKind::Plain,
    }
}

/// Checks the time to live against the mode. A missing time to live counts as −1, which no mode that needs
/// one accepts.
fn check_ttl(mode: CreateMode, kind: CreateKind) -> Result<(), Code> {
    let ttl = if let CreateKind::Ttl(ttl) = kind { ttl } else { -1 };
    let fits = if mode.has_ttl() { (1..=Lifetime::LONGEST_TTL_MS).contains(&ttl) } else { ttl < 0 };
    if fits { Ok(()) } else { Err(Code::BAD_ARGUMENTS) }
}

/// Returns the part of a path before the last slash, which is empty for top-level nodes.
fn parent_of(path: &str) -> Result<&str, Code> {
    match path.rsplit_once('/') {
        Some((parent, _)) if !path.contains('\0') => Ok(parent),
        _ => Err(Code::BAD_ARGUMENTS),
    }
}

fn valid(path: &str) -> Result<(), Code> {
    validate_path(path).map_err(|_| Code::BAD_ARGUMENTS)
}

/// Returns the version after a change that expects version `expected`; −1 accepts any version.
fn next_version(current: i32, expected: i32) -> Result<i32, Code> {
    if expected == -1 || expected == current { Ok(current.wrapping_add(1)) } else { Err(Code::BAD_VERSION) }
}
