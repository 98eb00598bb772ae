use super::{Answer, Data, Folder, Known, Read};
use crate::report::{LeftOut, Refusal};
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
    newest: Option<SystemTime>,
    newest_zxid: i64,
    left_out: HashSet<String>,
}

impl Nodes {
    pub(crate) fn add(&mut self, read: Read, answer: Answer) {
        match answer {
            Answer::Data(known) => self.add_data(read.into_path(), known),
            Answer::Folder(known) => self.add_folder(read.into_path(), known),
        }
    }

    /// Returns all answers, each with its read.
    pub(crate) fn into_answers(self) -> impl Iterator<Item = (Read, Answer)> {
        let data = self.data.into_iter().map(|(path, known)| (Read::Data(path), Answer::Data(known)));
        let folders =
            self.folders.into_iter().map(|(path, known)| (Read::Children(path), Answer::Folder(known)));
        data.chain(folders)
    }

    pub(crate) fn add_data(&mut self, path: String, known: Known<Data>) {
        if let Known::Present(data) = &known {
            self.bytes += data.bytes.as_ref().map_or(0, bytes::Bytes::len);
            self.note(&data.stat);
        }
        self.paths.insert(path.clone());
        self.data.insert(path, known);
    }

    pub(crate) fn add_folder(&mut self, path: String, known: Known<Folder>) {
        if let Known::Present(folder) = &known {
            self.note(&folder.stat);
        }
        self.paths.insert(path.clone());
        self.folders.insert(path, known);
    }

    /// Records that a read is omitted because of a limit.
    pub(crate) fn omit(&mut self, read: Read) {
        self.left_out.insert(read.path().to_owned());
        match read {
            Read::Data(path) => drop(self.data.insert(path, Known::LeftOut)),
            Read::Children(path) => drop(self.folders.insert(path, Known::LeftOut)),
        }
    }

    /// Counts the nodes that were not read, or not completely, because of limits.
    pub(crate) fn left_out(&self) -> LeftOut {
        let no_bytes = |known: &&Known<Data>| matches!(known, Known::Present(Data { bytes: None, .. }));
        let data = self.data.values().filter(no_bytes).count();
        LeftOut { nodes: self.left_out.len(), deep: 0, data }
    }

    /// Returns the nodes that may not be read, in the order of their paths.
    pub(crate) fn refused(&self) -> Vec<Refusal> {
        let data = self.data.iter().filter(|(_, known)| matches!(known, Known::Refused));
        let folders = self.folders.iter().filter(|(_, known)| matches!(known, Known::Refused));
        let paths: BTreeSet<_> = data.map(|(path, _)| path).chain(folders.map(|(path, _)| path)).collect();
        paths.into_iter().map(|path| Refusal { path: path.clone() }).collect()
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

    pub(crate) fn knows(&self, read: &Read) -> bool {
        match read {
            Read::Data(path) => self.data.contains_key(path),
            Read::Children(path) => self.folders.contains_key(path),
        }
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
        match (self.folders.get(path), self.data.get(path)) {
            (Some(Known::Present(folder)), _) => Some(&folder.stat),
            (_, Some(Known::Present(data))) => Some(&data.stat),
            _ => None,
        }
    }

    /// Returns all known stats, in the order of the paths.
    pub(crate) fn stats(&self) -> BTreeMap<&str, &Stat> {
        self.paths.iter().filter_map(|path| Some((&**path, self.stat(path)?))).collect()
    }

    /// Records the times and transactions of a node.
    fn note(&mut self, stat: &Stat) {
        self.newest_zxid = self.newest_zxid.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
        self.newest = self.newest.max(Some(stat.created)).max(Some(stat.modified));
    }
}
