use super::generator::{Generator, request};
use super::values::parent;
use crate::script::{Action, Operation};

const CREDENTIALS: &[&str] =
    &["u:p", "u:q", "v:p", "nocolon", "\"\"", "null", ":", "super:test", "\\xff:\\x80"];
const BAD_SCHEMES: &[&str] = &["nosuch", "null", "\"\"", "ip", "world", "sasl", "auth", "super", "x509"];
/// Numbers that are not operations of a client.
const UNKNOWN: &[&str] =
    &["0", "10", "23", "24", "50", "99", "108", "1000", "-1", "-2", "-99", "-2147483648"];
const KNOWN: &[&str] = &[
    "create",
    "create2",
    "create-container",
    "create-ttl",
    "delete",
    "exists",
    "get",
    "set",
    "get-acl",
    "set-acl",
    "children",
    "children2",
    "multi",
    "multi-read",
    "check",
    "reconfig",
    "check-watches",
    "remove-watches",
    "set-watches",
    "set-watches2",
    "count",
    "add-watch",
    "auth",
];
const SHORT_BODIES: &[&str] =
    &["", "00", "00000002", "ffffffff", "fffffff0", "0000000178", "7fffffff00000000"];

impl Generator {
    /// A request of any kind.
    pub(super) fn request(&mut self) -> Action {
        match self.rng.u32(0..1000) {
            0..210 => self.create(),
            210..310 => self.delete(),
            310..390 => self.set(),
            390..540 => self.read(),
            540..580 => {
                let fields = [self.likely_path(), self.strict_acl(), self.version()];
                request("set-acl", fields)
            }
            580..680 => self.multi(),
            680..705 => self.multi_read(),
            705..775 => {
                let mode = self.one_of(&["0", "0", "0", "1", "1", "1", "2", "-1"]).to_owned();
                let fields = [self.path_not_null(), mode];
                request("add-watch", fields)
            }
            775..860 => self.about_watches(),
            860..890 => self.set_watches("0"),
            890..925 => self.auth(),
            925..975 => self.about_the_tree(),
            975..985 => self.unreadable(),
            985..992 => {
                let code = self.one_of(UNKNOWN).parse().unwrap_or(0);
                Action::Raw(code, Vec::new())
            }
            992..995 => request("ping", []),
            // The version never matches, because a real server never replies to a check that succeeds.
            _ => request("check", [self.path(), "77".to_owned()]),
        }
    }

    /// A create of any kind.
    pub(super) fn create(&mut self) -> Action {
        let (name, mode) = match self.rng.u8(0..100) {
            0..40 => ("create", self.mode()),
            40..85 => ("create2", self.mode()),
            85..91 => ("create-container", self.one_of(&["4", "4", "4", "0", "1"]).to_owned()),
            _ => ("create-ttl", self.one_of(&["5", "5", "6", "0", "4"]).to_owned()),
        };
        let sequential = matches!(mode.as_str(), "2" | "3" | "6");
        let mut path = self.new_path();
        // The servers detect a null path at different moments, so the request must not have another error.
        if path == "null" {
            return request("create2", [path, self.data(), "open".to_owned(), "0".to_owned()]);
        }
        // The server deletes an empty container at some time, so no other step may use it.
        let container = mode == "4" || name == "create-container";
        if container {
            path = self.own_name("c");
        }
        // If other scripts use the same parent, the number in a sequential name differs between runs.
        if sequential && !container && (path.starts_with('=') || self.chance(70)) {
            let base = self.likely_path();
            // Below the script's root the name must have letters, because an empty name would denote the root
            // itself.
            let name = if base == "/" { "q-" } else { self.one_of(&["q-", "", "x"]) };
            path = format!("{}/{name}", base.trim_end_matches('/'));
        } else if path.starts_with('/') && !container {
            self.likely.insert(path.clone());
        }
        let (data, acl) = (self.data(), self.acl());
        if name == "create-ttl" {
            let ttl = self.one_of(&["1000000", "1000000", "1000000", "0", "1099511627775", "1099511627776"]);
            return request(name, [path, data, acl, mode, ttl.to_owned()]);
        }
        request(name, [path, data, acl, mode])
    }

    pub(super) fn delete(&mut self) -> Action {
        let path = self.old_path();
        if !self.likely.iter().any(|other| other != "/" && parent(other) == path) && path != "/" {
            self.likely.remove(&path);
        }
        request("delete", [path, self.version()])
    }

    pub(super) fn set(&mut self) -> Action {
        request("set", [self.path(), self.data(), self.version()])
    }

    fn read(&mut self) -> Action {
        let name = self.one_of(&["exists", "exists", "get", "get", "children", "children2", "get-acl"]);
        let path = if self.chance(2) { self.fixed_path() } else { self.path() };
        if name == "get-acl" { request(name, [path]) } else { request(name, [path, self.watch()]) }
    }

    /// A multi of up to four operations, most of which succeed together.
    pub(super) fn multi(&mut self) -> Action {
        let count = match self.rng.u8(0..30) {
            0 => 0,
            1..10 => 1,
            10..20 => 2,
            20..26 => 3,
            _ => 4,
        };
        let before = self.likely.clone();
        let mut parts: Vec<Action> = (0..count).map(|_| self.part()).collect();
        if self.chance(30) {
            let path = self.path();
            parts.push(request("check", [path, "7".to_owned()]));
            self.likely = before;
        }
        joined("multi", &parts)
    }

    fn part(&mut self) -> Action {
        match self.rng.u8(0..100) {
            0..45 => self.create(),
            45..65 => self.delete(),
            65..85 => self.set(),
            85..98 => request("check", [self.likely_path(), self.version()]),
            _ => self.read(),
        }
    }

    fn multi_read(&mut self) -> Action {
        let count = self.rng.usize(0..4);
        let part = |generator: &mut Self| {
            let name = generator.one_of(&["get", "get", "get", "children", "children", "exists"]);
            request(name, [generator.path(), generator.watch()])
        };
        let parts: Vec<Action> = (0..count).map(|_| part(self)).collect();
        joined("multi-read", &parts)
    }

    fn about_watches(&mut self) -> Action {
        let name = self.one_of(&["remove-watches", "remove-watches", "check-watches"]);
        let kind = self.one_of(&["1", "1", "2", "2", "3", "3", "3", "0", "4", "9"]).to_owned();
        request(name, [self.path(), kind])
    }

    /// A request that sets watches again. `seen` is the transaction after which changes are reported.
    pub(super) fn set_watches(&mut self, seen: &str) -> Action {
        let seen = seen.to_owned();
        // Only the first list may be null: a real server sets the watches of the lists before a null list,
        // and then fails.
        let first = if self.chance(2) { "null".to_owned() } else { self.paths() };
        if self.chance(40) {
            return request("set-watches", [seen, first, self.paths(), self.paths()]);
        }
        let fields = [seen, first, self.paths(), self.paths(), self.paths(), self.paths()];
        request("set-watches2", fields)
    }

    fn auth(&mut self) -> Action {
        if self.chance(8) {
            let fields = ["0".to_owned(), self.one_of(BAD_SCHEMES).to_owned(), "u:p".to_owned()];
            return request("auth", fields);
        }
        let credentials = match self.rng.u8(0..10) {
            0..7 => "u:p",
            7 => "super:test",
            _ => self.one_of(CREDENTIALS),
        };
        request("auth", ["0".to_owned(), "digest".to_owned(), credentials.to_owned()])
    }

    fn about_the_tree(&mut self) -> Action {
        match self.rng.u8(0..12) {
            0..4 => request("ephemerals", [self.path()]),
            4..8 => request("count", [self.path()]),
            8..10 => request("who-am-i", []),
            10 => request("sync", [self.path_not_null()]),
            _ => {
                let members = self.one_of(&["null", "\"\"", "server.1=localhost:1:2"]).to_owned();
                request("reconfig", [members, "null".to_owned(), "null".to_owned(), "-1".to_owned()])
            }
        }
    }

    fn unreadable(&mut self) -> Action {
        let name = self.one_of(KNOWN);
        let code = Operation::find(name).map_or(0, |operation| operation.code);
        let body = self.one_of(SHORT_BODIES).as_bytes();
        let hex = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).unwrap_or(0);
        Action::Raw(code, body.chunks(2).map(hex).collect())
    }
}

fn joined(name: &str, parts: &[Action]) -> Action {
    let Action::Request(operation, mut fields) = request(name, []) else { return Action::Drop };
    for part in parts {
        let Action::Request(operation, rest) = part else { continue };
        if !fields.is_empty() {
            fields.push(";".to_owned());
        }
        fields.push(operation.name.to_owned());
        fields.extend(rest.iter().cloned());
    }
    Action::Request(operation, fields)
}
