use crate::client;
use crate::controls::Controls;
use crate::setting::Setting;
use crate::workload::{PLAIN, Workload};
use docent::node::Acl;
use docent::recipe::is_own_path;
use docent::{Client, CreateMode, ErrorKind};
use docent_server::Server;
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use turmoil::Sim;

/// The operator's name in the simulated network.
pub(crate) const NAME: &str = "operator";

/// Part of the paths of queues' claims.
const CLAIMS: &str = "/claims/";

/// Suffix of the paths of the claims' proofs.
const PROOF: &str = "-claim";

/// A third party that uses the same server over a link without faults.
#[derive(Debug)]
pub(crate) struct Operator {
    orders: Option<mpsc::UnboundedSender<String>>,
}

impl Operator {
    /// Adds the operator's host to the network. It creates the nodes of the workload at the start, and then
    /// cancels `laid_out`.
    pub(crate) fn add(
        sim: &mut Sim<'_>,
        setting: &Setting,
        workload: &dyn Workload,
        laid_out: CancellationToken,
    ) -> Self {
        let (orders, mut receiver) = mpsc::unbounded_channel::<String>();
        let (setting, mut nodes) = (setting.clone(), workload.nodes());
        if setting.tenants {
            nodes.splice(0..0, folders(workload));
        }
        sim.client(NAME, async move {
            let client = client::builder(&setting, NAME, &Controls::default(), None).connect().await?;
            for node in nodes {
                match client.create(&node, "", CreateMode::Persistent).await {
                    // A client that needs the parent may have created it first.
                    Err(error) if error.kind() == ErrorKind::NodeExists => {}
                    created => drop(created?),
                }
            }
            if setting.tenants {
                client.set_acl("/", [Acl::read_all(), Acl::creator_all()], None).await?;
            }
            laid_out.cancel();
            while let Some(path) = receiver.recv().await {
                delete(&client, &path).await?;
            }
            client.close().await;
            Ok(())
        });
        Self { orders: Some(orders) }
    }

    /// Deletes a node in the background.
    pub(crate) fn delete(&self, path: String) {
        if let Some(orders) = &self.orders {
            // If the operator has failed, so has the run.
            let _ = orders.send(path);
        }
    }

    /// Lets the operator close its session and end.
    pub(crate) fn dismiss(&mut self) {
        self.orders = None;
    }
}

/// The folders at the root that the clients of a workload write below, each once.
fn folders(workload: &dyn Workload) -> BTreeSet<String> {
    let all = workload.nodes().into_iter().chain(workload.emptied()).chain([format!("{PLAIN}/0")]);
    all.filter_map(|path| Some(format!("/{}", path.split('/').nth(1)?))).collect()
}

/// Deletes a node, which meanwhile may have been deleted or have got children. The server may be unavailable.
async fn delete(client: &Client, path: &str) -> Result<(), docent::Error> {
    match client.delete(path, None).await {
        Err(error) if error.kind() == ErrorKind::NoNode || error.may_have_applied() => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotEmpty | ErrorKind::Timeout) => Ok(()),
        result => result,
    }
}

/// The node whose deletion by an operator harms `client`: mostly its own, otherwise the first one of its
/// line.
pub(crate) fn victim(server: &Server, session: i64, first: bool) -> Option<String> {
    let own = server.session(session)?.ephemerals.into_iter().rfind(|path| is_place(path))?;
    if !first {
        return Some(own);
    }
    let line = docent_proto::parent(&own)?;
    let mut line: Vec<String> =
        server.nodes().into_iter().filter(|path| docent_proto::parent(path) == Some(line)).collect();
    line.sort_by_key(|path| path.rsplit('-').next().map(str::to_owned));
    line.into_iter().next()
}

/// The claims of a session.
pub(crate) fn claims(server: &Server, session: i64) -> Vec<String> {
    let own = server.session(session).map(|session| session.ephemerals);
    own.unwrap_or_default().into_iter().filter(|path| path.contains(CLAIMS)).collect()
}

/// Returns true for a node that is a place in a line or similar, and not a marker or a claim. A claim may
/// belong to another client a moment later, so no operator deletes it by hand.
fn is_place(path: &str) -> bool {
    !is_own_path(path) && !path.contains(CLAIMS) && !path.ends_with(PROOF)
}
