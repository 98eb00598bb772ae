//! Creates whose replies were lost and which were not found: as long as their session lives they may be applied after all.

use super::own::{children, delete_owned};
use crate::core::Core;
use crate::epoch::Epoch;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Before the second look; each further one comes after twice the time. So a node that was made late stands for about as long as it
/// was late, if nothing tells of it sooner.
const FIRST_GAP: Duration = Duration::from_millis(250);

/// Longest wait without a look at whether the session has ended.
const LONGEST_NAP: Duration = Duration::from_secs(10);

/// The lost creates of one session, by the folders of their nodes. Each node has a name that is ours alone.
#[derive(Debug, Default)]
pub(crate) struct LostCreates {
    /// Beginnings of paths.
    folders: Mutex<HashMap<String, Vec<String>>>,
    /// How many there are, for those who look in passing.
    count: AtomicUsize,
    /// Rung when there is a reason to look now.
    bell: Notify,
}

impl LostCreates {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the create of a node below `folder` whose path begins with `prefix`. It is looked for from now on.
    pub(super) fn add(&self, epoch: &Arc<Epoch>, folder: &str, prefix: &str) {
        tracing::debug!(%prefix, epoch = epoch.number, "a create without a reply is looked for again");
        self.count.fetch_add(1, Ordering::Relaxed);
        match self.lock().entry(folder.to_owned()) {
            Entry::Occupied(mut others) => others.get_mut().push(prefix.to_owned()),
            Entry::Vacant(none) => {
                none.insert(vec![prefix.to_owned()]);
                epoch.cleanup.look_for_lost(epoch, folder.to_owned());
                return;
            }
        }
        self.bell.notify_waiters();
    }

    /// Looks at a listing of `folder` that was made for another reason: a node that is there by now is deleted at once.
    pub(crate) fn pass_by(&self, folder: &str, names: &[String]) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let folders = self.lock();
        let Some(prefixes) = folders.get(folder) else { return };
        let is_lost = |name: &String| {
            let in_folder =
                |prefix: &String| prefix.rsplit('/').next().is_some_and(|lost| name.starts_with(lost));
            prefixes.iter().any(in_folder)
        };
        if names.iter().any(is_lost) {
            self.bell.notify_waiters();
        }
    }

    /// Takes away those that a listing shows; true when none is left in `folder`.
    fn found(&self, folder: &str, paths: &[String]) -> bool {
        let mut folders = self.lock();
        let Some(prefixes) = folders.get_mut(folder) else { return true };
        let before = prefixes.len();
        prefixes.retain(|prefix| !paths.iter().any(|path| path.starts_with(prefix)));
        self.count.fetch_sub(before - prefixes.len(), Ordering::Relaxed);
        let done = prefixes.is_empty();
        if done {
            folders.remove(folder);
        }
        done
    }

    fn prefixes(&self, folder: &str) -> Vec<String> {
        self.lock().get(folder).cloned().unwrap_or_default()
    }
}

/// Looks for the lost creates of `epoch` below `folder`: after each new link, whenever a listing shows one, and from time to time.
/// Deletes what it finds. Resolves when none is left, or the session has ended and its nodes with it.
pub(super) async fn look_for_lost(core: &Core, epoch: Arc<Epoch>, folder: String) {
    let lost = &epoch.lost_creates;
    let mut link = epoch.session.link();
    let mut gap = FIRST_GAP;
    loop {
        let next = Instant::now() + gap;
        gap = gap.saturating_mul(2).min(Duration::from_secs(24 * 60 * 60));
        while Instant::now() < next {
            let nap = next.saturating_duration_since(Instant::now()).min(LONGEST_NAP);
            let reason = async {
                tokio::select! {
                    () = lost.bell.notified() => {}
                    Ok(()) = link.changed() => {}
                }
            };
            if timeout(nap, reason).await.is_ok() {
                break;
            }
            if epoch.ended().is_some() {
                return;
            }
        }
        link.borrow_and_update();
        let Ok(paths) = children(&epoch, &folder).await else { return };
        let prefixes = lost.prefixes(&folder);
        let is_lost = |path: &&String| prefixes.iter().any(|prefix| path.starts_with(prefix));
        let found: Vec<_> = paths.iter().filter(is_lost).cloned().collect();
        for path in &found {
            tracing::info!(%path, epoch = epoch.number, "a create was applied late: its node is deleted");
            let _ = delete_owned(core, epoch.number, Arc::clone(&epoch), path.clone(), None).await;
        }
        if lost.found(&folder, &found) {
            return;
        }
    }
}
