//! Fields of requests, mostly valid ones.

use super::generator::Generator;

const BAD_PATHS: &[&str] = &[
    "null",
    "a",
    "/a/",
    "//a",
    "/a//x",
    "/a/./x",
    "/a/../x",
    "/.",
    "/a\\x00b",
    "/a\\x01b",
    "/a\\x7fb",
    "/a\\xc2\\x85b",
    "/a\\xffb",
    "/a\\xef\\xbf\\xb0",
    "/a\\xf0\\x9f\\x98\\x80",
];
/// An empty path, which denotes the root of the server's whole tree. All scripts share that tree, and can
/// neither read nor write its root.
const EMPTY: &str = "\"\"";
/// Paths that no client can create or delete.
const FIXED: &[&str] = &["=/", "=/zookeeper", "=/zookeeper/config", "=/zookeeper/quota"];
const BAD_ACLS: &[&str] = &[
    "-",
    "null",
    "31:nosuch:x",
    "31:world:everyone",
    "31:digest:nocolon",
    "31:digest:a:b:c",
    "0:world:anyone",
    "64:world:anyone",
    "31:null:anyone",
    "31:ip:nonsense",
    "31:ip:127.0.0.1/33",
    "31:sasl:joe",
    "31:x509:joe",
    "31:super:joe",
    "31:auth:",
    "31:auth:joe",
    "31:world:anyone,31:world:anyone",
    "31:world:anyone,1:nosuch:x",
];
const ACLS: &[&str] = &[
    "read",
    "31:auth:",
    "31:auth:null",
    "1:world:anyone,30:auth:",
    "31:digest:u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=",
    "1:world:anyone,31:digest:u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=",
    "31:ip:127.0.0.1",
    "31:ip:10.0.0.0/8",
    "31:ip:127.0.0.0/8",
    "30:world:anyone",
    "29:world:anyone",
    "27:world:anyone",
    "23:world:anyone",
    "15:world:anyone",
    "17:ip:127.0.0.1,14:world:anyone",
];

impl Generator {
    /// A path that may or may not exist.
    pub(super) fn path(&mut self) -> String {
        match self.rng.u8(0..100) {
            0..3 => self.one_of(BAD_PATHS).to_owned(),
            3..60 => self.likely_path(),
            60..63 => "/".to_owned(),
            _ => self.pool[self.rng.usize(0..self.pool.len())].clone(),
        }
    }

    /// Like [`path`](Self::path), but not null, because a real server never replies to a request that watches
    /// a null path.
    pub(super) fn path_not_null(&mut self) -> String {
        let path = self.path();
        if path == "null" { "/".to_owned() } else { path }
    }

    /// A path that probably exists.
    pub(super) fn likely_path(&mut self) -> String {
        let at = self.rng.usize(0..self.likely.len());
        self.likely.iter().nth(at).cloned().unwrap_or_default()
    }

    /// A path to create, mostly one whose parent exists.
    pub(super) fn new_path(&mut self) -> String {
        match self.rng.u8(0..100) {
            0..3 => return self.one_of(BAD_PATHS).to_owned(),
            3 => return EMPTY.to_owned(),
            4 => return self.one_of(FIXED).to_owned(),
            _ => {}
        }
        let can_be: Vec<&String> = self
            .pool
            .iter()
            .filter(|path| !self.likely.contains(*path) && self.likely.contains(parent(path)))
            .collect();
        if can_be.is_empty() || self.rng.u8(0..10) == 0 {
            return self.pool[self.rng.usize(0..self.pool.len())].clone();
        }
        can_be[self.rng.usize(0..can_be.len())].clone()
    }

    /// A path of the servers' own nodes, which no script changes.
    pub(super) fn fixed_path(&mut self) -> String {
        self.one_of(&["=/zookeeper", "=/zookeeper/config", "=/zookeeper/quota", "=/zookeeper/none"])
            .to_owned()
    }

    /// A path to delete, mostly one without children.
    pub(super) fn old_path(&mut self) -> String {
        match self.rng.u8(0..100) {
            0 => return EMPTY.to_owned(),
            1..3 => return self.one_of(FIXED).to_owned(),
            _ => {}
        }
        let leaves: Vec<&String> = self
            .likely
            .iter()
            .filter(|path| *path != "/" && !self.likely.iter().any(|other| parent(other) == *path))
            .collect();
        if leaves.is_empty() || self.rng.u8(0..5) == 0 {
            return self.path();
        }
        leaves[self.rng.usize(0..leaves.len())].clone()
    }

    pub(super) fn paths(&mut self) -> String {
        match self.rng.usize(0..5) {
            0 => "-".to_owned(),
            count => (0..count.max(1)).map(|_| self.path_not_null()).collect::<Vec<_>>().join(","),
        }
    }

    pub(super) fn data(&mut self) -> String {
        match self.rng.u8(0..10) {
            0 => "null".to_owned(),
            1 => "\"\"".to_owned(),
            2 => "*300".to_owned(),
            3 => "\\xff\\x00".to_owned(),
            _ => self.one_of(&["one", "two", "three"]).to_owned(),
        }
    }

    pub(super) fn version(&mut self) -> String {
        let version = match self.rng.u8(0..100) {
            0..60 => -1,
            60..95 => self.rng.i32(0..4),
            95..97 => -2,
            97 => i32::MAX,
            98 => i32::MIN,
            _ => 99,
        };
        version.to_string()
    }

    pub(super) fn acl(&mut self) -> String {
        match self.rng.u8(0..100) {
            0..80 => "open",
            80..96 => self.one_of(ACLS),
            _ => self.one_of(BAD_ACLS),
        }
        .to_owned()
    }

    /// An access control list that mostly restricts access.
    pub(super) fn strict_acl(&mut self) -> String {
        match self.rng.u8(0..100) {
            0..25 => "open",
            25..90 => self.one_of(ACLS),
            _ => self.one_of(BAD_ACLS),
        }
        .to_owned()
    }

    pub(super) fn watch(&mut self) -> String {
        match self.rng.u8(0..20) {
            0..8 => "0",
            8 => "2",
            _ => "1",
        }
        .to_owned()
    }

    pub(super) fn mode(&mut self) -> String {
        match self.rng.u8(0..40) {
            0..18 => "0".to_owned(),
            18..28 => "1".to_owned(),
            28..34 => "2".to_owned(),
            34..38 => "3".to_owned(),
            38 => self.one_of(&["4", "5", "6"]).to_owned(),
            _ => self.one_of(&["7", "-1", "99"]).to_owned(),
        }
    }
}

/// The parent of a path. The root is its own parent.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}
