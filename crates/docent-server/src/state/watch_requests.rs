//! Requests that set, re-register, check and remove watches.

use super::event::Event;
use super::events::Events;
use super::reader::Reader;
use super::watch_table::Mode;
use super::watches::{Aspect, weight};
use docent_proto::{Code, EventKind, Response, WatchKind, WatchMode, Watches};

/// The aspects of a persistent watch.
const BOTH: [Aspect; 2] = [Aspect::Data, Aspect::Children];

impl Reader<'_> {
    /// Sets a one-shot watch, if a read asks for it.
    pub(super) fn watch(&mut self, aspect: Aspect, path: &str, wanted: bool) -> Result<(), Code> {
        if wanted { self.set(&[aspect], path, Mode::Once) } else { Ok(()) }
    }

    pub(super) fn add_watch(&mut self, path: &str, mode: WatchMode) -> Result<Response, Code> {
        self.set(&BOTH, path, Mode::Stays(mode))?;
        Ok(Response::WatchAdded(Code::OK))
    }

    pub(super) fn check_watches(&self, path: &str, kind: WatchKind) -> Result<Response, Code> {
        // A real server computes the parent of the path here.
        if !path.is_empty() && !path.contains('/') {
            return Err(Code::MARSHALLING_ERROR);
        }
        let is_set = !path.is_empty() && self.watches.is_watched(path, kind);
        if is_set { Ok(Response::Empty) } else { Err(Code::NO_WATCHER) }
    }

    pub(super) fn remove_watches(&mut self, path: &str, kind: WatchKind) -> Result<Response, Code> {
        let removed = self.watches.remove(self.session, path, kind);
        if removed { Ok(Response::Empty) } else { Err(Code::NO_WATCHER) }
    }

    /// Re-registers watches. A one-shot watch whose node has changed since the client last read it fires
    /// immediately and is not set. Persistent watches do not report missed changes.
    pub(super) fn set_watches(
        &mut self,
        once: &Watches,
        persistent: &[String],
        recursive: &[String],
        events: &mut Events,
    ) -> Result<Response, Code> {
        let at_both = [persistent, recursive, persistent, recursive].into_iter().flatten();
        let all = [&once.data, &once.exist, &once.child].into_iter().flatten().chain(at_both);
        let (count, bytes) = all.fold((0, 0), |(count, bytes), path| (count + 1, bytes + weight(path)));
        self.admit(count, bytes)?;
        let since = once.relative_zxid;
        for path in &once.data {
            let kind = match self.tree.get(path) {
                None => (!planted!(MissedDeletion)).then_some(EventKind::Deleted),
                Some(node) => (node.mzxid > since).then_some(EventKind::DataChanged),
            };
            self.notify_or_set(Aspect::Data, path, kind, events);
        }
        for path in &once.exist {
            let kind = self.tree.get(path).map(|_| EventKind::Created);
            self.notify_or_set(Aspect::Data, path, kind, events);
        }
        for path in &once.child {
            let kind = match self.tree.get(path) {
                None => Some(EventKind::Deleted),
                Some(node) => (node.pzxid > since).then_some(EventKind::ChildrenChanged),
            };
            self.notify_or_set(Aspect::Children, path, kind, events);
        }
        let stays = |mode| move |path| (path, Mode::Stays(mode));
        let recursive = if planted!(RecursiveNotSetAgain) { &[] } else { recursive };
        let persistent = persistent.iter().map(stays(WatchMode::Persistent));
        for (path, mode) in persistent.chain(recursive.iter().map(stays(WatchMode::PersistentRecursive))) {
            self.set(&BOTH, path, mode)?;
        }
        Ok(Response::Empty)
    }

    fn notify_or_set(&mut self, aspect: Aspect, path: &str, missed: Option<EventKind>, events: &mut Events) {
        match missed {
            Some(kind) => events.push(Event::missed(self.session, kind, path)),
            None => self.watches.add(self.session, aspect, path, Mode::Once),
        }
    }

    /// Sets the watches of one path.
    fn set(&mut self, aspects: &[Aspect], path: &str, mode: Mode) -> Result<(), Code> {
        let is_new = |aspect: &&Aspect| self.watches.get(self.session, **aspect, path).is_none();
        let count = aspects.iter().filter(is_new).count();
        self.admit(count, count * weight(path))?;
        for aspect in aspects {
            self.watches.add(self.session, *aspect, path, mode);
        }
        Ok(())
    }

    /// Checks that the link may have `added` more watches, of this many bytes.
    fn admit(&mut self, added: usize, bytes: usize) -> Result<(), Code> {
        if added == 0 {
            return Ok(());
        }
        let (watches, limits) = (&self.watches, self.limits);
        let (count, own) = (watches.count_of(self.session), watches.bytes_of(self.session));
        let all = watches.bytes() + bytes;
        self.notes.admit("watches_per_connection", count + added, limits.watches_per_connection)?;
        self.notes.admit("watch_bytes_per_connection", own + bytes, limits.watch_bytes_per_connection)?;
        self.notes.admit("watch_bytes", all, limits.watch_bytes)
    }
}
