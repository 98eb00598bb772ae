use super::escape::json_escaped;
use super::yaml::yaml;
use super::{Table, escaped};
use crate::args::{Color, Format, Global};
use docent_server::cli::LossyWriter;
use rustix::fs::{OFlags, fcntl_getfl, fstat};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[0m";

/// Output of a verb. Each call writes everything, and fails with `BrokenPipe` if standard output was closed.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    format: Format,
    color: Color,
    quiet: bool,
    stderr: LossyWriter,
}

impl Output {
    /// Creates the output that the options describe.
    pub(crate) fn new(global: &Global) -> Self {
        let stderr = LossyWriter::stderr("docent");
        Self { format: global.output, color: global.color, quiet: global.quiet, stderr }
    }

    /// Returns the requested format.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Returns true if objects were requested, as JSON or YAML, in place of text.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.format, Format::Json | Format::Yaml)
    }

    /// Returns true if tables should have all their columns.
    pub(crate) fn is_wide(&self) -> bool {
        self.format == Format::Wide
    }

    /// Returns true if standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns true if standard output was closed when docent started. The standard library has then opened
    /// /dev/null in its place, for reading and writing, while a shell opens it for writing only.
    pub(crate) fn is_closed(&self) -> bool {
        let stdout = io::stdout();
        let is_null = || {
            let null = std::fs::metadata("/dev/null").ok()?;
            Some(fstat(&stdout).ok()?.st_rdev == null.rdev() && null.file_type().is_char_device())
        };
        fcntl_getfl(&stdout).is_ok_and(|flags| flags.contains(OFlags::RDWR)) && is_null() == Some(true)
    }

    /// Writes bytes to standard output unchanged.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Writes a line to standard output, escaped for terminals.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        self.bytes(format!("{}\n", escaped(text.as_ref())).as_bytes())
    }

    /// Writes a value as one line of JSON, or as a YAML document if that was requested. Both are safe to show
    /// on a terminal.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let text = match self.format {
            Format::Yaml => yaml(value)?,
            _ => json_escaped(&serde_json::to_string(value)?) + "\n",
        };
        self.bytes(text.as_bytes())
    }

    /// Returns the width of the terminal that shows standard output, in characters. Other output has no
    /// limit, because programs read it, nor has `-o wide`.
    fn width(&self) -> Option<usize> {
        let size = tcgetwinsize(io::stdout()).ok().filter(|_| self.is_terminal() && !self.is_wide())?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    /// Writes a table with its heading. A narrow terminal shortens the cells of its flexible column.
    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        let mut lines = table.lines(self.width());
        if self.has_color(&io::stdout())
            && let Some(heading) = lines.first_mut()
        {
            *heading = format!("{BOLD}{heading}{PLAIN}");
        }
        lines.push(String::new());
        self.bytes(lines.join("\n").as_bytes())
    }

    /// Returns true if progress is shown: standard error is a terminal and `--quiet` is not set.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Writes progress to standard error if progress [is shown](Self::shows_progress).
    pub(crate) fn progress(&self, text: impl AsRef<str>) {
        if self.shows_progress() {
            self.remark(text);
        }
    }

    /// Writes a remark to standard error, unless `--quiet` is set.
    pub(crate) fn remark(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.stderr.line(message("docent:", text.as_ref()));
        }
    }

    /// Asks a question on standard error. The answer is typed on the same line.
    pub(crate) fn prompt(&self, text: &str) {
        self.stderr.line(format!("{text} ").into_bytes());
    }

    /// Writes a failure to standard error.
    pub(crate) fn error(&self, failure: &impl Display) {
        let prefix =
            if self.has_color(&io::stderr()) { format!("{RED}docent:{PLAIN}") } else { "docent:".into() };
        self.stderr.last_line(message(&prefix, &failure.to_string()));
    }

    /// Returns standard error, for the log, which keeps its order relative to other output.
    pub(crate) fn stderr(&self) -> &LossyWriter {
        &self.stderr
    }

    fn has_color(&self, stream: &impl IsTerminal) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stream.is_terminal() && takes_colors(|name| std::env::var_os(name)),
        }
    }
}

/// Returns when to use colours in help and errors of the command line itself, for these arguments, which were
/// not parsed yet.
pub(crate) fn color_of_help(arguments: impl IntoIterator<Item = OsString>) -> clap::ColorChoice {
    let mut choice = match takes_colors(|name| std::env::var_os(name)) {
        true => clap::ColorChoice::Auto,
        false => clap::ColorChoice::Never,
    };
    let mut arguments = arguments.into_iter().take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.to_str().unwrap_or_default() {
            "--color" => arguments.next(),
            argument => argument.strip_prefix("--color=").map(OsString::from),
        };
        choice = match value.as_ref().and_then(|value| value.to_str()) {
            Some("always") => clap::ColorChoice::Always,
            Some("never") => clap::ColorChoice::Never,
            _ => choice,
        };
    }
    choice
}

/// Formats a message. Line breaks of the text are kept, everything else in it is escaped.
fn message(prefix: &str, text: &str) -> Vec<u8> {
    let lines: Vec<_> = text.lines().map(escaped).collect();
    format!("{prefix} {}\n", lines.join("\n")).into_bytes()
}

/// Returns true unless the variables say that the terminal must not or cannot show colours.
fn takes_colors(var: impl Fn(&str) -> Option<OsString>) -> bool {
    let refuses = var("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refuses && var("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::takes_colors;

    #[test]
    fn variables_switch_colours_off() {
        let takes = |set: &[(&str, &str)]| {
            takes_colors(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert!(takes(&[]) && takes(&[("TERM", "xterm")]));
        assert!(takes(&[("NO_COLOR", "")]), "NO_COLOR counts only if it is not empty, as no-color.org says");
        assert!(!takes(&[("NO_COLOR", "0")]) && !takes(&[("TERM", "dumb")]));
    }
}
