use super::short::shortened;
use super::time::age;
use docent::inspect::{Claim, Contender, DeadLetter, Instance, InstanceState, Member, NodeText, Recipe};

/// Most characters of a payload that are shown.
const PAYLOAD: usize = 80;

/// Cells of a row: state, name, owner, age, session, remarks.
pub(super) type Row = [String; 6];

/// Rows about everybody and everything that takes part in a recipe.
pub(super) fn rows(recipe: &Recipe) -> Vec<Row> {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => contenders("waits", &line.contenders),
        Recipe::Semaphore(semaphore) => {
            [contenders("holds", &semaphore.permits), contenders("waits", &semaphore.waiters)].concat()
        }
        Recipe::Election(election) => {
            let leader = election.leader.iter().map(|leader| contender("leads", leader));
            let others = election
                .candidates
                .iter()
                .filter(|one| Some(&one.name) != election.leader.as_ref().map(|leader| &leader.name));
            leader.chain(others.map(|one| contender("stands", one))).collect()
        }
        Recipe::Queue(queue) => {
            let claims = queue.claims.iter().map(claim);
            let idle = queue.consumers.iter().map(|one| contender("idle", one));
            claims.chain(idle).chain(queue.dead_letters.iter().map(dead_letter)).collect()
        }
        Recipe::Service(service) => service.instances.iter().map(instance).collect(),
        Recipe::Registry(registry) => {
            let count =
                |count: Option<usize>| count.map_or_else(String::new, |count| format!("{count} instances"));
            let row = |name: &str, text| {
                [text_of("service"), name.to_owned(), text_of(""), text_of(""), text_of(""), text]
            };
            registry.services.iter().map(|service| row(&service.name, count(service.instances))).collect()
        }
        Recipe::Membership(membership) => membership.members.iter().map(member).collect(),
        Recipe::DoubleBarrier(barrier) => barrier.members.iter().map(member).collect(),
        Recipe::Partition(partition) => partition.members.iter().map(member).collect(),
        _ => Vec::new(),
    }
}

/// Text about the owner of a node: host and process where it tells them, else its data as it is.
pub(crate) fn identity(contender: &Contender) -> String {
    match &contender.client {
        Some(client) => client.to_string(),
        None => text(contender.identity.as_ref()),
    }
}

fn contenders(waiting: &str, all: &[Contender]) -> Vec<Row> {
    all.iter().map(|one| contender(if one.holds { "holds" } else { waiting }, one)).collect()
}

fn contender(state: &str, one: &Contender) -> Row {
    let waits_for = one.waits_for.as_ref().map(|name| format!("waits for {name}"));
    let fence = one.fence.map(|fence| format!("fence {fence}"));
    let revoked = one.is_revoked.then(|| "asked to leave".to_owned());
    let remarks: Vec<_> = [waits_for, fence, revoked].into_iter().flatten().collect();
    let since = one.held.or(one.since);
    [state.to_owned(), one.name.clone(), identity(one), age(since), session(one.session), remarks.join(", ")]
}

fn claim(claim: &Claim) -> Row {
    let owner = text(claim.identity.as_ref());
    [text_of("in work"), claim.item.clone(), owner, age(claim.since), session(claim.session), String::new()]
}

fn dead_letter(letter: &DeadLetter) -> Row {
    let why = match (letter.reason.as_deref(), letter.detail.as_deref().unwrap_or_default()) {
        (None, _) => text_of("it cannot be read"),
        (Some(reason), "") => text_of(reason),
        (Some(reason), detail) => format!("{reason}: {detail}"),
    };
    let deliveries = letter.deliveries.map(|count| format!("handed out {count} times"));
    let size = letter.size.map(|size| format!("{size} bytes"));
    let item = letter.item.as_ref().map(|item| format!("was {item}"));
    let remarks: Vec<_> = [Some(why), deliveries, item, size].into_iter().flatten().collect();
    [
        text_of("dead"),
        letter.name.clone(),
        String::new(),
        age(letter.since),
        String::new(),
        remarks.join(", "),
    ]
}

fn instance(instance: &Instance) -> Row {
    let state = match instance.state {
        InstanceState::Enabled => "enabled",
        InstanceState::Disabled => "disabled",
        _ => "unreadable",
    };
    let port = instance.port.or(instance.ssl_port).map_or_else(String::new, |port| format!(":{port}"));
    let address = instance.address.as_ref().map_or_else(String::new, |address| format!("{address}{port}"));
    let weight = instance.weight.map(|weight| format!("weight {weight}"));
    let payload = instance
        .payload
        .as_ref()
        .map(|payload| format!("payload {}", shortened(&payload.to_string(), PAYLOAD)));
    let remarks: Vec<_> = [instance.fault.clone(), weight, payload].into_iter().flatten().collect();
    let (age, session) = (age(instance.since), session(instance.session));
    [text_of(state), instance.node.clone(), address, age, session, remarks.join(", ")]
}

fn member(member: &Member) -> Row {
    let owner = text(member.data.as_ref());
    [text_of("member"), member.id.clone(), owner, age(member.since), session(member.session), String::new()]
}

fn text(data: Option<&NodeText>) -> String {
    data.map(ToString::to_string).unwrap_or_default()
}

fn text_of(text: &str) -> String {
    text.to_owned()
}

fn session(session: Option<i64>) -> String {
    session.map_or_else(String::new, |session| format!("{session:#x}"))
}
