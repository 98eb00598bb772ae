use std::collections::{BTreeSet, HashMap};

/// Part of a line of a record.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    /// Transaction of the script's own.
    Zxid(i64),
    /// Transaction that was the newest when a server answered, which may be another script's.
    Seen(i64),
    /// Owner of a node.
    Session(i64),
}

/// Line of a record, with numbers that differ from server to server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<Piece>);

impl Line {
    pub(crate) fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// Its text up to the first number, to sort by.
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

/// Puts what is the same on every server in the place of numbers: the order of a script's transactions, and
/// the place of a session in the script.
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
