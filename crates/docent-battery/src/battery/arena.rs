//! Arena of one case: a separate namespace on a shared server.

use super::cases::{Failure, ensure, soon};
use super::recipe::{Contender, ContenderSetup, Recipe};
use super::round::released;
use crate::{Proxy, RawClient, TestServer};
use docent_proto::{Code, Request, Response};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Session timeout that no pause of a busy machine reaches: a node deleted earlier was not deleted by expiry.
pub(super) const LONG: Duration = Duration::from_secs(12);
/// Maximum time for cleanup, well below [`LONG`].
const CLEANUP: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(3);

pub(super) struct Arena<'a, R: Recipe> {
    pub(super) recipe: &'a R,
    pub(super) server: &'a TestServer,
    namespace: String,
    timeout: Duration,
}

/// A contender whose link can be broken.
pub(super) struct ProxiedContender<R: Recipe> {
    pub(super) contender: R::Contender,
    pub(super) proxy: Proxy,
    /// Number of frames that the proxy had forwarded before the measurement.
    pub(super) before: usize,
}

impl<'a, R: Recipe> Arena<'a, R> {
    pub(super) fn new(recipe: &'a R, server: &'a TestServer, timeout: Duration) -> Self {
        static CASES: AtomicU64 = AtomicU64::new(1);
        let namespace = server.path(&format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed)));
        Self { recipe, server, namespace, timeout }
    }

    pub(super) fn setup(&self, connect_string: String) -> ContenderSetup {
        ContenderSetup::new(self.server.net().clone(), connect_string, self.namespace.clone(), self.timeout)
    }

    /// Another contender, on an undisturbed link.
    pub(super) async fn other(&self) -> Result<R::Contender, Failure> {
        let setup = self.setup(self.server.connect_string());
        soon("connecting", self.recipe.contender(&setup)).await
    }

    pub(super) async fn proxied(&self) -> Result<ProxiedContender<R>, Failure> {
        self.proxied_with(self.timeout).await
    }

    /// Does the same as [`proxied`](Self::proxied), with a different session timeout.
    pub(super) async fn proxied_with(&self, timeout: Duration) -> Result<ProxiedContender<R>, Failure> {
        let proxy = self.server.proxy().await;
        let setup = ContenderSetup { session_timeout: timeout, ..self.setup(proxy.connect_string()) };
        let contender = soon("connecting", self.recipe.contender(&setup)).await?;
        let before = proxy.trace().len();
        Ok(ProxiedContender { contender, proxy, before })
    }

    /// The full path of the recipe's folder.
    pub(super) fn folder(&self) -> String {
        format!("{}{}", self.namespace, self.recipe.folder())
    }

    /// The names in the recipe's folder, as the server has them now.
    pub(super) async fn nodes(&self) -> Result<Vec<String>, Failure> {
        let mut client = self.server.client().await;
        let nodes = self.nodes_by(&mut client).await;
        let _ = client.close().await;
        nodes
    }

    async fn nodes_by(&self, client: &mut RawClient) -> Result<Vec<String>, Failure> {
        let request = Request::GetChildren2 { path: self.folder(), watch: false };
        let reply = client.ask(request).await.map_err(|error| error.to_string())?;
        match (reply.header.code, reply.response) {
            (_, Some(Response::Children { names, .. })) => Ok(names),
            (Code::NO_NODE, _) => Ok(Vec::new()),
            (code, response) => Err(format!("cannot list {}: {code} {response:?}", self.folder())),
        }
    }

    /// Waits until the folder has `count` nodes.
    pub(super) async fn until_nodes(&self, count: usize) -> Result<(), Failure> {
        let mut client = self.server.client().await;
        let start = Instant::now();
        loop {
            let nodes = self.nodes_by(&mut client).await?;
            if nodes.len() == count {
                let _ = client.close().await;
                return Ok(());
            }
            ensure(start.elapsed() < CLEANUP, || {
                format!("expected {count} nodes, but found the nodes {nodes:?}")
            })?;
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until no node is left, and checks that another contender can acquire and release.
    pub(super) async fn is_free_for(&self, other: &R::Contender) -> Result<(), Failure> {
        self.until_nodes(0)
            .await
            .map_err(|failure| format!("the folder is not empty after the release: {failure}"))?;
        let held = soon("the acquire by another contender", other.acquire())
            .await?
            .map_err(|error| format!("another contender cannot acquire: {error:?}"))?;
        released(soon("the release by another contender", other.release(held)).await?)
            .map_err(|failure| format!("another contender cannot release: {failure}"))
    }
}

impl<R: Recipe> ProxiedContender<R> {
    /// Waits until the contender waits for the current holder.
    pub(super) async fn waits(&self, recipe: &R) {
        self.proxy.until(|trace| recipe.waits(&trace[self.before..])).await;
    }

    /// Starts to count frames.
    pub(super) fn mark(&mut self) {
        self.before = self.proxy.trace().len();
    }

    pub(super) fn session(&self) -> Result<i64, Failure> {
        self.contender.session_id().ok_or_else(|| "the contender has no session".to_owned())
    }
}
