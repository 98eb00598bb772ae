use super::link::{Links, ObserverLink};
use super::own_nodes::{self, change, create, folder};
use super::session::ObserverSession;
use crate::controls::Controls;
use crate::server;
use crate::setting::Setting;
use docent_checker::ClientRecorder;
use docent_proto::{Code, CreateMode, Request, WatchKind, WatchMode};
use fastrand::Rng;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Work of an observer. It sets and removes watches, sends requests about nodes, and changes a few of its own
/// nodes, on one link after the other, until it must stop. Then it closes its session.
#[derive(Clone)]
pub(super) struct Routine {
    pub(super) number: u32,
    pub(super) setting: Setting,
    pub(super) controls: Controls,
    pub(super) recorder: ClientRecorder,
    pub(super) links: Links,
    /// Nodes that the workload uses.
    pub(super) paths: Rc<[String]>,
    pub(super) stop: CancellationToken,
}

/// How the work on a link ends.
enum Done {
    /// The session continues on another link.
    Moved,
    /// The session is closed.
    Closed,
}

impl Routine {
    pub(super) async fn run(self, mut rng: Rng) {
        let mut session = ObserverSession::default();
        loop {
            match self.live(&mut session, &mut rng).await {
                Ok(Done::Closed) => return,
                Ok(Done::Moved) => {}
                // The link failed, or no server was available.
                Err(_) => sleep(self.setting.timeout.mul_f64(0.2 * rng.f64())).await,
            }
        }
    }

    /// Works on one link.
    async fn live(&self, session: &mut ObserverSession, rng: &mut Rng) -> io::Result<Done> {
        let servers = server::names(&self.setting);
        let (folder, common) = (folder(self.number), (&self.controls, &self.recorder, &self.links));
        let granted = (folder.as_str(), self.setting.timeout);
        let opened =
            ObserverLink::open(servers[rng.usize(..servers.len())], session, granted, common).await?;
        let Some(mut link) = opened else { return Ok(Done::Moved) };
        link.request(session, session.again()).await?.map_err(refused)?;
        // The node may exist.
        let _ = link.request(session, create(&folder, CreateMode::Persistent)).await?;
        while !self.stop.is_cancelled() {
            if rng.u8(..60) == 0 {
                return Ok(Done::Moved);
            }
            self.act(&mut link, session, rng).await?;
            let span = self.setting.timeout.mul_f64(0.25 * rng.f64() * rng.f64());
            link.listen(session, span.max(Duration::from_millis(1))).await?;
        }
        link.request(session, Request::CloseSession).await?.map_err(refused)?;
        Ok(Done::Closed)
    }

    async fn act(
        &self,
        link: &mut ObserverLink,
        session: &mut ObserverSession,
        rng: &mut Rng,
    ) -> io::Result<()> {
        let request = self.draw(session, rng);
        let result = link.request(session, request.clone()).await?;
        match (&request, &result) {
            (Request::RemoveWatches { path, kind: WatchKind::Any }, Ok(_)) => session.removed(path),
            (Request::Exists { watch: true, .. }, Err(Code::NO_NODE)) => session.set(&request, false),
            (Request::AddWatch { .. }, Ok(_))
            | (
                Request::Exists { watch: true, .. }
                | Request::GetData { watch: true, .. }
                | Request::GetChildren { watch: true, .. },
                Ok(_),
            ) => session.set(&request, true),
            _ => {}
        }
        Ok(())
    }

    fn draw(&self, session: &ObserverSession, rng: &mut Rng) -> Request {
        let path = self.path(rng);
        let stays: Vec<&String> = session.stays().collect();
        let watched = match stays.as_slice() {
            [] => path.clone(),
            all => all[rng.usize(..all.len())].clone(),
        };
        let kind = [WatchKind::Any, WatchKind::Data, WatchKind::Children, WatchKind::Any][rng.usize(..4)];
        match rng.u8(..20) {
            // A read that sets a watch would replace this one.
            0..=1 if session.is_free(&path) => Request::AddWatch { path, mode: WatchMode::Persistent },
            2..=3 if session.is_free(&path) => {
                Request::AddWatch { path, mode: WatchMode::PersistentRecursive }
            }
            4..=6 if !stays.contains(&&path) => {
                let watch = rng.u8(..4) > 0;
                match rng.u8(..3) {
                    0 => Request::Exists { path, watch },
                    1 => Request::GetData { path, watch },
                    _ => Request::GetChildren { path, watch },
                }
            }
            7 if stays.len() > 1 => Request::RemoveWatches { path: watched, kind },
            8 => Request::CheckWatches { path: watched, kind },
            9 => Request::CheckWatches { path, kind },
            10..=11 => Request::GetAllChildrenNumber { path },
            12..=13 => Request::GetEphemerals {
                prefix: if rng.bool() { "/".to_owned() } else { folder(self.number) },
            },
            14 => Request::WhoAmI,
            15 => Request::Auth { scheme: "digest".to_owned(), credentials: "ann:secret".into() },
            _ => change(&folder(self.number), rng),
        }
    }

    fn path(&self, rng: &mut Rng) -> String {
        let own = folder(self.number);
        let all: Vec<String> = own_nodes::paths(&own).chain(self.paths.iter().cloned()).collect();
        all[rng.usize(..all.len())].clone()
    }
}

fn refused(code: Code) -> io::Error {
    io::Error::other(format!("{code:?}"))
}
