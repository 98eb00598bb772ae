use crate::client::ClientHost;
use crate::operator::{Operator, claims, victim};
use crate::plan::{Disturbance, Fault, Link, Planned};
use crate::server::{self, Servers};
use crate::setting::Setting;
use docent_checker::{EventKind, FaultKind, Recorder};
use docent_server::Follower;
use std::collections::VecDeque;
use std::time::Duration;
use turmoil::Sim;

/// The parts of the world that faults affect.
pub(crate) struct Victims<'a, 'b> {
    pub(crate) sim: &'a mut Sim<'b>,
    pub(crate) clients: &'a [ClientHost],
    pub(crate) servers: &'a Servers,
    pub(crate) operator: &'a Operator,
    pub(crate) recorder: &'a Recorder,
    pub(crate) setting: &'a Setting,
}

/// The faults of a run: those that are planned, and those that are active.
#[derive(Debug)]
pub(crate) struct Faults {
    plan: VecDeque<Planned>,
    /// Active faults, each with the time at which it ends.
    lasting: Vec<(Duration, Fault)>,
    /// Faults that wait for their condition, each with the time until which it waits.
    waiting: Vec<(Duration, Planned)>,
    freeze: bool,
}

impl Faults {
    pub(crate) fn new(plan: Vec<Planned>) -> Self {
        let freeze = plan.iter().any(|planned| matches!(planned.fault, Fault::Freeze(_)));
        Self { plan: plan.into(), lasting: Vec::new(), waiting: Vec::new(), freeze }
    }

    /// Returns whether some process is paused during the run.
    pub(crate) fn freeze(&self) -> bool {
        self.freeze
    }

    /// Begins and ends the faults that are due.
    pub(crate) fn apply(&mut self, now: Duration, victims: &mut Victims<'_, '_>) {
        while let Some(index) = self.lasting.iter().position(|(end, _)| *end <= now) {
            let (_, fault) = self.lasting.remove(index);
            victims.heal(&fault);
        }
        while self.plan.front().is_some_and(|planned| planned.at <= now) {
            let Some(planned) = self.plan.pop_front() else { break };
            match &planned.fault {
                Fault::CutOffAtGrant(clients) => {
                    // Earlier grants do not count.
                    victims.take_granted(clients);
                    self.waiting.push((now + victims.setting.tick, planned));
                }
                _ => self.begin(now, planned, victims),
            }
        }
        for (until, planned) in std::mem::take(&mut self.waiting) {
            match &planned.fault {
                Fault::CutOffAtGrant(clients) if victims.take_granted(clients) => {
                    self.begin(now, Planned { fault: Fault::CutOff, ..planned }, victims);
                }
                _ if until <= now => {}
                _ => self.waiting.push((until, planned)),
            }
        }
    }

    fn begin(&mut self, now: Duration, planned: Planned, victims: &mut Victims<'_, '_>) {
        if victims.strike(&planned.fault) && !planned.lasts.is_zero() {
            self.lasting.push((now + planned.lasts, planned.fault));
        }
    }

    /// Ends all active faults, and discards the planned ones.
    pub(crate) fn end(&mut self, victims: &mut Victims<'_, '_>) {
        self.plan.clear();
        self.waiting.clear();
        for (_, fault) in self.lasting.drain(..) {
            victims.heal(&fault);
        }
        for client in victims.clients {
            client.controls.disarm();
        }
    }
}

impl Victims<'_, '_> {
    /// Begins a fault. Returns false if there is nothing that it could affect.
    fn strike(&mut self, fault: &Fault) -> bool {
        let clients = self.clients;
        match fault {
            Fault::Link(link, disturbance) => self.each_link(*link, |sim, client, server| {
                disturb(sim, client, server, *disturbance);
            }),
            Fault::Freeze(client) => clients[*client].controls.freeze(),
            Fault::Crash(client) => return self.crash(&clients[*client]),
            // A trap is recorded when a request triggers it.
            Fault::Trap(client, trap) => clients[*client].controls.arm(trap.clone()),
            Fault::Expire(client) => return self.expire(*client),
            Fault::Deny(client) => return self.deny(*client),
            Fault::Delete(client, first) => return self.delete(&clients[*client], *first),
            Fault::Steal(client) => return self.steal(&clients[*client]),
            Fault::Bounce => self.servers.set_down(true),
            Fault::ShortTimeouts(longest) => self.servers.grant(*longest),
            Fault::CutOff | Fault::CutOffAtGrant(_) => {
                let Some(follower) = self.servers.follower() else { return false };
                follower.cut_off();
            }
            Fault::CutOffHolding => {
                let Some(follower) = self.servers.follower() else { return false };
                follower.cut_off_holding();
            }
        }
        self.record(fault, EventKind::Fault);
        true
    }

    fn heal(&mut self, fault: &Fault) {
        match fault {
            Fault::Link(link, disturbance) => {
                let longest = self.setting.latency;
                self.each_link(*link, |sim, client, server| {
                    repair(sim, client, server, *disturbance, longest);
                });
            }
            Fault::Freeze(client) => self.clients[*client].controls.thaw(),
            Fault::Crash(client) => self.sim.bounce(self.clients[*client].name.as_str()),
            Fault::Bounce => self.servers.set_down(false),
            Fault::ShortTimeouts(_) => self.servers.grant(self.setting.timeout),
            Fault::CutOff | Fault::CutOffAtGrant(_) | Fault::CutOffHolding => {
                self.servers.follower().into_iter().for_each(Follower::rejoin);
            }
            Fault::Trap(..) | Fault::Expire(_) | Fault::Deny(_) | Fault::Delete(..) | Fault::Steal(_) => {
                return;
            }
        }
        self.record(fault, EventKind::Healed);
    }

    /// Returns whether something was granted to one of these clients since the last call.
    fn take_granted(&self, clients: &[usize]) -> bool {
        // Every client must be asked, because asking resets its flag.
        let granted = clients.iter().filter(|client| self.clients[**client].controls.take_granted());
        granted.count() > 0
    }

    fn each_link(&mut self, link: Link, mut what: impl FnMut(&mut Sim<'_>, &ClientHost, &str)) {
        let names = server::names(self.setting);
        let chosen = link.server.map_or(names, |index| &names[index..=index]);
        for name in chosen {
            what(self.sim, &self.clients[link.client], name);
        }
    }

    fn expire(&mut self, client: usize) -> bool {
        let Some((session, server)) = self.clients[client].controls.session().zip(self.servers.leader())
        else {
            return false;
        };
        // The fault must be recorded before the journal contains the session's end.
        self.record(&Fault::Expire(client), EventKind::Fault);
        server.expire(session)
    }

    fn deny(&mut self, client: usize) -> bool {
        let Some((session, server)) = self.clients[client].controls.session().zip(self.servers.leader())
        else {
            return false;
        };
        self.record(&Fault::Deny(client), EventKind::Fault);
        server.deny_session(session)
    }

    /// Kills a process, unless it has already ended.
    fn crash(&mut self, client: &ClientHost) -> bool {
        if !self.sim.is_host_running(client.name.as_str()) {
            return false;
        }
        let recorder = self.recorder.client(client.id());
        recorder.write(EventKind::Fault(FaultKind::Crashed));
        recorder.write(EventKind::Crashed);
        client.controls.dies();
        self.sim.crash(client.name.as_str());
        client.died();
        true
    }

    /// Lets an operator delete the client's latest node, or the first node of its line.
    fn delete(&mut self, client: &ClientHost, first: bool) -> bool {
        let Some((session, server)) = client.controls.session().zip(self.servers.leader()) else {
            return false;
        };
        let Some(path) = victim(server, session, first) else { return false };
        let owner = server.node(&path).map(|node| node.stat.ephemeral_owner);
        let owns = |client: &&ClientHost| {
            client.controls.sessions().iter().any(|(session, _)| Some(*session) == owner)
        };
        let struck = self.clients.iter().find(owns).unwrap_or(client);
        self.recorder.client(struck.id()).write(EventKind::Fault(FaultKind::Deleted));
        self.operator.delete(path);
        true
    }

    /// Lets an operator delete all claims of the client.
    fn steal(&mut self, client: &ClientHost) -> bool {
        let Some((session, server)) = client.controls.session().zip(self.servers.leader()) else {
            return false;
        };
        let claims = claims(server, session);
        if !claims.is_empty() {
            self.recorder.client(client.id()).write(EventKind::Fault(FaultKind::Deleted));
        }
        claims.into_iter().for_each(|claim| self.operator.delete(claim));
        true
    }

    fn record(&self, fault: &Fault, event: impl FnOnce(FaultKind) -> EventKind) {
        let (client, kind) = match fault {
            Fault::Link(link, disturbance) => (Some(link.client), kind(*disturbance)),
            Fault::Freeze(client) => (Some(*client), FaultKind::Frozen),
            Fault::Crash(client) => (Some(*client), FaultKind::Crashed),
            Fault::Expire(client) => (Some(*client), FaultKind::Expired),
            Fault::Deny(client) => (Some(*client), FaultKind::Denied),
            Fault::Bounce => (None, FaultKind::Bounced),
            Fault::ShortTimeouts(_) => (None, FaultKind::ShortTimeouts),
            Fault::CutOff | Fault::CutOffAtGrant(_) | Fault::CutOffHolding => (None, FaultKind::CutOff),
            Fault::Trap(..) | Fault::Delete(..) | Fault::Steal(_) => return,
        };
        match client {
            Some(client) => self.recorder.client(self.clients[client].id()).write(event(kind)),
            None => self.recorder.world(event(kind)),
        }
    }
}

fn kind(disturbance: Disturbance) -> FaultKind {
    match disturbance {
        Disturbance::Cut => FaultKind::Cut,
        Disturbance::CutToServer => FaultKind::CutToServer,
        Disturbance::CutToClient => FaultKind::CutToClient,
        Disturbance::Hold => FaultKind::Held,
        Disturbance::Slow(_) => FaultKind::Slow,
    }
}

fn disturb(sim: &mut Sim<'_>, client: &ClientHost, server: &str, disturbance: Disturbance) {
    let name = client.name.as_str();
    match disturbance {
        Disturbance::Cut => {
            client.controls.set_cut(sim.lookup(server), true);
            sim.partition(name, server);
        }
        Disturbance::CutToServer => {
            client.controls.set_cut(sim.lookup(server), true);
            sim.partition_oneway(name, server);
        }
        Disturbance::CutToClient => sim.partition_oneway(server, name),
        Disturbance::Hold => sim.hold(name, server),
        Disturbance::Slow(latency) => sim.set_link_latency(name, server, latency),
    }
}

fn repair(sim: &mut Sim<'_>, client: &ClientHost, server: &str, disturbance: Disturbance, latency: Duration) {
    let name = client.name.as_str();
    match disturbance {
        Disturbance::Cut => {
            sim.repair(name, server);
            client.controls.set_cut(sim.lookup(server), false);
        }
        Disturbance::CutToServer => {
            sim.repair_oneway(name, server);
            client.controls.set_cut(sim.lookup(server), false);
        }
        Disturbance::CutToClient => sim.repair_oneway(server, name),
        Disturbance::Hold => sim.release(name, server),
        Disturbance::Slow(_) => {
            sim.set_link_latency(name, server, Duration::ZERO);
            sim.set_link_max_message_latency(name, server, latency);
        }
    }
}
