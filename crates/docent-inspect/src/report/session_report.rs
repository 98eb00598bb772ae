use super::{Ephemeral, Kind, NodeText, Report, Since, Stake, StakeRole, contender, session};
use crate::Survey;
use docent_core::ClientIdentity;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A session that owns ephemeral nodes, and what ends with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionReport {
    /// Session; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::of_owner")]
    pub session: i64,
    /// Text by which the client identifies itself in one of the nodes, or the address of an instance that it
    /// announces; `None` if no node has either.
    pub identity: Option<NodeText>,
    /// Host, process and label, if the identity has Docent's form; serialized as `host`, `pid`, `label`.
    #[serde(serialize_with = "contender::client")]
    pub client: Option<ClientIdentity>,
    /// Its ephemeral nodes, in the order of their paths. The servers delete them when the session ends.
    pub nodes: Vec<SessionNode>,
}

/// An ephemeral node of a session, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionNode {
    /// Path of the node.
    pub path: String,
    /// Path of the recipe that the node belongs to; `None` if it belongs to none.
    pub recipe: Option<String>,
    /// Kind of this recipe.
    pub kind: Option<Kind>,
    /// What the session does there.
    pub role: StakeRole,
    /// Name of the contender that it waits for.
    pub waits_for: Option<String>,
    /// Time at which the node was created.
    #[serde(flatten)]
    pub since: Since,
}

impl SessionReport {
    /// Returns who the client is: host and process, the text in its nodes, or the session. Safe for
    /// terminals.
    pub fn owner(&self) -> String {
        match (&self.client, &self.identity) {
            (Some(client), _) => client.to_string(),
            (None, Some(text)) => text.to_string(),
            (None, None) => format!("session {:#x}", self.session),
        }
    }

    /// Returns the time at which its oldest node was created.
    pub fn since(&self) -> Option<Since> {
        self.nodes.iter().map(|node| node.since).min_by_key(|since| since.at)
    }
}

impl Survey {
    /// Returns the sessions that own ephemeral nodes below the root, in the order of their numbers.
    ///
    /// A session without such a node is not visible to clients. Nodes that clients keep for themselves in
    /// folders named `_docent` are not included, nor are nodes that the survey [omitted](Survey::left_out).
    pub fn sessions(&self) -> Vec<SessionReport> {
        let recipes: HashMap<_, _> =
            self.found.iter().map(|report| (&*report.path, (report, report.stakes()))).collect();
        let mut sessions = BTreeMap::<i64, SessionReport>::new();
        for node in &self.ephemerals {
            let place = ancestors(&node.path).find_map(|path| recipes.get(path));
            let stake = place.and_then(|(_, stakes)| stake(node, stakes));
            let report = sessions.entry(node.session).or_insert_with(|| SessionReport {
                session: node.session,
                identity: None,
                client: None,
                nodes: Vec::new(),
            });
            if let Some(stake) = stake {
                report.identify(stake);
            }
            report.nodes.push(session_node(node, place.map(|(report, _)| *report), stake));
        }
        sessions.into_values().collect()
    }
}

impl SessionReport {
    /// Takes the identity of a stake, unless a better one is known.
    fn identify(&mut self, stake: &Stake<'_>) {
        if self.client.is_none() && stake.client.is_some() {
            self.client.clone_from(&stake.client);
            self.identity = stake.identity.cloned();
        }
        // The data of an instance is no identity, but its address says where the client is.
        let text = stake.identity.filter(|text| !text.bytes().is_empty()).cloned();
        let text = text.or_else(|| stake.address.clone().map(NodeText::new));
        if self.identity.is_none() {
            self.identity = text;
        }
    }
}

/// Returns the stake that a node belongs to. A client may have several nodes for one stake, such as the turn
/// and the ticket of a semaphore: those without a stake under their own name belong to another one of the
/// session.
fn stake<'a, 'b>(node: &Ephemeral, stakes: &'b [Stake<'a>]) -> Option<&'b Stake<'a>> {
    let name = node.path.rsplit('/').next().unwrap_or_default();
    let own = || stakes.iter().filter(|stake| stake.session == Some(node.session));
    own().find(|stake| stake.name == name).or_else(|| own().next())
}

fn session_node(node: &Ephemeral, recipe: Option<&Report>, stake: Option<&Stake<'_>>) -> SessionNode {
    SessionNode {
        path: node.path.clone(),
        recipe: recipe.map(|recipe| recipe.path.clone()),
        kind: recipe.map(Report::kind),
        role: stake.map_or(StakeRole::Owns, |stake| stake.role),
        waits_for: stake.and_then(|stake| stake.waits_for).map(str::to_owned),
        since: node.since,
    }
}

/// Returns the path and the paths above it, the longest first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        let (above, _) = path.rsplit_once('/')?;
        if path.len() == 1 { None } else { Some(if above.is_empty() { "/" } else { above }) }
    })
}
