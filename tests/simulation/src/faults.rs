use crate::client::ClientHost;
use crate::operator::{Operator, victim};
use crate::plan::{Fault, Planned};
use crate::server::{self, Command, ServerHost};
use crate::setting::Setting;
use docent_testkit::history::{FaultKind, Recorder, What};
use std::collections::VecDeque;
use std::time::Duration;
use turmoil::Sim;

/// What faults are done to.
pub(crate) struct Victims<'a, 'b> {
    pub(crate) sim: &'a mut Sim<'b>,
    pub(crate) clients: &'a [ClientHost],
    pub(crate) server: &'a ServerHost,
    pub(crate) operator: &'a Operator,
    pub(crate) recorder: &'a Recorder,
    pub(crate) setting: &'a Setting,
}

/// The faults of a run, those to come and those that last.
#[derive(Debug)]
pub(crate) struct Faults {
    plan: VecDeque<Planned>,
    /// With the time at which they end.
    lasting: Vec<(Duration, Fault)>,
}

impl Faults {
    pub(crate) fn new(plan: Vec<Planned>) -> Self {
        Self { plan: plan.into(), lasting: Vec::new() }
    }

    /// Begins and ends what is due.
    pub(crate) fn apply(&mut self, now: Duration, victims: &mut Victims<'_, '_>) {
        while let Some(index) = self.lasting.iter().position(|(end, _)| *end <= now) {
            let (_, fault) = self.lasting.remove(index);
            victims.heal(&fault);
        }
        while self.plan.front().is_some_and(|planned| planned.at <= now) {
            let Some(planned) = self.plan.pop_front() else { return };
            if victims.strike(&planned.fault) && !planned.lasts.is_zero() {
                self.lasting.push((now + planned.lasts, planned.fault));
            }
        }
    }

    /// Ends all faults: none are to come.
    pub(crate) fn end(&mut self, victims: &mut Victims<'_, '_>) {
        self.plan.clear();
        for (_, fault) in self.lasting.drain(..) {
            victims.heal(&fault);
        }
        for client in victims.clients {
            client.controls.disarm();
        }
    }
}

impl Victims<'_, '_> {
    /// Begins a fault; false when there is nothing that it could strike.
    fn strike(&mut self, fault: &Fault) -> bool {
        let clients = self.clients;
        let at = |index: &usize| &clients[*index];
        match fault {
            Fault::Cut(client) => {
                self.sim.partition(at(client).name.as_str(), server::NAME);
                at(client).controls.set_cut(true);
            }
            Fault::CutToServer(client) => {
                self.sim.partition_oneway(at(client).name.as_str(), server::NAME);
                at(client).controls.set_cut(true);
            }
            Fault::CutToClient(client) => self.sim.partition_oneway(server::NAME, at(client).name.as_str()),
            Fault::Hold(client) => self.sim.hold(at(client).name.as_str(), server::NAME),
            Fault::Slow(client, latency) => {
                self.sim.set_link_latency(at(client).name.as_str(), server::NAME, *latency);
            }
            Fault::Freeze(client) => at(client).controls.freeze(),
            Fault::Crash(client) => return self.crash(at(client)),
            Fault::Trap(client, trap) => {
                // It is recorded when a request falls into it.
                at(client).controls.arm(trap.clone());
                return true;
            }
            Fault::Expire(client) => {
                let Some(session) = at(client).controls.session() else { return false };
                self.server.tell(Command::Expire(session));
            }
            Fault::Delete(client, first) => return self.delete(at(client), *first),
            Fault::Bounce => {
                self.server.tell(Command::GoAway);
                self.recorder.world(What::Fault(FaultKind::Bounced));
                return true;
            }
        }
        self.record(fault, What::Fault);
        true
    }

    fn heal(&mut self, fault: &Fault) {
        let clients = self.clients;
        let at = |index: &usize| &clients[*index];
        match fault {
            Fault::Cut(client) => {
                self.sim.repair(at(client).name.as_str(), server::NAME);
                at(client).controls.set_cut(false);
            }
            Fault::CutToServer(client) => {
                self.sim.repair_oneway(at(client).name.as_str(), server::NAME);
                at(client).controls.set_cut(false);
            }
            Fault::CutToClient(client) => self.sim.repair_oneway(server::NAME, at(client).name.as_str()),
            Fault::Hold(client) => self.sim.release(at(client).name.as_str(), server::NAME),
            Fault::Slow(client, _) => {
                self.sim.set_link_latency(at(client).name.as_str(), server::NAME, Duration::ZERO);
                let longest = self.setting.latency;
                self.sim.set_link_max_message_latency(at(client).name.as_str(), server::NAME, longest);
            }
            Fault::Freeze(client) => at(client).controls.thaw(),
            Fault::Crash(client) => self.sim.bounce(at(client).name.as_str()),
            Fault::Bounce => {
                self.server.tell(Command::ComeBack);
                self.recorder.world(What::Healed(FaultKind::Bounced));
                return;
            }
            Fault::Trap(..) | Fault::Expire(_) | Fault::Delete(..) => return,
        }
        self.record(fault, What::Healed);
    }

    /// A process dies, unless it has come to its end.
    fn crash(&mut self, client: &ClientHost) -> bool {
        if !self.sim.is_host_running(client.name.as_str()) {
            return false;
        }
        let scribe = self.recorder.scribe(client.id());
        scribe.write(What::Fault(FaultKind::Crashed));
        scribe.write(What::Crashed);
        client.controls.dies();
        self.sim.crash(client.name.as_str());
        client.died();
        true
    }

    /// An operator deletes the client's newest node, or the first of the line in which that is.
    fn delete(&mut self, client: &ClientHost, first: bool) -> bool {
        let Some(session) = client.controls.session() else { return false };
        let Some(path) = victim(self.server, session, first) else { return false };
        let owner = self.server.get().and_then(|server| server.node(&path)).map(|node| node.stat.ephemeral_owner);
        let struck = self.clients.iter().find(|client| client.controls.session() == owner).unwrap_or(client);
        self.recorder.scribe(struck.id()).write(What::Fault(FaultKind::Deleted));
        self.operator.delete(path);
        true
    }

    fn record(&self, fault: &Fault, what: impl FnOnce(FaultKind) -> What) {
        let (client, kind) = match fault {
            Fault::Cut(client) => (client, FaultKind::Cut),
            Fault::CutToServer(client) => (client, FaultKind::CutToServer),
            Fault::CutToClient(client) => (client, FaultKind::CutToClient),
            Fault::Hold(client) => (client, FaultKind::Held),
            Fault::Slow(client, _) => (client, FaultKind::Slow),
            Fault::Freeze(client) => (client, FaultKind::Frozen),
            Fault::Crash(client) => (client, FaultKind::Crashed),
            Fault::Expire(client) => (client, FaultKind::Expired),
            Fault::Trap(..) | Fault::Delete(..) | Fault::Bounce => return,
        };
        self.recorder.scribe(self.clients[*client].id()).write(what(kind));
    }
}
