use crate::inspect::{Limits, inspect_nodes};
use crate::nodes::{Answer, Data, Folder, Known, Nodes, Read};
use crate::report::Report;
use bytes::Bytes;
use docent_proto::Stat;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

/// Time of the first node, in milliseconds since 1970. Each later node is created one second after the one
/// before.
pub(super) const FIRST_MS: u64 = 1_000_000;

/// Time that ages are relative to, an hour after the first node.
pub(super) const NOW_MS: u64 = FIRST_MS + 3_600_000;

/// Session that owns the ephemeral nodes.
pub(super) const SESSION: i64 = 0x1000_0a3f;

/// Nodes in memory.
#[derive(Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (Bytes, Stat)>,
    refused: HashSet<String>,
    /// Nodes that are deleted after they were listed.
    leaving: HashSet<String>,
}

impl Tree {
    /// Adds a persistent node, with its parents.
    pub(super) fn node(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.add(path, data.as_ref(), 0)
    }

    /// Adds an ephemeral node, with its parents.
    pub(super) fn ephemeral(self, path: &str, data: impl AsRef<[u8]>) -> Self {
        self.add(path, data.as_ref(), SESSION)
    }

    /// Adds a node whose data was set `later_ms` after its creation.
    pub(super) fn changed(self, path: &str, data: impl AsRef<[u8]>, later_ms: i64) -> Self {
        let mut tree = self.ephemeral(path, data);
        let (_, stat) = tree.nodes.get_mut(path).unwrap();
        (stat.mtime, stat.version) = (stat.ctime + later_ms, 1);
        tree
    }

    /// Refuses all reads of a node.
    pub(super) fn refuse(mut self, path: &str) -> Self {
        self.refused.insert(path.to_owned());
        self
    }

    /// Deletes a node after it was listed.
    pub(super) fn leave(mut self, path: &str) -> Self {
        self.leaving.insert(path.to_owned());
        self
    }

    fn add(mut self, path: &str, data: &[u8], ephemeral_owner: i64) -> Self {
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty())
            && !self.nodes.contains_key(parent)
        {
            self = self.add(parent, b"", 0);
        }
        let number = i64::try_from(self.nodes.len()).unwrap();
        let ctime = i64::try_from(FIRST_MS).unwrap() + number * 1_000;
        let stat = Stat {
            czxid: number + 1,
            mzxid: number + 1,
            ctime,
            mtime: ctime,
            ephemeral_owner,
            data_length: i32::try_from(data.len()).unwrap(),
            ..Stat::default()
        };
        self.nodes.insert(path.to_owned(), (Bytes::copy_from_slice(data), stat));
        self
    }

    /// Reports on a path, with ages as of an hour after the first node.
    pub(super) fn report(&self, path: &str) -> Report {
        self.report_within(path, &Limits::default())
    }

    /// Like [`report`](Self::report), within these limits. The limit of nodes is ignored.
    pub(super) fn report_within(&self, path: &str, limits: &Limits) -> Report {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(NOW_MS);
        let mut nodes = Nodes::default();
        loop {
            match inspect_nodes(&nodes, path, Some(now), limits) {
                Ok(inspected) => return inspected.report,
                Err(missing) => missing.into_iter().for_each(|read| self.read(&mut nodes, read)),
            }
        }
    }

    fn read(&self, nodes: &mut Nodes, read: Read) {
        let node = self.nodes.get(read.path()).filter(|_| !self.leaving.contains(read.path()));
        let is_refused = self.refused.contains(read.path());
        let answer = match &read {
            Read::Data(_) => {
                let data = node.map(|(data, stat)| Data { bytes: Some(data.clone()), stat: (*stat).into() });
                Answer::Data(known(data, is_refused))
            }
            Read::Children(path) => {
                let folder = node.map(|(_, stat)| Folder::new(self.children(path), (*stat).into()));
                Answer::Folder(known(folder, is_refused))
            }
        };
        nodes.add(read, answer);
    }

    fn children(&self, path: &str) -> Vec<String> {
        let below = format!("{}/", path.trim_end_matches('/'));
        let inside = self.nodes.keys().filter_map(|other| other.strip_prefix(&below));
        inside.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }
}

/// Reports on a node with children of these names, none of which may be read.
pub(super) fn refused_children(path: &str, names: Vec<String>) -> Report {
    let mut nodes = Nodes::default();
    for name in &names {
        nodes.add(Read::Data(format!("{path}/{name}")), Answer::Data(Known::Refused));
    }
    let folder = Folder::new(names, Stat::default().into());
    nodes.add(Read::Children(path.to_owned()), Answer::Folder(Known::Present(folder)));
    inspect_nodes(&nodes, path, None, &Limits::default()).expect("everything was read").report
}

fn known<T>(found: Option<T>, is_refused: bool) -> Known<T> {
    match found {
        None => Known::Absent,
        Some(_) if is_refused => Known::Refused,
        Some(found) => Known::Present(found),
    }
}
