use super::workload::{FOLDER, GROUP, SERVICE, SERVICES, settled};
use crate::workload::ClientCtx;
use docent::discovery::{Instances, MemberChange, ServiceChange};
use docent::{Error, ErrorKind, Instance, Membership, Registry, Service};
use docent_checker::{AttemptId, EventKind, Listed, Viewing};
use fastrand::Rng;
use futures_util::{FutureExt, StreamExt};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::unconstrained;
use tokio::time::{sleep, timeout};

/// How often the instances are read, in addition to after each reported change.
const READ_INTERVAL: Duration = Duration::from_millis(200);

/// Views the service or the group for a while, or until the end of the run. Breaks if the client is closed.
pub(super) async fn run_view(ctx: &ClientCtx, graceful: bool, rng: &mut Rng) -> ControlFlow<()> {
    let span = ctx.setting.timeout.mul_f64(20.0 * rng.f64());
    let to_the_end = rng.bool();
    let grace = if graceful { ctx.setting.timeout.mul_f64(2.0 * rng.f64()) } else { Duration::ZERO };
    let viewing = async {
        match rng.u8(..3) {
            0 => view_members(ctx).await,
            _ => view_service(ctx, grace).await,
        }
    };
    let enough = async {
        if !to_the_end && timeout(span, ctx.stop.cancelled()).await.is_err() {
            return;
        }
        settled(ctx).await;
    };
    tokio::select! {
        done = viewing => done,
        () = enough => ControlFlow::Continue(()),
    }
}

async fn view_service(ctx: &ClientCtx, grace: Duration) -> ControlFlow<()> {
    let Ok(registry) = Registry::new(&ctx.client, SERVICES) else { return ControlFlow::Break(()) };
    let Ok(service) = registry.service_builder::<u64>(SERVICE).removal_grace(grace).start() else {
        return ControlFlow::Break(());
    };
    let sight = Sight::open(ctx, FOLDER, grace);
    while let Err(error) = service.ready().await {
        if error.kind() == ErrorKind::Closed {
            return ControlFlow::Break(());
        }
        sleep(READ_INTERVAL).await;
    }
    let (mut changes, mut told) = (service.changes(), BTreeMap::new());
    loop {
        // All changes reported so far, and the current list.
        while let Some(Some(change)) = unconstrained(changes.next()).now_or_never() {
            take(&mut told, change);
        }
        sight.shown(instances(&service, &told));
        match timeout(READ_INTERVAL, changes.next()).await {
            Ok(None) => return ControlFlow::Break(()),
            Ok(Some(change)) => take(&mut told, change),
            Err(_) => {}
        }
    }
}

/// Applies a change of an available instance.
fn take(told: &mut BTreeMap<String, Option<u64>>, change: Result<ServiceChange<u64>, Error>) {
    match change {
        Ok(ServiceChange::Added(instance) | ServiceChange::Updated(instance)) => {
            told.insert(instance.id.clone(), instance.payload);
        }
        Ok(ServiceChange::Removed(instance)) => drop(told.remove(&instance.id)),
        _ => {}
    }
}

/// The instances that are shown. The available ones have the data of the last reported change.
fn instances(service: &Service<u64>, told: &BTreeMap<String, Option<u64>>) -> Vec<Listed> {
    let shown: &Instances<u64> = &service.instances();
    let available: BTreeSet<&str> = shown.iter().map(|instance| &*instance.id).collect();
    let untold = |(name, _): &(&str, _)| available.contains(name) && !told.contains_key(*name);
    let one = |(name, instance): (&str, &Arc<Instance<u64>>)| Listed {
        name: name.to_owned(),
        number: told.get(name).map_or(instance.payload, |payload| *payload),
        zxid: shown.version(name),
    };
    let gone = told.iter().filter(|(name, _)| !available.contains(&***name));
    let gone = gone.map(|(name, number)| Listed { name: name.clone(), number: *number, zxid: None });
    let unreadable = shown.unreadable().map(|one| Listed { name: one.id.clone(), number: None, zxid: None });
    let shown = shown.all().filter(|one| !untold(one)).map(one);
    let mut listed: Vec<Listed> = shown.chain(unreadable).chain(gone).collect();
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    listed
}

async fn view_members(ctx: &ClientCtx) -> ControlFlow<()> {
    let Ok(group) = Membership::new(&ctx.client, GROUP) else { return ControlFlow::Break(()) };
    let members = match group.members().await {
        Ok(members) => members,
        Err(error) => return ctx.failed(&error),
    };
    let sight = Sight::open(ctx, GROUP, Duration::ZERO);
    let mut changes = members.changes();
    let (mut listed, mut is_current) = (BTreeMap::new(), false);
    while let Some(change) = changes.next().await {
        is_current |= apply(&mut listed, change);
        // A member that re-joins leaves and joins in one step.
        while let Some(Some(change)) = changes.next().now_or_never() {
            is_current |= apply(&mut listed, change);
        }
        if is_current {
            sight.shown(listed.values().cloned().collect());
        }
    }
    ControlFlow::Break(())
}

/// Applies a change. Returns true if all known members have been reported.
fn apply(listed: &mut BTreeMap<String, Listed>, change: Result<MemberChange, Error>) -> bool {
    let Ok(change) = change else { return false };
    match change {
        MemberChange::Joined(peer) | MemberChange::Updated(peer) => {
            let number = std::str::from_utf8(&peer.data).ok().and_then(|text| text.parse().ok());
            let name = peer.id.to_string();
            listed.insert(name.clone(), Listed { name, number, zxid: peer.czxid });
        }
        MemberChange::Left(peer) => drop(listed.remove(&*peer.id)),
        MemberChange::Current => return true,
        _ => {}
    }
    false
}

/// Record of a view: the members that it shows.
///
/// # On drop
/// Records the end of the view. Records nothing if its process dies.
struct Sight<'a> {
    ctx: &'a ClientCtx,
    id: AttemptId,
    last: RefCell<Option<Vec<Listed>>>,
}

impl<'a> Sight<'a> {
    fn open(ctx: &'a ClientCtx, folder: &str, grace: Duration) -> Self {
        let sight = Self { ctx, id: ctx.recorder.attempt(), last: RefCell::new(None) };
        sight.write(Viewing::Opened { folder: folder.to_owned(), grace });
        sight
    }

    /// Records the shown list, if it differs from the last one.
    fn shown(&self, listed: Vec<Listed>) {
        let mut last = self.last.borrow_mut();
        if last.as_ref() != Some(&listed) {
            *last = Some(listed.clone());
            self.write(Viewing::Shown(listed));
        }
    }

    fn write(&self, step: Viewing) {
        self.ctx.recorder.write(EventKind::Viewed(self.id, step));
    }
}

impl Drop for Sight<'_> {
    fn drop(&mut self) {
        if !self.ctx.controls.is_dying() {
            self.write(Viewing::Stopped);
        }
    }
}
