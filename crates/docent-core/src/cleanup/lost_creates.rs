//! Creates whose replies were lost and which were not found: as long as their session lives they may be
//! applied after all (decision 11).

use super::by_name::{children, delete_all_found, owned};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, LinkState};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, timeout};

/// Pause before the second look at a folder; each further one is twice as long, until another create is lost
/// there. So a node that was made late stands for about as long as it was late, if no listing shows it
/// sooner.
const FIRST_GAP: Duration = Duration::from_millis(250);

const LONGEST_GAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest wait without a look at whether the session has ended.
const LONGEST_NAP: Duration = Duration::from_secs(10);

/// Most creates of a session that are looked for; the oldest are given up then. Each took a lost link.
const MOST: usize = 10_000;

/// Most folders that are listed at the same time.
const AT_ONCE: usize = 8;

/// The lost creates of one session, by the folders of their nodes. Each node has a name that is ours alone.
#[derive(Debug)]
pub(crate) struct LostCreates {
    lost: Mutex<Lost>,
    /// Number of lost creates, so that `pass_by` needs no lock where there are none.
    count: AtomicUsize,
    looks: Semaphore,
}

#[derive(Debug, Default)]
struct Lost {
    folders: HashMap<String, Folder>,
    /// Folders and ids of lost creates, oldest first; also of some that were found since.
    order: VecDeque<(String, String)>,
}

#[derive(Debug, Default)]
struct Folder {
    /// Beginnings of full paths, by the ids in them.
    prefixes: HashMap<String, String>,
    /// Number of creates that were ever added.
    added: u64,
    /// Notified when there is a reason to look now.
    bell: Arc<Notify>,
}

impl Default for LostCreates {
    fn default() -> Self {
        Self { lost: Mutex::default(), count: AtomicUsize::new(0), looks: Semaphore::new(AT_ONCE) }
    }
}

impl LostCreates {
    fn lock(&self) -> MutexGuard<'_, Lost> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the create of a node below `folder` whose path begins with `prefix`. It is looked for from now
    /// on.
    pub(super) fn add(&self, generation: &Arc<SessionGeneration>, folder: &str, prefix: &str) {
        tracing::debug!(%prefix, generation = generation.number, "a create without a reply is looked for again");
        let mut lost = self.lock();
        let is_new = !lost.folders.contains_key(folder);
        let id = id(prefix.rsplit('/').next().unwrap_or(prefix)).to_owned();
        lost.order.push_back((folder.to_owned(), id.clone()));
        let there = lost.folders.entry(folder.to_owned()).or_default();
        if there.prefixes.insert(id, prefix.to_owned()).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        there.added += 1;
        if !is_new {
            there.bell.notify_one();
        }
        if lost.order.len() > MOST {
            self.forget_oldest(&mut lost);
        }
        if is_new {
            generation.cleanup.look_for_lost(generation, folder.to_owned());
        }
    }

    fn forget_oldest(&self, lost: &mut Lost) {
        let Some((folder, id)) = lost.order.pop_front() else { return };
        let known = lost.folders.get_mut(&folder).and_then(|folder| folder.prefixes.remove(&id));
        if let Some(prefix) = known {
            self.count.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%prefix, "a create without a reply is not looked for any more: there are {MOST} newer ones");
        }
    }

    /// Looks at a listing of `folder` that was made for another reason: a node that is there by now is
    /// deleted at once.
    pub(crate) fn pass_by(&self, folder: &str, names: &[String]) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let lost = self.lock();
        let Some(folder) = lost.folders.get(folder) else { return };
        if names.iter().any(|name| folder.prefixes.contains_key(id(name))) {
            folder.bell.notify_one();
        }
    }

    /// Paths among those of the children of `folder` that belong to lost creates.
    fn found(&self, folder: &str, paths: &[String]) -> Vec<String> {
        let lost = self.lock();
        let Some(folder) = lost.folders.get(folder) else { return Vec::new() };
        let is_lost = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            folder.prefixes.get(id(name)).is_some_and(|prefix| path.starts_with(prefix))
        };
        paths.iter().filter(is_lost).cloned().collect()
    }

    /// Takes away the creates whose nodes were deleted. True when none is left in `folder`, which is
    /// forgotten then.
    fn settle(&self, folder: &str, deleted: &[String]) -> bool {
        let mut lost = self.lock();
        let Some(there) = lost.folders.get_mut(folder) else { return true };
        for path in deleted {
            if there.prefixes.remove(id(path.rsplit('/').next().unwrap_or(path))).is_some() {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let done = there.prefixes.is_empty();
        if done {
            lost.folders.remove(folder);
        }
        done
    }

    /// Number of creates that were ever added to `folder`, and its bell.
    fn state(&self, folder: &str) -> Option<(u64, Arc<Notify>)> {
        self.lock().folders.get(folder).map(|folder| (folder.added, Arc::clone(&folder.bell)))
    }
}

/// The part of a name that is ours alone: a UUID, with the mark of protected nodes where it has that.
fn id(name: &str) -> &str {
    const UUID: usize = 36;
    const PROTECTED: &str = "_c_";
    let length = if name.starts_with(PROTECTED) { PROTECTED.len() + UUID } else { UUID };
    name.get(..length).unwrap_or(name)
}

/// Looks for the lost creates of `generation` below `folder`: after each new link, whenever a listing shows
/// one, and from time to time. Deletes what it finds. Resolves when none is left, or the session has ended
/// and its nodes with it.
pub(super) async fn look_for_lost(client: &Shared, generation: Arc<SessionGeneration>, folder: String) {
    let lost = &generation.lost_creates;
    let mut link = generation.session.link();
    link.mark_unchanged();
    let (mut gap, mut seen) = (FIRST_GAP, 0);
    loop {
        let Some((added, bell)) = lost.state(&folder) else { return };
        if std::mem::replace(&mut seen, added) != added {
            // A create was lost only now, and may be late by little: looks are frequent again.
            gap = FIRST_GAP;
        }
        if !wait(&generation, &bell, &mut link, gap).await {
            // Looks become rarer, so that a node that is made late stands for about as long as it was late.
            gap = gap.saturating_mul(2).min(LONGEST_GAP);
        }
        // The nodes went with their session.
        if generation.ended().is_some() {
            return;
        }
        let paths = {
            let Ok(_one_of_a_few) = lost.looks.acquire().await else { return };
            match children(&generation, &folder).await {
                Ok(paths) => paths,
                Err(Cause::Ended(_)) => return,
                // The folder may be too large to list now, and be smaller later.
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
            tracing::info!(%path, generation = generation.number, "a create was applied late: its node is deleted");
        }
        delete_all_found(client, generation.number, &generation, found).await;
        if lost.settle(&folder, &deleted) {
            return;
        }
    }
}

/// Waits until the session is attached anew. The loss of a link is no reason to look: a look needs the next
/// one.
async fn attached_anew(link: &mut watch::Receiver<LinkState>) -> Result<(), watch::error::RecvError> {
    loop {
        link.changed().await?;
        if link.borrow_and_update().up {
            return Ok(());
        }
    }
}

/// Waits for `gap`, a new link or the bell. True when a link or the bell ended the wait, and not the time.
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
                Ok(()) = attached_anew(link) => {}
            }
        };
        if timeout(nap, reason).await.is_ok() {
            return true;
        }
    }
    false
}
