//! Operations of a `Client` on nodes.

use super::create::create;
use super::ensure_absent::ensure_absent;
use super::ensure_node::ensure_node;
use super::transaction::wire;
use super::{Client, Transaction};
use crate::error::Error;
use crate::node::{Acl, Children, CreateMode, Created, Node, NodeAcl, NodePath, Stat, namespace};
use crate::operation::{Idempotency, unexpected};
use bytes::Bytes;
use docent_proto::{Code, Request, Response};

impl Client {
    /// Creates a node, and missing parents before it.
    ///
    /// An ephemeral node is created exactly once: when the reply is lost it is found out whether it was
    /// created, and it is sent again if not. The first one of a session takes a round trip or more besides,
    /// for a node of the session's own in a folder called `_docent`.
    ///
    /// # Errors
    /// `NodeExists`, `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`.
    /// `OutcomeUnknown` when the reply was lost: a persistent node may then be created at any time as long as
    /// the session lives; an ephemeral one was not created, is deleted again, or goes with its session.
    /// `TooManyEphemerals` when the session owns as many as it may.
    ///
    /// # Cancel safety
    /// An ephemeral node is deleted when the future is dropped before it returned. For a persistent one this
    /// method is *not* cancel safe: it may have been created.
    pub async fn create(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        mode: CreateMode,
    ) -> Result<Created, Error> {
        self.observed("create", path, create(self, path, data.into(), mode)).await
    }

    /// Reads a node's data.
    ///
    /// # Errors
    /// `NoNode`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn get(&self, path: &str) -> Result<Node, Error> {
        namespace::check("get", path)?;
        let request = || Request::GetData { path: self.full(path), watch: false };
        match self.read("get", path, &request).await? {
            Response::Data { data, stat } => Ok(Node { data: data.unwrap_or_default(), stat: stat.into() }),
            other => Err(unexpected("get", &other)),
        }
    }

    /// Sets a node's data, if it has `version`; `None` for any.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NoAuth`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`; `OutcomeUnknown`
    /// when the reply was lost: without a version it may then be applied at any time as long as the session
    /// lives.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the data may have been set.
    pub async fn set(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        version: impl Into<Option<i32>>,
    ) -> Result<Stat, Error> {
        namespace::check("set", path)?;
        let (data, version) = (data.into(), wire(version.into()));
        let request = || Request::SetData { path: self.full(path), data: Some(data.clone()), version };
        match self.write("set", path, &request).await? {
            Response::Stat(stat) => Ok(stat.into()),
            other => Err(unexpected("set", &other)),
        }
    }

    /// Deletes a node if there is one. A node that is created there while this is under way is left alone.
    ///
    /// # Errors
    /// `NotEmpty`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub async fn ensure_absent(&self, path: &str) -> Result<(), Error> {
        self.observed("delete", path, Box::pin(ensure_absent(self, path))).await
    }

    /// Deletes a node, if it has `version`; `None` for any.
    ///
    /// It is sent once: applied late, a second one could hit a node that somebody made at the path since. Use
    /// [`ensure_absent`](Self::ensure_absent), or a [transaction](Self::transaction) that is committed
    /// exactly, where that matters.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NotEmpty`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`; `OutcomeUnknown`
    /// when the reply was lost: it may then be applied at any time as long as the session lives.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been deleted.
    pub async fn delete(&self, path: &str, version: impl Into<Option<i32>>) -> Result<(), Error> {
        namespace::check("delete", path)?;
        let version = wire(version.into());
        let request = || Request::Delete { path: self.full(path), version };
        self.write("delete", path, &request).await.map(drop)
    }

    /// Reads a node's stat; `None` when there is no node.
    ///
    /// # Errors
    /// `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn exists(&self, path: &str) -> Result<Option<Stat>, Error> {
        namespace::check("exists", path)?;
        let request = || Request::Exists { path: self.full(path), watch: false };
        let (result, _) = self.call("exists", path, &request, Idempotency::Idempotent).await?;
        match result {
            Ok(Response::Stat(stat)) => Ok(Some(stat.into())),
            Err(Code::NO_NODE) => Ok(None),
            Ok(other) => Err(unexpected("exists", &other)),
            Err(code) => Err(Error::from_code(code, "exists").at(path)),
        }
    }

    /// Lists a node's children.
    ///
    /// # Errors
    /// `NoNode`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn children(&self, path: &str) -> Result<Children, Error> {
        namespace::check("children", path)?;
        let request = || Request::GetChildren2 { path: self.full(path), watch: false };
        match self.read("children", path, &request).await? {
            Response::Children { names, stat: Some(stat) } => Ok(Children { names, stat: stat.into() }),
            other => Err(unexpected("children", &other)),
        }
    }

    /// Reads a node's access control list.
    ///
    /// # Errors
    /// `NoNode`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn acl(&self, path: &str) -> Result<NodeAcl, Error> {
        namespace::check("acl", path)?;
        let request = || Request::GetAcl { path: self.full(path) };
        match self.read("acl", path, &request).await? {
            Response::Acl { acl, stat } => {
                Ok(NodeAcl { entries: acl.into_iter().map(Into::into).collect(), stat: stat.into() })
            }
            other => Err(unexpected("acl", &other)),
        }
    }

    /// Sets a node's access control list, if that has `version` (the stat's `aversion`); `None` for any. Its
    /// children keep theirs.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NoAuth`, `InvalidAcl`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`;
    /// `OutcomeUnknown` when the reply was lost.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the list may have been set.
    pub async fn set_acl(
        &self,
        path: &str,
        acl: impl Into<Vec<Acl>>,
        version: impl Into<Option<i32>>,
    ) -> Result<Stat, Error> {
        namespace::check("set_acl", path)?;
        let acl: Vec<_> = acl.into().into_iter().map(docent_proto::Acl::from).collect();
        let version = wire(version.into());
        let request = || Request::SetAcl { path: self.full(path), acl: acl.clone(), version };
        match self.write("set_acl", path, &request).await? {
            Response::Stat(stat) => Ok(stat.into()),
            other => Err(unexpected("set_acl", &other)),
        }
    }

    /// Makes the node above `path`, and those above it, as the kind that
    /// [`ClientBuilder::parents`](super::ClientBuilder::parents) says. Does nothing where it exists.
    ///
    /// Creates of a client make parents by themselves; this is for transactions, which do not.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: parents may have been made.
    pub async fn ensure_parent(&self, path: &NodePath) -> Result<(), Error> {
        ensure_node(self, path.parent(), self.shared().config.parents.mode()).await
    }

    /// Prepares several writes that are applied together or not at all.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Waits until the server this client talks to has everything that its leader had when the request
    /// reached it. Reads that follow are at least that new.
    ///
    /// # Errors
    /// `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn sync(&self, path: &str) -> Result<(), Error> {
        namespace::check("sync", path)?;
        self.read("sync", path, &|| Request::Sync { path: self.full(path) }).await.map(drop)
    }
}
