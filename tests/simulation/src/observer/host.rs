use super::link::Links;
use super::routine::Routine;
use crate::client::ClientHost;
use crate::faults::Faults;
use crate::plan;
use crate::setting::{Setting, apart};
use docent_checker::{ClientId, Recorder, WatcherLink};
use fastrand::Rng;
use std::cell::Cell;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;
use turmoil::Sim;

/// The observers of a world: clients with watches, whose links are compared with the journal. Their faults
/// are drawn separately, and are not recorded in the run.
pub(crate) struct Observers {
    pub(crate) hosts: Vec<ClientHost>,
    pub(crate) faults: Faults,
    pub(crate) recorder: Recorder,
    /// Cancelled when the observers must end.
    pub(crate) stop: CancellationToken,
    links: Links,
}

impl Observers {
    /// Adds `count` observers to the network. They watch at `paths`, and below.
    pub(crate) fn add(
        sim: &mut Sim<'_>,
        setting: &Setting,
        (count, paths, calm): (u32, Vec<String>, bool),
        recorder: Recorder,
    ) -> Self {
        let mut rng = apart(setting.seed, *b"observer");
        let plan = if calm { Vec::new() } else { plan::of_observers(setting, count, &mut rng) };
        let (stop, links, paths) = (CancellationToken::new(), Links::default(), Rc::from(paths));
        let hosts = (0..count).map(|number| {
            let host = ClientHost::new(format!("observer-{number}"), number);
            let routine = Routine {
                number,
                setting: setting.clone(),
                controls: host.controls.clone(),
                recorder: recorder.client(ClientId { number, life: 0 }),
                links: Rc::clone(&links),
                paths: Rc::clone(&paths),
                stop: stop.clone(),
            };
            let (seed, life) = (rng.u64(..), Cell::new(0));
            sim.host(host.name.as_str(), move || {
                let (routine, rng) = (routine.clone(), Rng::with_seed(seed.wrapping_add(life.get())));
                life.set(life.get() + 1);
                async move {
                    let controls = routine.controls.clone();
                    controls.gate(routine.run(rng)).await;
                    Ok(())
                }
            });
            host
        });
        let hosts = hosts.collect();
        Self { hosts, faults: Faults::new(plan), recorder, stop, links }
    }

    /// Records of all the observers' links, in the order of their creation.
    pub(crate) fn links(&self) -> Vec<WatcherLink> {
        self.links.borrow().clone()
    }
}
