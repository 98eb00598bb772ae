use std::collections::{BTreeSet, HashMap};

/// Part of a line of a record.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    /// A transaction of the script.
    Zxid(i64),
    /// The latest transaction when a server replied, which may belong to another script.
    Seen(i64),
    /// The owner of a node.
    Session(i64),
}

/// A line of a record, with numbers that differ from server to server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<Piece>);

impl Line {
    pub(crate) fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// The text before the first number, as a sort key.
    pub(crate) fn beginning(&self) -> String {
        match self.0.first() {
            Some(Piece::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    pub(crate) fn zxid(&mut self, zxid: i64) {
        self.0.push(Piece::Zxid(zxid));
    }

    pub(crate) fn seen(&mut self, zxid: i64) {
        self.0.push(Piece::Seen(zxid));
    }

    pub(crate) fn session(&mut self, session: i64) {
        self.0.push(Piece::Session(session));
    }
}

/// Replaces these numbers with values that are the same on every server: the order of the script's
/// transactions, and the position of a session in the script.
pub(crate) fn render(lines: &[Line], sessions: &HashMap<i64, usize>) -> Vec<String> {
    let zxids: BTreeSet<i64> = lines.iter().flat_map(|line| &line.0).filter_map(own).collect();
    let zxids: Vec<i64> = zxids.into_iter().collect();
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Zxid(zxid) | Piece::Seen(zxid) if *zxid <= 0 => zxid.to_string(),
        Piece::Zxid(zxid) | Piece::Seen(zxid) => format!("z{}", zxids.partition_point(|own| own <= zxid)),
        Piece::Session(session) => match sessions.get(session) {
            Some(number) => format!("s{number}"),
            None => format!("{session:#x}"),
        },
    };
    lines.iter().map(|line| line.0.iter().map(piece).collect()).collect()
}

fn own(piece: &Piece) -> Option<i64> {
    match piece {
        Piece::Zxid(zxid) if *zxid > 0 => Some(*zxid),
        _ => None,
    }
}
