use super::connections::link_line;
use super::text::Text;
use super::view::View;
use crate::net::members::LEADER;
use std::fmt::{self, Write};

/// Answers `srvr`, or `stat`, which also lists the links.
pub(super) fn server(view: View<'_>, with_links: bool, out: &mut Text) -> fmt::Result {
    let dialect = view.dialect();
    writeln!(out, "{} version: {}", dialect.software(), dialect.version())?;
    if view.state.is_read_only() {
        writeln!(out, "READ-ONLY mode; serving only read-only clients")?;
    }
    if with_links {
        writeln!(out, "Clients:")?;
        for (id, link) in view.links() {
            link_line(view, id, link, true, out)?;
        }
        writeln!(out)?;
    }
    let traffic = view.member.totals.traffic;
    let latency = traffic.latency;
    writeln!(out, "Latency min/avg/max: {}/{}/{}", latency.least(), latency.exact_mean(), latency.most())?;
    writeln!(out, "Received: {}\nSent: {}", traffic.received, traffic.sent)?;
    writeln!(out, "Connections: {}\nOutstanding: {}", view.links().count(), view.outstanding())?;
    writeln!(out, "Zxid: {:#x}\nMode: {}", view.state.zxid(), view.mode())?;
    writeln!(out, "Node count: {}", view.state.node_count())?;
    if view.mode() == "leader" {
        // Nothing has been measured, because followers are not reached by messages.
        writeln!(out, "Proposal sizes last/min/max: -1/-1/-1")?;
    }
    Ok(())
}

/// Answers `conf`.
pub(super) fn configuration(view: View<'_>, out: &mut Text) -> fmt::Result {
    let (min, max) = view.member.timeouts_ms;
    let id = view.id - LEADER;
    writeln!(out, "clientPort={}\nsecureClientPort=-1", view.member.port)?;
    writeln!(out, "dataDir={NONE}\ndataDirSize=0\ndataLogDir={NONE}\ndataLogSize=0")?;
    writeln!(out, "tickTime={}\nmaxClientCnxns=0", view.state.tick_ms())?;
    writeln!(out, "minSessionTimeout={min}\nmaxSessionTimeout={max}")?;
    writeln!(out, "clientPortListenBacklog=-1\nserverId={id}")
}

/// Answers `envi`, as a server without Java.
pub(super) fn environment(view: View<'_>, out: &mut Text) -> fmt::Result {
    writeln!(out, "Environment:\nzookeeper.version={}\nhost.name={NONE}", view.dialect().version())?;
    for of_java in ["version", "vendor", "home", "class.path", "library.path", "io.tmpdir", "compiler"] {
        writeln!(out, "java.{of_java}={NONE}")?;
    }
    writeln!(out, "os.name={}\nos.arch={}\nos.version={NONE}", std::env::consts::OS, std::env::consts::ARCH)?;
    // Any client can ask for this, so the names of users and their folders are not disclosed.
    writeln!(out, "user.name={NONE}\nuser.home={NONE}\nuser.dir={NONE}")?;
    writeln!(out, "os.memory.free={NONE}\nos.memory.max={NONE}\nos.memory.total={NONE}")
}

/// A missing value, as Java prints it.
const NONE: &str = "<NA>";
