use docent_core::{Client, Participant};
use std::fmt;
use std::time::Duration;

/// Details about a lock or permit that was not acquired: its path, its holder, and whether the servers
/// answered.
///
/// Use [`servers_reachable`](Self::servers_reachable) to distinguish a lock that another client holds (HTTP
/// status 409) from a lock whose state is unknown (503).
#[derive(Debug, Clone)]
pub struct NotAcquired {
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) ahead: Option<usize>,
    pub(crate) holder: Option<Participant>,
    /// Whether the client that made the call is the holder.
    pub(crate) by_this_client: bool,
    pub(crate) servers_reachable: bool,
    /// Whether the call took a ticket. Without a ticket, the call cannot know that another client holds the
    /// lock.
    pub(crate) queued: bool,
    /// Whether the client lost its connection during the call.
    pub(crate) link_lost: bool,
}

impl NotAcquired {
    /// Creates an account with no details. It assumes that the servers, if they were asked, answered.
    pub(crate) fn at(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            timeout: None,
            ahead: None,
            holder: None,
            by_this_client: false,
            servers_reachable: true,
            queued: true,
            link_lost: false,
        }
    }

    /// Returns the path of the lock or semaphore that was passed to its constructor. For several locks, this
    /// is the path of the lock that the call was waiting for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the timeout of the call, or `None` for a call that does not wait.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the number of contenders ahead when the line was last read, including the holder. For a
    /// semaphore, only contenders that wait for their turn count, not holders. Returns `None` if the call had
    /// no place in the line or the number is unknown.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    /// Returns the last known holder, with its [identity](Participant::identity_text). For a semaphore, this
    /// is the holder of the permit that was acquired first. Returns `None` if the holder is unknown.
    pub fn holder(&self) -> Option<&Participant> {
        self.holder.as_ref()
    }

    /// Returns whether the client that made the call is itself the [holder](Self::holder), in its current
    /// session. If its tasks do not contend for the lock, the lock was acquired twice without an
    /// [`Owner`](crate::Owner).
    pub fn held_by_this_client(&self) -> bool {
        self.by_this_client
    }

    /// Adds the holder, whom `client` has found.
    pub(crate) fn with_holder(self, holder: Option<Participant>, client: &Client) -> Self {
        let session = holder.as_ref().map(|holder| holder.session_id);
        Self { by_this_client: session.is_some() && session == client.session_id(), holder, ..self }
    }

    /// Returns whether the servers answered. If they did, another client holds the lock or waits for it, or
    /// the timeout was too short to take a ticket. Returns false if the client was not connected, or if no
    /// server answered in the last quarter of the timeout (at most one second). The state of the lock is then
    /// unknown.
    ///
    /// If the timeout was less than one second, a connected client suffices: the servers need not answer.
    pub fn servers_reachable(&self) -> bool {
        self.servers_reachable
    }

    /// Returns whether the client lost its connection during the call. Each lost connection may cost the call
    /// its place in the line, and some servers end the session with it.
    pub fn connection_lost(&self) -> bool {
        self.link_lost
    }

    fn holder_text(&self) -> Option<String> {
        let holder = self.holder.as_ref()?;
        let name = holder.owner_text();
        let time = holder.held_for().map_or(String::new(), |time| format!(" for {}", rough(time)));
        Some(match self.by_this_client {
            true => format!("held by this client ({name}){time}"),
            false => format!("held by {name}{time}"),
        })
    }
}

/// Formats a duration roughly, for people.
fn rough(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

impl fmt::Display for NotAcquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.path)?;
        match self.timeout {
            Some(timeout) => write!(f, "not acquired in {timeout:?}: ")?,
            None => f.write_str("not free: ")?,
        }
        let ahead = self.ahead.filter(|ahead| *ahead > 0).map(|ahead| format!("{ahead} ahead"));
        match (self.servers_reachable, self.holder_text(), ahead) {
            (false, ..) => f.write_str("no server answered"),
            (true, Some(holder), Some(ahead)) => write!(f, "{holder}, {ahead}"),
            (true, Some(detail), None) | (true, None, Some(detail)) => f.write_str(&detail),
            (true, None, None) if self.link_lost => {
                f.write_str("the connection was lost during the call, so its holder is not known")
            }
            (true, None, None) if !self.queued => f.write_str("no ticket was taken in time"),
            (true, None, None) => f.write_str("another client holds it or waits for it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_named_instead_of_a_holder_that_is_not_known() {
        let missed = |link_lost| NotAcquired { link_lost, ..NotAcquired::at("/lock") }.to_string();
        assert_eq!(missed(false), "\"/lock\": not free: another client holds it or waits for it");
        assert!(
            missed(true).ends_with("the connection was lost during the call, so its holder is not known")
        );
    }

    #[test]
    fn a_duration_is_rounded_to_one_unit() {
        let texts = [119, 120, 7_199, 7_200].map(|seconds| rough(Duration::from_secs(seconds)));
        assert_eq!(texts, ["119 s", "2 min", "119 min", "2 h"]);
    }
}
