use docent_core::Participant;
use std::fmt;
use std::time::Duration;

/// Account of a lock or permit that was not acquired: where that was, who was in the way, and whether servers
/// answered at all.
///
/// A service tells "somebody holds it" (409) from "nobody knows" (503) by
/// [`servers_reachable`](Self::servers_reachable).
#[derive(Debug, Clone)]
pub struct NotAcquired {
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) ahead: Option<usize>,
    pub(crate) holder: Option<Participant>,
    pub(crate) servers_reachable: bool,
    /// False when the call ended before it had a ticket: then nothing says that another client is in the way.
    pub(crate) queued: bool,
}

impl NotAcquired {
    /// One of which nothing is known but that the servers, if they were asked, answered.
    pub(crate) fn at(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            timeout: None,
            ahead: None,
            holder: None,
            servers_reachable: true,
            queued: true,
        }
    }

    /// The path of the lock or semaphore, as it was given; of several locks that of the one which was waited
    /// for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The time that was given; `None` for a call that does not wait.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Number of contenders that were ahead when the line was seen last, the holder included; for a semaphore
    /// of those who waited for their turn. `None` without a place in the line, or when that is not known.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    /// The holder as it was seen last, with its [identity](Participant::identity_text); for a semaphore that
    /// of the permit that is out for longest. `None` when that is not known.
    pub fn holder(&self) -> Option<&Participant> {
        self.holder.as_ref()
    }

    /// True when servers answered: somebody is in the way. False when they did not in the last quarter of the
    /// time that was given, one second at most, or the client was not connected: then nobody knows.
    ///
    /// Where less than a second was given it is true if the client was connected.
    pub fn servers_reachable(&self) -> bool {
        self.servers_reachable
    }

    fn holder_text(&self) -> Option<String> {
        let holder = self.holder.as_ref()?;
        let name = holder.owner_text();
        let time = holder.held_for().map_or(String::new(), |time| format!(" for {}", rough(time)));
        Some(format!("held by {name}{time}"))
    }
}

/// A duration as people say it.
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
            None => f.write_str("it is not free: ")?,
        }
        let ahead = self.ahead.filter(|ahead| *ahead > 0).map(|ahead| format!("{ahead} ahead"));
        match (self.servers_reachable, self.holder_text(), ahead) {
            (false, ..) => f.write_str("the servers were not reached"),
            (true, Some(holder), Some(ahead)) => write!(f, "{holder}, {ahead}"),
            (true, Some(one), None) | (true, None, Some(one)) => f.write_str(&one),
            (true, None, None) if !self.queued => f.write_str("no ticket was taken in time"),
            (true, None, None) => f.write_str("another client holds it or waits for it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_as_people_say_it() {
        let texts = [119, 120, 7_199, 7_200].map(|seconds| rough(Duration::from_secs(seconds)));
        assert_eq!(texts, ["119 s", "2 min", "119 min", "2 h"]);
    }
}
