//! The words on watches, which leave those on children out, as ZooKeeper does.

use super::text::Text;
use super::view::View;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// Answers `wchs`.
pub(super) fn summary(view: View<'_>, out: &mut Text) -> fmt::Result {
    let (mut paths, mut sessions, mut count) = (BTreeSet::new(), BTreeSet::new(), 0_usize);
    for (path, session) in view.state.data_watches() {
        paths.insert(path);
        sessions.insert(session);
        count += 1;
    }
    writeln!(out, "{} connections watching {} paths", sessions.len(), paths.len())?;
    writeln!(out, "Total watches:{count}")
}

/// Answers `wchc`.
pub(super) fn by_session(view: View<'_>, out: &mut Text) -> fmt::Result {
    let mut sessions: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    for (path, session) in view.state.data_watches() {
        sessions.entry(session).or_default().insert(path);
    }
    for (session, paths) in sessions {
        writeln!(out, "{session:#x}")?;
        for path in paths {
            writeln!(out, "\t{path}")?;
        }
    }
    writeln!(out)
}

/// Answers `wchp`.
pub(super) fn by_path(view: View<'_>, out: &mut Text) -> fmt::Result {
    let mut paths: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (path, session) in view.state.data_watches() {
        paths.entry(path).or_default().insert(session);
    }
    for (path, sessions) in paths {
        writeln!(out, "{path}")?;
        for session in sessions {
            writeln!(out, "\t{session:#x}")?;
        }
    }
    writeln!(out)
}
