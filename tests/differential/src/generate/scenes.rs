//! Sequences of steps that belong together.

use super::generator::{Generator, request};
use crate::script::Action;

/// Timeout of a session that is resumed, in milliseconds.
const TIMEOUT: i32 = 60_000;

impl Generator {
    pub(super) fn scene(&mut self, session: usize) {
        match self.rng.u8(0..100) {
            0..30 => self.reconnect(session),
            30..40 => self.container(session),
            40..50 => self.short_lived(session),
            50..70 => self.burst(session),
            70..78 => self.close(session),
            78..84 => self.expiry(session),
            84..94 => self.sole_watch(session),
            _ => self.lone_attach(session),
        }
    }

    /// A link is lost, other sessions continue, and the watches are set again on the next link.
    fn reconnect(&mut self, session: usize) {
        self.push(session, Action::Drop);
        self.linked[session] = false;
        self.by_other_sessions(3);
        self.push(session, Action::Attach(TIMEOUT));
        self.linked[session] = !self.ended[session];
        let seen = if self.chance(85) { "seen" } else { "0" };
        let action = self.set_watches(seen);
        self.push(session, action);
    }

    fn by_other_sessions(&mut self, most: usize) {
        for _ in 0..self.rng.usize(0..=most) {
            let (session, action) = (self.someone(), self.request());
            self.push(session, action);
        }
    }

    /// The server deletes a container after its only child. No other step uses these nodes.
    fn container(&mut self, session: usize) {
        let path = self.own_name("k");
        self.watch_beforehand(&path);
        let fields = [path.clone(), self.data(), "open".to_owned(), "4".to_owned()];
        self.push(session, request("create-container", fields));
        self.watch_beforehand(&path);
        let child = format!("{path}/x");
        let fields = [child.clone(), self.data(), "open".to_owned(), "0".to_owned()];
        self.push(session, request("create", fields));
        self.watch_beforehand(&path);
        self.push_at_once(session, request("delete", [child, "-1".to_owned()]));
        self.push(session, Action::AwaitDeleted(path));
    }

    /// The server deletes a node after its time to live.
    fn short_lived(&mut self, session: usize) {
        let path = self.own_name("t");
        self.watch_beforehand(&path);
        let fields = [path.clone(), self.data(), "open".to_owned(), "5".to_owned(), "1".to_owned()];
        self.push_at_once(session, request("create-ttl", fields));
        self.push(session, Action::AwaitDeleted(path));
    }

    /// A name that nothing else in the script uses.
    pub(super) fn own_name(&mut self, prefix: &str) -> String {
        self.scenes += 1;
        format!("/{prefix}{}", self.scenes)
    }

    fn watch_beforehand(&mut self, path: &str) {
        for _ in 0..self.rng.usize(0..3) {
            let session = self.someone();
            let action = match self.rng.u8(0..4) {
                0 => request("exists", [path.to_owned(), "1".to_owned()]),
                1 => request("children", [path.to_owned(), "1".to_owned()]),
                2 => request("children", ["/".to_owned(), "1".to_owned()]),
                _ => request("add-watch", [path.to_owned(), self.one_of(&["0", "1"]).to_owned()]),
            };
            self.push(session, action);
        }
    }

    /// Requests of one session that are sent without waiting for replies.
    fn burst(&mut self, session: usize) {
        for _ in 0..self.rng.usize(1..6) {
            let action = match self.rng.u8(0..5) {
                0 => self.create(),
                1 => self.delete(),
                2 => self.set(),
                3 => self.multi_with_known_result(),
                _ => {
                    let name = self.one_of(&["exists", "get", "children2"]);
                    request(name, [self.path(), self.watch()])
                }
            };
            self.push_at_once(session, action);
        }
        self.push(session, request("sync", ["/".to_owned()]));
    }

    /// A multi that is not rejected as a whole.
    ///
    /// Until a real server has replied to a rejected multi, it treats the multi's operations as pending, so
    /// the requests directly after it see them.
    fn multi_with_known_result(&mut self) -> Action {
        let multi = self.multi();
        let is_odd = |field: &String| matches!(field.as_str(), "5" | "6" | "null");
        match &multi {
            Action::Request(_, fields) if fields.iter().any(is_odd) => self.set(),
            _ => multi,
        }
    }

    fn close(&mut self, session: usize) {
        self.own_nodes(session);
        self.push(session, request("close", []));
        (self.linked[session], self.ended[session]) = (false, true);
    }

    fn expiry(&mut self, session: usize) {
        self.own_nodes(session);
        self.push(session, Action::Expire);
        (self.linked[session], self.ended[session]) = (false, true);
        if self.chance(50) {
            self.push(session, Action::Attach(TIMEOUT));
        }
    }

    /// Nodes that are deleted with the session.
    fn own_nodes(&mut self, session: usize) {
        for _ in 0..self.rng.usize(0..3) {
            let fields = [self.new_path(), self.data(), self.acl(), "1".to_owned()];
            self.push(session, request("create2", fields));
        }
    }

    /// Watches, some of which are removed before a change.
    fn sole_watch(&mut self, session: usize) {
        let path = self.likely_path();
        for _ in 0..self.rng.usize(1..4) {
            let action = match self.rng.u8(0..4) {
                0 => request("add-watch", [path.clone(), self.one_of(&["0", "1"]).to_owned()]),
                1 => request("children", [path.clone(), "1".to_owned()]),
                2 => request("get", [path.clone(), "1".to_owned()]),
                _ => request("exists", [path.clone(), "1".to_owned()]),
            };
            self.push(session, action);
        }
        let kind = self.one_of(&["1", "2", "3"]).to_owned();
        self.push(session, request("remove-watches", [path.clone(), kind]));
        let other = self.someone();
        let action = match self.rng.u8(0..3) {
            0 => request("set", [path, self.data(), "-1".to_owned()]),
            1 => self.create(),
            _ => self.delete(),
        };
        self.push(other, action);
    }

    /// A new link resumes the session of the previous link. The timeouts are long, because the session would
    /// otherwise expire at some time.
    fn lone_attach(&mut self, session: usize) {
        let timeout = [TIMEOUT, 30_000, i32::MAX][self.rng.usize(0..3)];
        self.push(session, Action::Attach(timeout));
        self.linked[session] = !self.ended[session];
    }
}
