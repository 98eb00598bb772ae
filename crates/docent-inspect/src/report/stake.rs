use super::{Claim, ConfigReader, Contender, Instance, Member, NodeText, Recipe, Report, Since};
use docent_core::ClientIdentity;
use serde::Serialize;
use std::fmt;

/// Part that a client has in a recipe: a hold, a place in a queue, a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stake<'a> {
    /// What the client does.
    pub role: StakeRole,
    /// Name of the client's node, or of the item that it claims.
    pub name: &'a str,
    /// Session that owns the node.
    pub session: Option<i64>,
    /// Data of the node, as its writer identifies itself; `None` once a revocation has overwritten it.
    pub identity: Option<&'a NodeText>,
    /// Host, process and label, if the identity has Docent's form.
    pub client: Option<ClientIdentity>,
    /// Address and port, if the stake is a registration.
    pub address: Option<String>,
    /// Time at which the node was created.
    pub since: Option<Since>,
    /// Time since which a contender has held, if its node tells.
    pub held: Option<Since>,
    /// Name of the contender that it waits for.
    pub waits_for: Option<&'a str>,
}

/// What a client does in a recipe. Serialized and printed as the name, such as `holds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StakeRole {
    /// Holds a lock or permits.
    Holds,
    /// Leads an election.
    Leads,
    /// Works on an item of a queue.
    Claims,
    /// Announces an instance of a service.
    Registers,
    /// Is a member of a group, a double barrier or a partition.
    Joins,
    /// Runs a value of a configuration.
    Runs,
    /// Waits for a lock or a permit.
    Waits,
    /// Is a candidate of an election.
    Stands,
    /// Waits for an item of a queue.
    Idles,
    /// Owns a node whose meaning is not known.
    Owns,
}

impl StakeRole {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Leads => "leads",
            Self::Claims => "claims",
            Self::Registers => "registers",
            Self::Joins => "joins",
            Self::Runs => "runs",
            Self::Waits => "waits",
            Self::Stands => "stands",
            Self::Idles => "idles",
            Self::Owns => "owns",
        }
    }

    /// Returns true for a role in which the client has what the recipe gives; false for one that waits for it
    /// or only reads.
    pub fn is_owner(self) -> bool {
        !matches!(self, Self::Runs | Self::Waits | Self::Stands | Self::Idles)
    }
}

impl fmt::Display for StakeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Report {
    /// Returns the stakes of all clients, in the order of the report.
    pub fn stakes(&self) -> Vec<Stake<'_>> {
        match &self.recipe {
            Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => {
                line.contenders.iter().map(of_contender).collect()
            }
            Recipe::Semaphore(semaphore) => {
                semaphore.permits.iter().chain(&semaphore.waiters).map(of_contender).collect()
            }
            Recipe::Election(election) => {
                let leader = election.leader.as_ref();
                let leads = leader.map(|one| contender(StakeRole::Leads, one));
                let others = election
                    .candidates
                    .iter()
                    .filter(|one| leader.is_none_or(|leader| leader.name != one.name));
                leads.into_iter().chain(others.map(|one| contender(StakeRole::Stands, one))).collect()
            }
            Recipe::Queue(queue) => {
                let idle = queue.consumers.iter().map(|one| contender(StakeRole::Idles, one));
                queue.claims.iter().map(claim).chain(idle).collect()
            }
            Recipe::Service(service) => service.instances.iter().map(instance).collect(),
            Recipe::Membership(membership) => membership.members.iter().map(member).collect(),
            Recipe::DoubleBarrier(barrier) => barrier.members.iter().map(member).collect(),
            Recipe::Partition(partition) => {
                let items = partition.items.iter().filter_map(|item| item.holder.as_ref());
                partition.members.iter().map(member).chain(items.map(of_contender)).collect()
            }
            Recipe::Config(config) => config.readers.iter().map(reader).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the time since which the recipe has its state: since the oldest owner's node exists, since the
    /// item at the head of a queue was put, or since the value was changed. `None` if there is none.
    pub fn since(&self) -> Option<Since> {
        match &self.recipe {
            Recipe::Config(config) => Some(config.modified),
            Recipe::Value(value) => Some(value.modified),
            Recipe::Counter(counter) => Some(counter.modified),
            Recipe::Plain(plain) => Some(plain.modified),
            Recipe::Barrier(barrier) => barrier.since,
            Recipe::Queue(queue) => queue.head.as_ref().and_then(|head| head.since),
            _ => {
                let owners = self.stakes().into_iter().filter(|stake| stake.role.is_owner());
                owners.filter_map(|stake| stake.since).min_by_key(|since| since.at)
            }
        }
    }
}

impl Stake<'_> {
    /// Returns who the client is, in the most precise terms that its node has: host and process, the text or
    /// the address in the node, or the session. Safe for terminals.
    pub fn owner(&self) -> String {
        if let Some(client) = &self.client {
            return client.to_string();
        }
        if let Some(text) = self.identity.filter(|text| !text.bytes().is_empty()) {
            return text.to_string();
        }
        match (&self.address, self.session) {
            (Some(address), _) => address.clone(),
            (None, Some(session)) => format!("session {session:#x}"),
            (None, None) => "an unknown owner".to_owned(),
        }
    }
}

fn of_contender(one: &Contender) -> Stake<'_> {
    contender(if one.holds { StakeRole::Holds } else { StakeRole::Waits }, one)
}

fn contender(role: StakeRole, one: &Contender) -> Stake<'_> {
    Stake {
        identity: one.identity.as_ref().filter(|_| !one.is_revoked),
        client: one.client.clone(),
        held: one.held,
        waits_for: one.waits_for.as_deref(),
        ..stake(role, &one.name, one.session, one.since)
    }
}

fn claim(claim: &Claim) -> Stake<'_> {
    identified(claim.identity.as_ref(), stake(StakeRole::Claims, &claim.item, claim.session, claim.since))
}

fn instance(instance: &Instance) -> Stake<'_> {
    let port = instance.port.or(instance.ssl_port).map_or_else(String::new, |port| format!(":{port}"));
    let address = instance.address.as_deref();
    Stake {
        address: address.map(|address| format!("{}{port}", super::printable(address))),
        ..stake(StakeRole::Registers, &instance.node, instance.session, instance.since)
    }
}

fn member(member: &Member) -> Stake<'_> {
    identified(member.data.as_ref(), stake(StakeRole::Joins, &member.name, member.session, member.since))
}

fn reader(reader: &ConfigReader) -> Stake<'_> {
    stake(StakeRole::Runs, &reader.id, reader.session, reader.since)
}

/// Returns a stake with the data of its node.
fn identified<'a>(identity: Option<&'a NodeText>, stake: Stake<'a>) -> Stake<'a> {
    Stake { identity, client: identity.and_then(NodeText::client), ..stake }
}

/// Returns a stake of which only the node's name, session and time are known.
fn stake(role: StakeRole, name: &str, session: Option<i64>, since: Option<Since>) -> Stake<'_> {
    Stake {
        role,
        name,
        session,
        identity: None,
        client: None,
        address: None,
        since,
        held: None,
        waits_for: None,
    }
}
