//! Creates whose replies were lost and whose nodes were not found: as long as their session lives, the
//! servers may still apply them (decision 11).

use super::by_name::{children, delete_all_found, owned};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, LinkState};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, timeout};

/// Pause before the second check of a folder. Each further pause is twice as long, until another create is
/// lost there. Therefore a late node remains for about as long as it was late, unless a listing shows it
/// sooner.
const FIRST_GAP: Duration = Duration::from_millis(250);

const LONGEST_GAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum time between checks whether the session has ended.
const LONGEST_NAP: Duration = Duration::from_secs(10);

/// Maximum number of tracked creates of a session; beyond that, the oldest are given up. Each of them took a
/// lost link.
const MAX_TRACKED: usize = 10_000;

/// Maximum number of folders that are listed at the same time.
const MAX_LISTINGS: usize = 8;

/// The lost creates of one session, by the folders of their nodes. Each node has a unique name.
#[derive(Debug)]
pub(crate) struct LostCreates {
    lost: Mutex<Lost>,
    listings: Semaphore,
}

#[derive(Debug, Default)]
struct Lost {
    folders: HashMap<String, Folder>,
    /// Folders and ids of lost creates, oldest first, including some that were found since.
    order: VecDeque<(String, String)>,
}

#[derive(Debug, Default)]
struct Folder {
    /// Prefixes of full paths, by the ids that they contain.
    prefixes: HashMap<String, String>,
    /// Number of creates that were ever added.
    added: u64,
    /// Notified when there is a reason to check now.
    bell: Arc<Notify>,
}

impl Default for LostCreates {
    fn default() -> Self {
        Self { lost: Mutex::default(), listings: Semaphore::new(MAX_LISTINGS) }
    }
}

impl LostCreates {
    fn lock(&self) -> MutexGuard<'_, Lost> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the create of a node below `folder` whose path begins with `prefix`, and starts checking for it.
    pub(super) fn add(&self, generation: &Arc<SessionGeneration>, folder: &str, prefix: &str) {
        // Event: The reply to a create was lost, and the node was not found. The client checks again later,
        // because the servers may still apply the create.
        tracing::debug!(target: "docent::cleanup", client = %generation.client, %prefix, generation = generation.number, "the reply to a create was lost; checking later whether the node appears");
        let mut lost = self.lock();
        let is_new = !lost.folders.contains_key(folder);
        let id = id(prefix).to_owned();
        lost.order.push_back((folder.to_owned(), id.clone()));
        let tracked = lost.folders.entry(folder.to_owned()).or_default();
        tracked.prefixes.insert(id, prefix.to_owned());
        tracked.added += 1;
        if !is_new {
            tracked.bell.notify_one();
        }
        if lost.order.len() > MAX_TRACKED {
            forget_oldest(generation, &mut lost);
        }
        if is_new {
            generation.cleanup.search_for_lost(generation, folder.to_owned());
        }
    }

    /// Checks a listing of `folder` that was made for another reason. A lost node in the listing is deleted
    /// immediately.
    pub(crate) fn observe_listing(&self, folder: &str, names: &[String]) {
        let lost = self.lock();
        let Some(folder) = lost.folders.get(folder) else { return };
        if names.iter().any(|name| folder.prefixes.contains_key(id(name))) {
            folder.bell.notify_one();
        }
    }

    /// Returns the paths of children of `folder` that belong to lost creates.
    fn found(&self, folder: &str, paths: &[String]) -> Vec<String> {
        let lost = self.lock();
        let Some(folder) = lost.folders.get(folder) else { return Vec::new() };
        let is_lost =
            |path: &&String| folder.prefixes.get(id(path)).is_some_and(|prefix| path.starts_with(prefix));
        paths.iter().filter(is_lost).cloned().collect()
    }

    /// Removes the creates whose nodes were deleted. Returns true if no create is left in `folder`, which is
    /// then forgotten.
    fn remove_deleted(&self, folder: &str, deleted: &[String]) -> bool {
        let mut lost = self.lock();
        let Some(tracked) = lost.folders.get_mut(folder) else { return true };
        for path in deleted {
            tracked.prefixes.remove(id(path));
        }
        let done = tracked.prefixes.is_empty();
        if done {
            lost.folders.remove(folder);
        }
        done
    }

    /// Number of creates that were ever added to `folder`, and the folder's bell.
    fn state(&self, folder: &str) -> Option<(u64, Arc<Notify>)> {
        self.lock().folders.get(folder).map(|folder| (folder.added, Arc::clone(&folder.bell)))
    }
}

fn forget_oldest(generation: &SessionGeneration, lost: &mut Lost) {
    let Some((folder, id)) = lost.order.pop_front() else { return };
    let known = lost.folders.get_mut(&folder).and_then(|folder| folder.prefixes.remove(&id));
    if let Some(prefix) = known {
        // Event: The client tracks too many creates with lost replies, and stops checking for the oldest
        // one. If the servers apply it late, its node remains until the session ends.
        // Action: Find out why so many replies are lost; check the network and the load of the servers.
        tracing::warn!(target: "docent::cleanup", client = %generation.client, %prefix, "no longer checking for the node of a create whose reply was lost; {MAX_TRACKED} newer ones are tracked");
    }
}

/// Returns the unique part of the name at the end of a path: a UUID, including the prefix of protected nodes
/// if present.
fn id(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    const UUID: usize = 36;
    const PROTECTED: &str = "_c_";
    let length = if name.starts_with(PROTECTED) { PROTECTED.len() + UUID } else { UUID };
    name.get(..length).unwrap_or(name)
}

/// Checks for the lost creates of `generation` below `folder`: after each new link, whenever a listing shows
/// one, and periodically. Deletes the nodes that it finds. Resolves when no create is left, or when the
/// session has ended and its nodes were deleted with it.
pub(super) async fn search_for_lost(client: &Shared, generation: Arc<SessionGeneration>, folder: String) {
    let lost = &generation.lost_creates;
    let mut link = generation.session.link();
    link.mark_unchanged();
    let (mut gap, mut seen_added) = (FIRST_GAP, 0);
    loop {
        let Some((added, bell)) = lost.state(&folder) else { return };
        if std::mem::replace(&mut seen_added, added) != added {
            // A create was lost just now and may be only slightly late: check frequently again.
            gap = FIRST_GAP;
        }
        if !wait(&generation, &bell, &mut link, gap).await {
            // Check less often, so that a late node remains for about as long as it was late.
            gap = gap.saturating_mul(2).min(LONGEST_GAP);
        }
        // The nodes were deleted with their session.
        if generation.ended().is_some() {
            return;
        }
        let paths = {
            let Ok(_one_of_a_few) = lost.listings.acquire().await else { return };
            match children(&generation, &folder).await {
                Ok(paths) => paths,
                Err(Cause::Ended(_)) => return,
                // The folder may be too large to list now, and smaller later.
                Err(_) => continue,
            }
        };
        let found = match owned(&generation, generation.session.id(), lost.found(&folder, &paths)).await {
            Ok(found) => found,
            Err(Cause::Ended(_)) => return,
            Err(_) => continue,
        };
        let deleted: Vec<_> = found.iter().map(|(path, _)| path.clone()).collect();
        for path in &deleted {
            // Event: The servers applied a create after its caller had given up. The client deletes the node.
            tracing::info!(target: "docent::cleanup", client = %generation.client, %path, generation = generation.number, "a create was applied late; deleting its node");
        }
        delete_all_found(client, generation.number, &generation, found).await;
        if lost.remove_deleted(&folder, &deleted) {
            return;
        }
    }
}

/// Waits until the session is attached again. The loss of a link is no reason to check, because a check needs
/// the next link.
async fn reattached(link: &mut watch::Receiver<LinkState>) -> Result<(), watch::error::RecvError> {
    loop {
        link.changed().await?;
        if link.borrow_and_update().up {
            return Ok(());
        }
    }
}

/// Waits for `gap`, a new link or the bell. Returns true if a link or the bell ended the wait.
async fn wait(
    generation: &SessionGeneration,
    bell: &Notify,
    link: &mut watch::Receiver<LinkState>,
    gap: Duration,
) -> bool {
    let until = Instant::now() + gap;
    while Instant::now() < until && generation.ended().is_none() {
        let nap = until.saturating_duration_since(Instant::now()).min(LONGEST_NAP);
        let reason = async {
            tokio::select! {
                () = bell.notified() => {}
                Ok(()) = reattached(link) => {}
            }
        };
        if timeout(nap, reason).await.is_ok() {
            return true;
        }
    }
    false
}
