use crate::process::{descendants_of, is_alive, keepers_of, send_if_alive as send};
use crate::run::Run;
use docent::Client;
use docent_battery::{Proxy, TestServer};
use docent_testkit::eventually;
use rustix::process::Signal;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::sleep;

/// Pause of docent that its lease survives.
const SHORT_PAUSE: Duration = Duration::from_millis(500);

/// Time for the first process of a command to stop after SIGTERM.
const TIME_TO_STOP: Duration = Duration::from_millis(500);

/// What happens to a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGTERM, and SIGKILL of the first process of the command if it does not stop.
    Term,
    /// SIGKILL.
    Kill,
    /// `kill -9 $(pidof docent)`.
    KillNamed,
    /// SIGSTOP, until the next holder has run.
    Pause,
    /// SIGSTOP and SIGCONT within the lease, then SIGTERM.
    ShortPause,
    /// SIGKILL of the keeper, then SIGTERM of docent.
    KillKeeper,
    /// SIGKILL of docent and its keeper.
    KillBoth,
    /// SIGSTOP of docent and its keeper, until the next holder has run.
    PauseBoth,
    /// SIGKILL of the first process of the command.
    KillCommand,
    /// The link is cut, and cannot be made again.
    Cut,
    /// The link swallows everything.
    BlackHole,
    /// The link is cut once, then SIGTERM.
    Reset,
    /// The server stops and starts, then SIGTERM.
    Restart,
    /// The session expires.
    Expire,
    /// The node of the holder is deleted.
    Break,
}

pub(super) const FAULTS: [Fault; 15] = [
    Fault::Term,
    Fault::Kill,
    Fault::KillNamed,
    Fault::Pause,
    Fault::ShortPause,
    Fault::KillKeeper,
    Fault::KillBoth,
    Fault::PauseBoth,
    Fault::KillCommand,
    Fault::Cut,
    Fault::BlackHole,
    Fault::Reset,
    Fault::Restart,
    Fault::Expire,
    Fault::Break,
];

/// A holder, and everything that a fault can hit.
pub(super) struct Target<'a> {
    pub(super) docent: i32,
    /// First process of the command.
    pub(super) command: i32,
    pub(super) proxy: &'a Proxy,
    pub(super) server: &'a TestServer,
    pub(super) client: &'a Client,
    /// Path of the holder's node.
    pub(super) node: String,
}

impl Fault {
    /// Returns true if the fault stops the server.
    pub(super) fn stops_server(self) -> bool {
        self == Self::Restart
    }

    pub(super) async fn hit(self, target: &Target<'_>) {
        let (docent, keepers) = (target.docent, keepers_of(target.docent));
        match self {
            Self::Term => {}
            Self::Kill => return send(docent, Signal::KILL),
            Self::KillNamed => {
                for process in named(docent).await {
                    send(process, Signal::KILL);
                }
                return;
            }
            Self::Pause => return send(docent, Signal::STOP),
            Self::ShortPause => {
                send(docent, Signal::STOP);
                sleep(SHORT_PAUSE).await;
                send(docent, Signal::CONT);
            }
            Self::KillKeeper => keepers.into_iter().for_each(|keeper| send(keeper, Signal::KILL)),
            // A docent that is killed last would start another keeper.
            Self::KillBoth => {
                return [docent].into_iter().chain(keepers).for_each(|process| send(process, Signal::KILL));
            }
            Self::PauseBoth => {
                return keepers.into_iter().chain([docent]).for_each(|process| send(process, Signal::STOP));
            }
            Self::KillCommand => return send(target.command, Signal::KILL),
            Self::Cut => return target.proxy.cut().await,
            Self::BlackHole => return target.proxy.blackhole(),
            Self::Reset => target.proxy.reset().await,
            Self::Restart => {
                target.server.stop().await;
                target.server.start_again().await;
            }
            Self::Expire => {
                if let Some(stat) = target.client.exists(&target.node).await.unwrap() {
                    target.server.expire(stat.owner.unwrap()).await.unwrap();
                }
                return;
            }
            Self::Break => {
                // The node does not exist any more if the holder has released the lock.
                let _ = target.client.delete(&target.node, None).await;
                return;
            }
        }
        send(docent, Signal::TERM);
        // A command that ignores SIGTERM keeps the lock until it ends.
        let runs = async || is_alive(target.command);
        if eventually(TIME_TO_STOP, runs, |runs| !runs).await.is_err() {
            send(target.command, Signal::KILL);
        }
    }

    /// Lets a paused holder continue.
    pub(super) fn end(self, holder: &Run) {
        if [Self::Pause, Self::PauseBoth].contains(&self) {
            let keepers = keepers_of(holder.id());
            keepers.into_iter().chain([holder.id()]).for_each(|process| send(process, Signal::CONT));
        }
    }
}

/// Returns the processes named `docent` of this holder. Others belong to other tests.
async fn named(docent: i32) -> Vec<i32> {
    let named = Command::new("pidof").arg("docent").output().await.unwrap();
    let named = String::from_utf8(named.stdout).unwrap();
    let own = descendants_of(docent);
    let named = named.split_whitespace().map(|number| number.parse().unwrap());
    named.filter(|number| *number == docent || own.contains(number)).collect()
}
