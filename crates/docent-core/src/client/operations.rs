//! Operations of a `Client` on nodes.

use super::create::{create, ensure_absent, ensure_node};
use super::transaction::wire;
use super::{Client, Transaction};
use crate::error::{Error, ErrorKind};
use crate::node::{Acl, Children, CreateMode, Created, Node, NodeAcl, NodePath, Stat, namespace};
use crate::operation::{Idempotency, unexpected};
use bytes::Bytes;
use docent_proto::{Code, Request, Response};

impl Client {
    /// Creates a node, and missing parents before it.
    ///
    /// An ephemeral node is created exactly once: if the reply is lost, the client finds out whether the node
    /// was created, and sends the create again if not. The first ephemeral node of a session takes at least
    /// one extra round trip, for one of the session's own nodes in a folder named `_docent`.
    ///
    /// # Errors
    /// `NodeExists`, `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`.
    /// `TooManyEphemerals` if the session owns as many ephemeral nodes as it may. `OutcomeUnknown` if the
    /// reply was lost. A persistent node may then be created at any time while the session lives; an
    /// ephemeral node was not created, is deleted again, or is deleted with its session.
    ///
    /// # Cancel safety
    /// For an ephemeral node this method is cancel safe: the node is deleted again if the future is dropped
    /// early. For a persistent node this method is *not* cancel safe: the node may have been created.
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

    /// Sets a node's data if the node has `version`; `None` matches any version.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NoAuth`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`. `OutcomeUnknown` if
    /// the reply was lost; without a version, the write may then be applied at any time while the session
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

    /// Deletes a node if it exists. A node that another client creates at the path in the meantime is not
    /// deleted.
    ///
    /// # Errors
    /// `NotEmpty`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Calling it again is harmless.
    pub async fn ensure_absent(&self, path: &str) -> Result<(), Error> {
        self.observed("delete", path, Box::pin(ensure_absent(self, path))).await
    }

    /// Deletes a node if it has `version`; `None` matches any version.
    ///
    /// The delete is sent only once, because a second one that is applied late could delete a node created at
    /// the path since. If that matters, use [`ensure_absent`](Self::ensure_absent), or a
    /// [transaction](Self::transaction) that is committed exactly.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NotEmpty`, `NoAuth`, `InvalidInput`, `Timeout`, `Closed`. `OutcomeUnknown` if
    /// the reply was lost; the delete may then be applied at any time while the session lives.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been deleted.
    pub async fn delete(&self, path: &str, version: impl Into<Option<i32>>) -> Result<(), Error> {
        namespace::check("delete", path)?;
        let version = wire(version.into());
        let request = || Request::Delete { path: self.full(path), version };
        self.write("delete", path, &request).await.map(drop)
    }

    /// Reads a node's stat; returns `None` if the node does not exist.
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

    /// Sets a node's access control list if the list has `version` (the stat's `aversion`); `None` matches
    /// any version. The lists of its children do not change.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NoAuth`, `InvalidAcl`, `InvalidInput`, `TooLarge`, `Timeout`, `Closed`;
    /// `OutcomeUnknown` if the reply was lost.
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

    /// Creates the parent of `path`, and its ancestors, as the kind set by
    /// [`ClientBuilder::parents`](super::ClientBuilder::parents) or [`with_parents`](Self::with_parents).
    /// Does nothing if the parent exists.
    ///
    /// [`create`](Self::create) creates missing parents automatically. A transaction does not, so call this
    /// method first.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Parents may have been created.
    pub async fn ensure_parent(&self, path: &NodePath) -> Result<(), Error> {
        let kind = self.parents();
        match ensure_node(self, path.parent(), kind.mode()).await {
            // The client has just learned that the servers have no containers.
            Err(error) if error.kind() == ErrorKind::Unsupported && self.parents() != kind => {
                ensure_node(self, path.parent(), self.parents().mode()).await
            }
            done => done,
        }
    }

    /// Prepares several writes that are applied together or not at all.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Waits until the connected server has everything that its leader had when the request reached the
    /// leader. Later reads are at least that recent.
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
