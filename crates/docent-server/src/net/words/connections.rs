use super::date::Date;
use super::text::Text;
use super::view::View;
use crate::net::links::Link;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

/// Answers `cons`.
pub(super) fn connections(view: View<'_>, out: &mut Text) -> fmt::Result {
    for (id, link) in view.links() {
        link_line(view, id, link, false, out)?;
    }
    writeln!(out)
}

/// Prints a link on its own line, either `brief` or with all details.
pub(super) fn link_line(view: View<'_>, id: u64, link: &Link, brief: bool, out: &mut Text) -> fmt::Result {
    let interest = if id == view.asking { 0 } else { link.interest() };
    let activity = &link.activity;
    let traffic = &activity.traffic;
    write!(out, " /{}[{interest:x}](queued={}", link.peer, link.outstanding())?;
    write!(out, ",recved={},sent={}", traffic.received, traffic.sent)?;
    if let Some(session) = link.session.filter(|_| !brief) {
        let (latency, last) = (&traffic.latency, activity.last);
        write!(out, ",sid={session:#x},lop={}", last.map_or("NA", |last| last.op))?;
        write!(out, ",est={},to={}", activity.since_ms, link.timeout_ms)?;
        if let Some(xid) = activity.last_xid {
            write!(out, ",lcxid={xid:#x}")?;
        }
        write!(out, ",lzxid={:#x}", last.map_or(-1, |last| last.zxid))?;
        write!(out, ",lresp={}", last.map_or(0, |last| last.at_ms.saturating_sub(view.member.since_ms)))?;
        write!(out, ",llat={}", last.map_or(0, |last| last.took_ms))?;
        write!(out, ",minlat={},avglat={},maxlat={}", latency.least(), latency.mean(), latency.most())?;
    }
    writeln!(out, ")")
}

/// Answers `dump`.
pub(super) fn dump(view: View<'_>, out: &mut Text) -> fmt::Result {
    let mut sessions: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (id, expires_at) in view.state.expiries() {
        sessions.entry(expires_at).or_default().push(id);
    }
    writeln!(out, "SessionTracker dump:")?;
    write!(out, "Session ")?;
    sets(&sessions, |id| format!("{id:#x}"), out)?;
    writeln!(out, "ephemeral nodes dump:")?;
    ephemerals(view, out)?;
    let mut links: BTreeMap<i64, Vec<&Link>> = BTreeMap::new();
    for (_, link) in view.links() {
        links.entry(link_expires_at(link)).or_default().push(link);
    }
    writeln!(out, "Connections dump:")?;
    write!(out, "Connections ")?;
    sets(&links, |link| format!("ip: /{} sessionId: {:#x}", link.peer, link.session.unwrap_or(0)), out)
}

fn ephemerals(view: View<'_>, out: &mut Text) -> fmt::Result {
    writeln!(out, "Sessions with Ephemerals ({}):", view.state.ephemerals().count())?;
    for (session, paths) in view.state.ephemerals() {
        writeln!(out, "{session:#x}:")?;
        for path in paths {
            writeln!(out, "\t{path}")?;
        }
    }
    Ok(())
}

/// Prints the items, grouped by the time at which they expire.
fn sets<T, D: Display>(sets: &BTreeMap<i64, Vec<T>>, name: impl Fn(&T) -> D, out: &mut Text) -> fmt::Result {
    writeln!(out, "Sets ({})/({}):", sets.len(), sets.values().map(Vec::len).sum::<usize>())?;
    for (time, items) in sets {
        writeln!(out, "{} expire at {}:", items.len(), Date(*time))?;
        for item in items {
            writeln!(out, "\t{}", name(item))?;
        }
    }
    Ok(())
}

/// Returns the time at which ZooKeeper would close a silent link, rounded up to the next step of ten seconds.
fn link_expires_at(link: &Link) -> i64 {
    const STEP_MS: i64 = 10_000;
    let timeout = if link.session.is_some() { i64::from(link.timeout_ms) } else { STEP_MS };
    (link.activity.heard_ms.saturating_add(timeout) / STEP_MS + 1).saturating_mul(STEP_MS)
}
