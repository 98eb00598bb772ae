use super::owner::{identity, owner};
use super::short::shortened;
use super::time::age;
use docent::inspect::{
    Claim, ConfigReader, Contender, DeadLetter, Instance, InstanceState, Member, NodeText, Recipe,
};

/// Maximum number of characters shown of a payload.
const PAYLOAD: usize = 80;

/// Cells of a row: state, owner, name, age, session, remarks.
pub(super) type Row = [String; 6];

/// Returns a row for each participant and item of a recipe.
pub(super) fn rows(recipe: &Recipe) -> Vec<Row> {
    match recipe {
        Recipe::Mutex(line) | Recipe::ReadWriteLock(line) => contenders(line.contenders.iter()),
        Recipe::Semaphore(semaphore) => contenders(semaphore.permits.iter().chain(&semaphore.waiters)),
        Recipe::Election(election) => {
            let leader = election.leader.iter().map(|leader| contender("leads", leader));
            let candidates = election
                .candidates
                .iter()
                .filter(|one| Some(&one.name) != election.leader.as_ref().map(|leader| &leader.name));
            leader.chain(candidates.map(|one| contender("stands", one))).collect()
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
                [text_of("service"), text_of(""), name.to_owned(), text_of(""), text_of(""), text]
            };
            registry.services.iter().map(|service| row(&service.name, count(service.instances))).collect()
        }
        Recipe::Membership(membership) => membership.members.iter().map(member).collect(),
        Recipe::Config(config) => config.readers.iter().map(reader).collect(),
        Recipe::DoubleBarrier(barrier) => barrier.members.iter().map(member).collect(),
        Recipe::Partition(partition) => partition.members.iter().map(member).collect(),
        _ => Vec::new(),
    }
}

fn contenders<'a>(all: impl Iterator<Item = &'a Contender>) -> Vec<Row> {
    all.map(|one| contender(if one.holds { "holds" } else { "waits" }, one)).collect()
}

fn contender(state: &str, one: &Contender) -> Row {
    let waits_for = one.waits_for.as_ref().map(|name| format!("waits for {name}"));
    let fence = one.fence.map(|fence| format!("fence {fence}"));
    // The first heartbeat comes after the hold began, so the age of the node is shown as well.
    let held = one.held.map(|held| format!("known to hold for {}", age(Some(held))));
    let revoked = one.is_revoked.then(|| "asked to leave (its identity was overwritten)".to_owned());
    let remarks: Vec<_> = [waits_for, fence, held, revoked].into_iter().flatten().collect();
    let (age, session) = (age(one.since), session(one.session));
    [state.to_owned(), identity(one), one.name.clone(), age, session, remarks.join(", ")]
}

fn claim(claim: &Claim) -> Row {
    let owner = owner(claim.identity.as_ref(), claim.session);
    [text_of("in work"), owner, claim.item.clone(), age(claim.since), session(claim.session), String::new()]
}

fn dead_letter(letter: &DeadLetter) -> Row {
    let why = match (letter.reason.as_deref(), letter.detail.as_deref().unwrap_or_default()) {
        (None, _) => text_of("cannot be read"),
        (Some(reason), "") => text_of(reason),
        (Some(reason), detail) => format!("{reason}: {detail}"),
    };
    let deliveries = letter.deliveries.map(|count| format!("handed out {count} times"));
    let size = letter.size.map(|size| format!("{size} bytes"));
    let item = letter.item.as_ref().map(|item| format!("was {item}"));
    let remarks: Vec<_> = [Some(why), deliveries, item, size].into_iter().flatten().collect();
    [
        text_of("dead"),
        String::new(),
        letter.name.clone(),
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
    [text_of(state), address, instance.node.clone(), age, session, remarks.join(", ")]
}

fn member(member: &Member) -> Row {
    let owner = text(member.data.as_ref());
    [text_of("member"), owner, member.id.clone(), age(member.since), session(member.session), String::new()]
}

fn reader(reader: &ConfigReader) -> Row {
    let state = match reader.is_current {
        Some(true) => "current",
        Some(false) => "other",
        None => "unreadable",
    };
    let version = reader.version.map(|version| format!("version {version}")).unwrap_or_default();
    let (age, session) = (age(reader.since), session(reader.session));
    [text_of(state), String::new(), reader.id.clone(), age, session, version]
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
