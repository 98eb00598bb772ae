//! The four-letter words about watches. As in ZooKeeper, they omit watches on children.

use super::text::Text;
use super::view::View;
use std::fmt::{self, Write};

/// Answers `wchs`.
pub(super) fn summary(view: View<'_>, out: &mut Text) -> fmt::Result {
    let sessions = view.state.data_watches_by_session().count();
    let (paths, count) = view.state.data_watch_count();
    writeln!(out, "{sessions} connections watching {paths} paths")?;
    writeln!(out, "Total watches:{count}")
}

/// Answers `wchc`.
pub(super) fn by_session(view: View<'_>, out: &mut Text) -> fmt::Result {
    for (session, paths) in view.state.data_watches_by_session() {
        writeln!(out, "{session:#x}")?;
        for path in paths {
            writeln!(out, "\t{path}")?;
        }
    }
    writeln!(out)
}

/// Answers `wchp`.
pub(super) fn by_path(view: View<'_>, out: &mut Text) -> fmt::Result {
    for (path, sessions) in view.state.data_watches() {
        writeln!(out, "{path}")?;
        for session in sessions {
            writeln!(out, "\t{session:#x}")?;
        }
    }
    writeln!(out)
}
