use super::Sketch;
use crate::journal::ChangeKind;
use crate::run::Written;

impl Sketch {
    /// A session makes a node, which belongs to `owner`.
    pub(crate) fn make(&mut self, path: &str, session: i64, owner: i64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Created, path, owner);
        self.nodes.insert(path.to_owned(), (self.zxid, owner));
        self
    }

    /// A session deletes a node.
    pub(crate) fn delete_path(&mut self, path: &str, session: i64) -> &mut Self {
        self.zxid += 1;
        let owner = self.nodes.remove(path).map_or(0, |(_, owner)| owner);
        self.change(session, ChangeKind::Deleted, path, owner);
        self
    }

    /// A transaction that changes no node.
    pub(crate) fn pass(&mut self) -> &mut Self {
        self.zxid += 1;
        self.change(0, ChangeKind::Set, "/limit", 0);
        self
    }

    /// A node that is made with data; ephemeral unless its session is 0.
    pub(crate) fn write_node(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.make(path, session, session).note(path, number)
    }

    /// Data that is set.
    pub(crate) fn write_again(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Set, path, session);
        self.note(path, number)
    }

    fn note(&mut self, path: &str, number: Option<u64>) -> &mut Self {
        self.run.facts.written.push(Written { path: path.to_owned(), zxid: self.zxid, number });
        self
    }

    pub(super) fn written(&self, path: &str, number: u64) -> Option<i64> {
        let mut written = self.run.facts.written.iter();
        written.find(|write| write.path == path && write.number == Some(number)).map(|write| write.zxid)
    }

    pub(crate) fn last_zxid(&self) -> i64 {
        self.zxid
    }
}
