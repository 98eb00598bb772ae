use super::text::Text;
use super::view::View;
use super::{connections, monitor, server, watches};
use std::fmt::{self, Write};

/// Length of a word in bytes.
pub(in crate::net) const LENGTH: usize = 4;

/// A command of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::net) enum Word {
    Ruok,
    Srvr,
    Stat,
    Mntr,
    Conf,
    Cons,
    Dump,
    Envi,
    Wchs,
    Wchc,
    Wchp,
    Isro,
    Dirs,
    /// Resets the counters of all links.
    Crst,
    /// Resets the counters of the server.
    Srst,
    /// Returns the mask of the traces that are logged.
    Gtmk,
    /// Sets the trace mask, which has no effect because there are no traces.
    Stmk(i64),
}

/// Returns the name of the word at the start of `input`, whether or not it is allowed and complete.
pub(in crate::net) fn name(input: &[u8]) -> Option<&'static str> {
    const NAMES: [&str; 18] = [
        "ruok", "srvr", "stat", "mntr", "conf", "cons", "dump", "envi", "wchs", "wchc", "wchp", "isro",
        "dirs", "crst", "srst", "gtmk", "stmk", "hash",
    ];
    // The interrupt sequence that a telnet client sends.
    const TELNET_CLOSE: &[u8] = &[0xff, 0xf4, 0xff, 0xfd];

    match input.get(..LENGTH)? {
        TELNET_CLOSE => Some("telnet close"),
        word => NAMES.into_iter().find(|name| name.as_bytes() == word),
    }
}

impl Word {
    /// Parses the word at the start of `input`; `None` if it is no word with an answer, or incomplete.
    pub(in crate::net) fn read(input: &[u8]) -> Option<Self> {
        Some(match input.get(..LENGTH)? {
            b"ruok" => Self::Ruok,
            b"srvr" => Self::Srvr,
            b"stat" => Self::Stat,
            b"mntr" => Self::Mntr,
            b"conf" => Self::Conf,
            b"cons" => Self::Cons,
            b"dump" => Self::Dump,
            b"envi" => Self::Envi,
            b"wchs" => Self::Wchs,
            b"wchc" => Self::Wchc,
            b"wchp" => Self::Wchp,
            b"isro" => Self::Isro,
            b"dirs" => Self::Dirs,
            b"crst" => Self::Crst,
            b"srst" => Self::Srst,
            b"gtmk" => Self::Gtmk,
            b"stmk" => Self::Stmk(i64::from_be_bytes(*input[LENGTH..].first_chunk()?)),
            _ => return None,
        })
    }

    /// Returns whether the answer grows with the number of links, nodes or watches.
    pub(in crate::net) fn is_long(self) -> bool {
        matches!(self, Self::Stat | Self::Cons | Self::Dump | Self::Wchc | Self::Wchp)
    }

    /// Returns the answer, truncated to `most` bytes, and whether it is complete.
    pub(in crate::net) fn answer(self, view: View<'_>, most: usize) -> (String, bool) {
        let mut out = Text::new(most);
        let is_whole = self.print(view, &mut out).is_ok();
        (out.into_string(), is_whole)
    }

    fn print(self, view: View<'_>, out: &mut Text) -> fmt::Result {
        match self {
            Self::Ruok => out.write_str("imok"),
            Self::Srvr => server::server(view, false, out),
            Self::Stat => server::server(view, true, out),
            Self::Mntr => monitor::monitor(view, out),
            Self::Conf => server::configuration(view, out),
            Self::Cons => connections::connections(view, out),
            Self::Dump => connections::dump(view, out),
            Self::Envi => server::environment(view, out),
            Self::Wchs => watches::summary(view, out),
            Self::Wchc => watches::by_session(view, out),
            Self::Wchp => watches::by_path(view, out),
            Self::Isro => out.write_str(if view.state.is_read_only() { "ro" } else { "rw" }),
            Self::Dirs => out.write_str("datadir_size: 0\nlogdir_size: 0\n"),
            Self::Crst => out.write_str("Connection stats reset.\n"),
            Self::Srst => out.write_str("Server stats reset.\n"),
            Self::Gtmk => write!(out, "{}", view.ensemble.trace_mask),
            Self::Stmk(mask) => write!(out, "{mask}"),
        }
    }
}
