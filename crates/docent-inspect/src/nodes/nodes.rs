use super::{Answer, Data, Folder, Known, Read};
use crate::report::LeftOut;
use docent_core::Stat;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

/// Nodes that were read so far, by path.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    data: HashMap<String, Known<Data>>,
    folders: HashMap<String, Known<Folder>>,
    /// Paths that were read or tried.
    paths: HashSet<String>,
    /// Bytes of data that were read.
    bytes: usize,
    /// Number of nodes of which only the stat was read.
    without_bytes: usize,
    refused: BTreeSet<String>,
    newest: Option<SystemTime>,
    newest_zxid: i64,
    left_out: HashSet<Read>,
    /// Reads whose replies were too large.
    too_large: HashSet<Read>,
}

impl Nodes {
    /// Adds the answer to a read.
    pub(crate) fn add(&mut self, read: Read, answer: Answer) {
        self.remove(&read);
        let path = read.path().to_owned();
        self.paths.insert(path.clone());
        match answer {
            Answer::Data(known) => {
                self.bytes += length(&known);
                self.without_bytes += usize::from(has_no_bytes(&known));
                self.data.insert(path, known);
            }
            Answer::Folder(known) => drop(self.folders.insert(path, known)),
        }
        match self.known(&read) {
            Some(Known::Present(stat)) => self.note(&stat),
            Some(Known::Refused) => drop(self.refused.insert(read.path().to_owned())),
            Some(Known::LeftOut) => drop(self.too_large.insert(read)),
            Some(Known::Absent) | None => {}
        }
    }

    /// Forgets the answer to a read.
    pub(crate) fn remove(&mut self, read: &Read) {
        let path = read.path();
        match read {
            Read::Data(path) => {
                let removed = self.data.remove(path);
                self.bytes -= removed.as_ref().map_or(0, length);
                self.without_bytes -= usize::from(removed.is_some_and(|known| has_no_bytes(&known)));
            }
            Read::Children(path) => drop(self.folders.remove(path)),
        }
        self.left_out.remove(read);
        self.too_large.remove(read);
        let (data, folder) = (self.data.get(path), self.folders.get(path));
        if !matches!((data, folder), (Some(Known::Refused), _) | (_, Some(Known::Refused))) {
            self.refused.remove(path);
        }
        if data.is_none() && folder.is_none() {
            self.paths.remove(path);
        }
    }

    /// Forgets the answer to a read that was omitted or, `with_data`, whose data were.
    pub(crate) fn retry(&mut self, read: &Read, with_data: bool) {
        let is_data_omitted = with_data && self.is_stat_only(read);
        if self.left_out.contains(read) || self.too_large.contains(read) || is_data_omitted {
            self.remove(read);
        }
    }

    /// Returns true if a read was omitted because of a limit of nodes.
    pub(crate) fn is_omitted(&self, read: &Read) -> bool {
        self.left_out.contains(read)
    }

    /// Returns true if the answer to a read, if there is one, matches the node as it is now. A refusal never
    /// does, because permissions may have changed.
    pub(crate) fn agrees(&self, read: &Read, stat: Option<&Stat>) -> bool {
        let data = |stat: &Stat| (stat.czxid, stat.mzxid, stat.aversion);
        match self.known(read) {
            None => true,
            // A reply that was too large may be small now.
            Some(Known::LeftOut) => self.left_out.contains(read),
            Some(Known::Refused) => false,
            Some(Known::Absent) => stat.is_none(),
            Some(Known::Present(known)) => stat.is_some_and(|now| {
                data(now) == data(&known) && (matches!(read, Read::Data(_)) || now.pzxid == known.pzxid)
            }),
        }
    }

    /// Returns the paths that were read or tried.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.paths.iter()
    }

    /// Records that a read is omitted because of a limit.
    pub(crate) fn omit(&mut self, read: Read) {
        self.left_out.insert(read.clone());
        match read {
            Read::Data(path) => drop(self.data.insert(path, Known::LeftOut)),
            Read::Children(path) => drop(self.folders.insert(path, Known::LeftOut)),
        }
    }

    /// Counts the nodes that were not read, or not completely, because of limits.
    pub(crate) fn left_out(&self) -> LeftOut {
        let nodes = self.left_out.iter().map(Read::path).collect::<HashSet<_>>().len();
        LeftOut { nodes, deep: 0, data: self.without_bytes + self.too_large.len() }
    }

    /// Returns the paths that may not be read, in order.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &String> {
        self.refused.iter()
    }

    /// Returns the newest transaction in any stat, or 0 if there is none.
    pub(crate) fn newest_zxid(&self) -> i64 {
        self.newest_zxid
    }

    pub(crate) fn data(&self, path: &str) -> Option<&Known<Data>> {
        self.data.get(path)
    }

    pub(crate) fn folder(&self, path: &str) -> Option<&Known<Folder>> {
        self.folders.get(path)
    }

    /// Returns the result of a read, with the stat of the node, or `None` if this was not tried yet.
    pub(crate) fn known(&self, read: &Read) -> Option<Known<Stat>> {
        match read {
            Read::Data(path) => self.data(path).map(|known| known.map(|data| data.stat)),
            Read::Children(path) => self.folder(path).map(|known| known.map(|folder| folder.stat)),
        }
    }

    /// Returns true if only the stat was read instead of the data, because of a limit.
    pub(crate) fn is_stat_only(&self, read: &Read) -> bool {
        matches!(read, Read::Data(path) if self.data(path).is_some_and(has_no_bytes))
    }

    /// Returns true for a path that was read or tried.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Returns the number of paths that were read or tried.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the number of bytes of data that were read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the newest time in any stat.
    pub(crate) fn newest(&self) -> Option<SystemTime> {
        self.newest
    }

    /// Returns the stat of a node, if it was read in any way.
    pub(crate) fn stat(&self, path: &str) -> Option<&Stat> {
        let folder = self.folder(path).and_then(Known::present).map(|folder| &folder.stat);
        folder.or_else(|| Some(&self.data(path)?.present()?.stat))
    }

    /// Returns all known stats, in the order of the paths.
    pub(crate) fn stats(&self) -> BTreeMap<&str, &Stat> {
        self.paths.iter().filter_map(|path| Some((&**path, self.stat(path)?))).collect()
    }

    /// Records the times and transactions of a node.
    fn note(&mut self, stat: &Stat) {
        self.newest_zxid = self.newest_zxid.max(newest_zxid(stat));
        self.newest = self.newest.max(Some(stat.created)).max(Some(stat.modified));
    }
}

/// Returns the number of bytes of data.
fn length(known: &Known<Data>) -> usize {
    known.present().and_then(|data| data.bytes.as_ref()).map_or(0, bytes::Bytes::len)
}

fn has_no_bytes(known: &Known<Data>) -> bool {
    matches!(known, Known::Present(Data { bytes: None, .. }))
}

/// Returns the newest transaction in a stat.
pub(super) fn newest_zxid(stat: &Stat) -> i64 {
    stat.czxid.max(stat.mzxid).max(stat.pzxid)
}
