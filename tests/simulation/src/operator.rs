use crate::client;
use crate::controls::Controls;
use crate::setting::Setting;
use docent::{Client, CreateMode, ErrorKind};
use docent_server::Server;
use tokio::sync::mpsc;
use turmoil::Sim;

/// The operator's name in the simulated network.
pub(crate) const NAME: &str = "operator";

/// In the paths of the claims of queues.
const CLAIMS: &str = "/claims/";

/// Somebody outside who uses the same server by a link that no fault strikes.
#[derive(Debug)]
pub(crate) struct Operator {
    orders: Option<mpsc::UnboundedSender<String>>,
}

impl Operator {
    /// Puts the operator's host into the network. It makes `nodes` at the start.
    pub(crate) fn add(sim: &mut Sim<'_>, setting: &Setting, nodes: Vec<String>) -> Self {
        let (orders, mut receiver) = mpsc::unbounded_channel::<String>();
        let setting = setting.clone();
        sim.client(NAME, async move {
            let client = client::builder(&setting, NAME, &Controls::default(), None).connect().await?;
            for node in nodes {
                match client.create(&node, "", CreateMode::Persistent).await {
                    // A client that needs the parent may have been faster.
                    Err(error) if error.kind() == ErrorKind::NodeExists => {}
                    created => drop(created?),
                }
            }
            while let Some(path) = receiver.recv().await {
                delete(&client, &path).await?;
            }
            client.close().await;
            Ok(())
        });
        Self { orders: Some(orders) }
    }

    /// Has a node deleted.
    pub(crate) fn delete(&self, path: String) {
        if let Some(orders) = &self.orders {
            // An operator that failed has failed the run.
            let _ = orders.send(path);
        }
    }

    /// Lets the operator close its session and end.
    pub(crate) fn dismiss(&mut self) {
        self.orders = None;
    }
}

/// Deletes a node that may be gone by then, or have got children, while the server may be away.
async fn delete(client: &Client, path: &str) -> Result<(), docent::Error> {
    match client.delete(path, None).await {
        Err(error) if error.kind() == ErrorKind::NoNode || error.may_have_applied() => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotEmpty | ErrorKind::Timeout) => Ok(()),
        result => result,
    }
}

/// The node that an operator deletes to hurt `client`: mostly its own, else the first of a line.
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

/// A node that stands for a place in a line or the like, as against markers, and claims: those may be
/// somebody else's in the next moment, so that nobody deletes them by hand.
fn is_place(path: &str) -> bool {
    !path.starts_with("/_docent") && !path.contains(CLAIMS)
}
