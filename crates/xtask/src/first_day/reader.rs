//! A reader who does what a page says, and nothing else.

use super::machine::{Machine, Printed};
use super::steps::{Kind, Step};
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

const REPOSITORY: &str = "https://github.com/docent-rs/docent";
/// Crates that the pages name, and that are not published yet.
const CRATES: [&str; 3] = ["docent-cli", "docent-server", "docent"];
const ZOOKEEPER_PORT: u16 = 2181;
/// Lines of a command's output that are printed.
const SHOWN: usize = 4;

/// Counts of what was done.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) commands: usize,
    pub(super) files: usize,
    pub(super) not_run: usize,
}

/// Follows the steps of one page.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) page: &'a str,
    pub(super) machine: &'a mut Machine,
    /// Build folder of the reader's projects. A rerun finds the dependencies there.
    pub(super) build: &'a Path,
    pub(super) counts: &'a mut Counts,
    /// Folder in which the shell is.
    folder: PathBuf,
    /// Text of the page that differs on this machine: what is printed, and what is used.
    replaced: Vec<(String, String)>,
    has_commands: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        page: &'a str,
        machine: &'a mut Machine,
        build: &'a Path,
        counts: &'a mut Counts,
    ) -> Result<Self> {
        let folder = machine.home().to_owned();
        let mut reader =
            Self { page, machine, build, counts, folder, replaced: Vec::new(), has_commands: false };
        if TcpListener::bind(("127.0.0.1", ZOOKEEPER_PORT)).is_err() {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            println!("port {ZOOKEEPER_PORT} is in use here: {port} instead");
            reader.replaced.push((ZOOKEEPER_PORT.to_string(), port.to_string()));
        }
        Ok(reader)
    }

    /// Moves to `folder`.
    pub(super) fn enter(&mut self, folder: PathBuf) {
        self.folder = folder;
    }

    /// Does all steps, then ends the processes that they left in the background.
    pub(super) fn follow(&mut self, steps: &[Step]) -> Result<()> {
        if !steps.iter().any(|step| step.code.contains("cargo new ")) {
            self.implied("cargo new service && cd service")?;
        }
        for (index, step) in steps.iter().enumerate() {
            self.step(step).with_context(|| format!("{}:{}: {}", self.page, step.line, step.title()))?;
            let next = steps.get(index + 1).map_or("", |next| &next.code);
            if is_program(step) && !next.contains("cargo run") && !next.contains("cargo build") {
                self.implied("cargo run")?;
            }
        }
        self.machine.end();
        Ok(())
    }

    pub(super) fn step(&mut self, step: &Step) -> Result<()> {
        let code = self.replaced.iter().fold(step.code.clone(), |code, (from, to)| code.replace(from, to));
        match &step.kind {
            Kind::NotRun => {
                self.counts.not_run += 1;
                println!("{}:{}: not run here:\n{}", self.page, step.line, indented(&code));
                Ok(())
            }
            Kind::File(path) => {
                self.counts.files += 1;
                println!("{}:{}: {path}", self.page, step.line);
                self.write(path, &code)
            }
            Kind::Commands => {
                println!("{}:{}:\n{}", self.page, step.line, indented(&code));
                self.counts.commands += code.lines().count();
                self.commands(&code)
            }
            Kind::Endless => {
                println!("{}:{}, until Ctrl-C:\n{}", self.page, step.line, indented(&code));
                self.counts.commands += 1;
                self.stand_ins(&code, "echo running; exec sleep 60")?;
                let printed = self.machine.run_until_interrupted(&self.folder, &code)?;
                show(&printed, 0.0);
                Ok(())
            }
        }
    }

    /// Runs a command that the page takes for granted.
    fn implied(&mut self, code: &str) -> Result<()> {
        println!("{}: not printed there, but meant:\n{}", self.page, indented(code));
        self.commands(code)
    }

    fn commands(&mut self, code: &str) -> Result<()> {
        if code.lines().any(|line| line.starts_with("docent ")) {
            self.serve_commands()?;
            self.stand_ins(code, "echo running")?;
        }
        let started = Instant::now();
        let (printed, folder) = self.machine.run(&self.folder, &from_repository(code))?;
        show(&printed, started.elapsed().as_secs_f64());
        self.folder = folder;
        self.share_build()
    }

    fn write(&mut self, path: &str, content: &str) -> Result<()> {
        if path.starts_with('/') {
            bail!("the page writes outside of its project");
        }
        for folder in content.lines().filter_map(|line| line.strip_prefix("dataDir=")) {
            self.machine.remove_at_end(folder)?;
        }
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        fs::write(&path, content).with_context(|| format!("cannot write {path:?}"))
    }

    /// Lets the project in the current folder build in the shared folder.
    fn share_build(&self) -> Result<()> {
        let target = self.folder.join("target");
        let is_own = self.folder.starts_with(self.machine.home()) && target.symlink_metadata().is_err();
        if is_own && self.folder.join("Cargo.toml").is_file() {
            fs::create_dir_all(self.build)?;
            symlink(self.machine.inside(self.build), target)?;
        }
        Ok(())
    }

    /// Starts the server that `docent …` uses.
    fn serve_commands(&mut self) -> Result<()> {
        if self.has_commands {
            return Ok(());
        }
        self.has_commands = true;
        println!(
            "{}: the commands of `docent` use the server of:\n{}",
            self.page,
            indented("docent dev --port 0")
        );
        let address = self.machine.start_server(&self.folder, "docent dev --port 0")?;
        self.machine.set("DOCENT_CONNECT", address);
        Ok(())
    }

    /// Writes the reader's own programs that a command starts, such as `./report.sh`.
    fn stand_ins(&self, code: &str, script: &str) -> Result<()> {
        for name in code.split_whitespace().filter_map(|word| word.strip_prefix("./")) {
            let path = self.folder.join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }
}

fn is_program(step: &Step) -> bool {
    matches!(&step.kind, Kind::File(path) if path == "src/main.rs")
}

/// Adds the repository to cargo commands that name a crate which is not published yet.
fn from_repository(code: &str) -> String {
    let mut lines = Vec::new();
    for line in code.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let named = words.get(2).is_some_and(|word| CRATES.contains(word));
        if named && matches!(words[..2], ["cargo", "add" | "install"]) && !words.contains(&"--git") {
            words.splice(2..2, ["--git", REPOSITORY]);
            println!("{}", indented(&format!("(the crate is not published yet: {})", words[..5].join(" "))));
            lines.push(words.join(" "));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

fn show(printed: &Printed, seconds: f64) {
    let lines: Vec<&str> = printed.output.lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN)..] {
        println!("        > {line}");
    }
    if seconds >= 1.0 {
        println!("        {seconds:.0} s");
    }
}

fn indented(code: &str) -> String {
    code.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_are_not_published_come_from_the_repository() {
        for (code, expected) in [
            (
                "cargo add docent --features a",
                "cargo add --git https://github.com/docent-rs/docent docent --features a",
            ),
            (
                "cargo install docent-cli",
                "cargo install --git https://github.com/docent-rs/docent docent-cli",
            ),
            ("cargo add tokio --features full", "cargo add tokio --features full"),
            ("cargo add docent --git x", "cargo add docent --git x"),
        ] {
            assert_eq!(from_repository(code), expected);
        }
    }
}
