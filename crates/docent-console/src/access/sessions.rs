use super::secret::Secret;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum number of sessions.
const MOST: usize = 1_024;

/// Time after the last request of a browser at which its session ends.
const IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions of browsers by their id, in memory. A console is either open or has browsers that are signed in,
/// so sessions that anyone can create never take the place of those of signed-in browsers.
#[derive(Debug, Default)]
pub(super) struct Sessions(HashMap<String, Session>);

/// A session of a browser.
#[derive(Debug)]
struct Session {
    csrf: Secret,
    used: Instant,
    /// Dropped with the session.
    alive: watch::Sender<()>,
}

/// What a request needs of its session.
#[derive(Debug)]
pub(super) struct Opened {
    /// Token that forms must contain.
    pub(super) csrf: String,
    /// Closed when the session ends.
    pub(super) alive: watch::Receiver<()>,
}

impl Sessions {
    /// Creates a session, and returns its id. If there are too many, the one that was used least recently
    /// ends.
    pub(super) fn create(&mut self, now: Instant) -> (String, Opened) {
        self.0.retain(|_, session| now.duration_since(session.used) < IDLE);
        if self.0.len() >= MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(_, session)| session.used)
        {
            let oldest = oldest.0.clone();
            self.0.remove(&oldest);
        }
        let session = Session { csrf: Secret::random(), used: now, alive: watch::Sender::new(()) };
        let (id, opened) = (Secret::random().expose().to_owned(), session.opened());
        self.0.insert(id.clone(), session);
        (id, opened)
    }

    /// Returns the session with this id, which counts as used.
    pub(super) fn find(&mut self, id: &str, now: Instant) -> Option<Opened> {
        let session = self.0.get_mut(id)?;
        if now.duration_since(session.used) >= IDLE {
            self.0.remove(id);
            return None;
        }
        session.used = now;
        Some(session.opened())
    }

    /// Ends a session.
    pub(super) fn delete(&mut self, id: &str) {
        self.0.remove(id);
    }
}

impl Session {
    fn opened(&self) -> Opened {
        Opened { csrf: self.csrf.expose().to_owned(), alive: self.alive.subscribe() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_after_twelve_hours_without_a_request() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        let (id, opened) = sessions.create(start);
        let almost = start + IDLE - Duration::from_secs(1);
        assert_eq!(sessions.find(&id, almost).unwrap().csrf, opened.csrf);
        assert!(sessions.find(&id, almost + IDLE - Duration::from_secs(1)).is_some(), "it was used");
        assert!(sessions.find(&id, almost + IDLE * 3).is_none());
        assert!(sessions.find(&id, start).is_none(), "it was removed");
        assert!(opened.alive.has_changed().is_err());
    }

    #[test]
    fn the_session_that_was_used_least_recently_makes_room() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        let ids: Vec<_> =
            (0..MOST as u64).map(|number| sessions.create(start + Duration::from_millis(number)).0).collect();
        assert!(sessions.find(&ids[0], start + Duration::from_secs(2)).is_some());
        let (newest, _) = sessions.create(start + Duration::from_secs(3));
        assert_eq!(sessions.0.len(), MOST);
        let known: Vec<_> = [&ids[0], &ids[1], &ids[2], &newest].map(|id| sessions.0.contains_key(id)).into();
        assert_eq!(known, [true, false, true, true]);
    }

    #[test]
    fn idle_sessions_are_removed_when_another_is_created() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        sessions.create(start);
        sessions.create(start + IDLE);
        assert_eq!(sessions.0.len(), 1);
    }
}
