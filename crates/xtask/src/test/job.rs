use super::cpu::cpu_at_end;
use super::summary::Summary;
use crate::cargo::{cargo, remove_own_package, target, with_kerberos, without_optimisation};
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(super) const TESTS: &str = "test --workspace --all-features --no-fail-fast";

/// Makes cargo report the programs that it has built.
const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// Argument that makes a test binary also run its ignored tests.
const IGNORED_TOO: &str = "--include-ignored";

/// A program that runs tests and reports in the format of Rust's test harness.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) name: Name,
    /// Its package, or empty for all packages.
    pub(super) package: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// The folder in which cargo runs it, which is the folder of its package.
    folder: PathBuf,
    /// Number of its tests, or 0 if unknown.
    pub(super) tests: usize,
    /// Number of its tests that need other software and therefore take longer.
    slow: usize,
}

/// The tests of a job, as needed to run them by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Assignment of an environment variable followed by a blank, or nothing.
    pub(super) environment: String,
    /// Arguments of `cargo test`.
    pub(super) selector: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.environment, self.selector)
    }
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) name: Name,
    /// Number of its tests, or 0 if unknown.
    pub(super) tests: usize,
    /// Its standard output and standard error.
    pub(super) output: String,
    /// `Err` if the program could not be run.
    pub(super) status: Result<ExitStatus>,
    pub(super) wall: Duration,
    /// CPU time, including that of ended child processes.
    pub(super) cpu: Duration,
}

/// The programs that could be built.
pub(super) struct Built {
    pub(super) jobs: Vec<Job>,
    /// The program that starts a server for all test binaries.
    pub(super) shared_server: Option<PathBuf>,
    /// `Err` if something could not be built.
    pub(super) complete: Result<()>,
}

/// Builds all test binaries.
pub(super) fn build() -> Result<Built> {
    build_by(cargo(&format!("{TESTS} --no-run {MESSAGES}")))
}

/// Builds the tests of Kerberos: of the mechanism, of clients, and of the command. The build folder is a
/// separate one, and contains only what these need.
pub(super) fn build_kerberos() -> Result<Vec<Job>> {
    const PACKAGES: &str = "--package docent-core --package docent-cli --package docent-kerberos";
    let mut tests = cargo(&format!("test {PACKAGES} --lib --test kerberos --no-run {MESSAGES}"));
    // The tests are few, so optimised code would take longer to compile than it saves.
    without_optimisation(&mut tests);
    with_kerberos(&mut tests);
    let Built { mut jobs, complete, .. } = build_by(tests)?;
    complete?;
    for job in &mut jobs {
        job.name.environment = "RUSTFLAGS=\"--cfg docent_gssapi\" ".to_owned();
        if job.package == "docent-core" {
            job.arguments.push("session::sasl".to_owned());
            job.tests = 0;
        }
    }
    Ok(jobs)
}

fn build_by(mut command: Command) -> Result<Built> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let messages = child.stdout.take().context("the messages were not piped")?;
    let (mut jobs, mut shared_server) = (Vec::new(), None);
    for line in BufReader::new(messages).lines() {
        let line = line?;
        // A build script or a linker may also write to standard output.
        match serde_json::from_str(&line) {
            Ok(message) => {
                jobs.extend(Job::of(&message));
                shared_server = shared_server.or_else(|| program(&message, "shared_server"));
            }
            Err(_) => println!("{line}"),
        }
    }
    let status = child.wait()?;
    for job in &mut jobs {
        (job.tests, job.slow) = (job.count(IGNORED_TOO), job.count("--ignored"));
    }
    let complete = match status.success() {
        true => Ok(()),
        false => Err(anyhow::anyhow!("{command:?} failed: {status}")),
    };
    Ok(Built { jobs, shared_server, complete })
}

/// Returns the program of this name, if a message of cargo describes it.
fn program(message: &Value, name: &str) -> Option<PathBuf> {
    let (target, is_test) = (&message["target"], message["profile"]["test"].as_bool()?);
    let is_wanted = target["name"] == name && target["kind"][0] == "bin" && !is_test;
    is_wanted.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

/// Returns all doc tests as one job.
pub(super) fn doc_tests() -> Job {
    let command = cargo(&format!("{TESTS} --doc -- {IGNORED_TOO}"));
    Job {
        name: Name::of("--workspace --doc"),
        package: String::new(),
        program: command.get_program().into(),
        arguments: command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        environment: Vec::new(),
        folder: command.get_current_dir().map(Path::to_owned).unwrap_or_default(),
        tests: 0,
        // Cargo builds the doc tests first.
        slow: 100,
    }
}

impl Job {
    /// Returns the test binary that a message of cargo describes.
    fn of(message: &Value) -> Option<Self> {
        let is_test = message["profile"]["test"].as_bool()?;
        let program = message["executable"].as_str().filter(|_| is_test)?;
        let (id, target) = (message["package_id"].as_str()?, &message["target"]);
        let name = target["name"].as_str()?;
        let target = match target["kind"][0].as_str()? {
            kind @ ("bin" | "test" | "example" | "bench") => format!("--{kind} {name}"),
            _ => "--lib".to_owned(),
        };
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = package_name(id)?;
        Some(Self {
            name: Name::of(&format!("--package {package} {target}")),
            package: package.to_owned(),
            program: program.into(),
            // Only with nightly features, or with this variable, does the harness print the duration of each
            // test.
            arguments: [IGNORED_TOO, "-Zunstable-options", "--report-time"].map(str::to_owned).into(),
            environment: vec![
                ("RUSTC_BOOTSTRAP", "1".to_owned()),
                // Set as cargo does.
                ("CARGO_MANIFEST_DIR", folder.to_string_lossy().into_owned()),
            ],
            folder,
            tests: 0,
            slow: 0,
        })
    }

    /// Returns a job with the tests that match one of `filters`, with one more environment variable.
    pub(super) fn with(&self, filters: &[&str], variable: (&'static str, &str)) -> Self {
        let mut job = self.clone();
        job.arguments.extend(filters.iter().map(|filter| (*filter).to_owned()));
        job.name.environment = format!("{}={} ", variable.0, variable.1);
        job.environment.push((variable.0, variable.1.to_owned()));
        job.tests = 0;
        job
    }

    /// Skips ignored tests, which are those that need other software.
    pub(super) fn leave_out_ignored(&mut self) {
        self.arguments.retain(|argument| argument != IGNORED_TOO);
        self.slow = 0;
    }

    /// Sets one more environment variable, which the job's name does not show.
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.to_owned()));
    }

    /// Relative duration of the job: a test that needs other software counts ten times, and one that needs an
    /// ensemble a hundred times.
    pub(super) fn weight(&self) -> usize {
        let slow = if self.is_suite("ensemble") { 99 } else { 9 };
        self.tests + slow * self.slow
    }

    /// Returns true for the tests of the integration test `name`.
    pub(super) fn is_suite(&self, name: &str) -> bool {
        self.name.selector == format!("--package docent-tests --test {name}")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).stdin(Stdio::null());
        remove_own_package(&mut command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn count(&self, which: &str) -> usize {
        let mut command = Command::new(&self.program);
        let listed = command.args([which, "--list", "--format", "terse"]).current_dir(&self.folder).output();
        let listed = listed.map(|listed| listed.stdout).unwrap_or_default();
        listed.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b": test")).count()
    }

    /// The file for its output while it runs.
    pub(super) fn log(&self) -> PathBuf {
        let name = self.name.to_string();
        let name: String = name.chars().map(|char| if char.is_alphanumeric() { char } else { '-' }).collect();
        target().join("test-output").join(format!("{}.log", name.trim_matches('-')))
    }

    /// Runs the program.
    pub(super) fn run(&self) -> Done {
        let started = Instant::now();
        let (mut output, mut cpu) = (Vec::new(), Duration::ZERO);
        let status = self.run_into(&mut output, &mut cpu);
        let output = String::from_utf8_lossy(&output).into_owned();
        Done { name: self.name.clone(), tests: self.tests, output, status, wall: started.elapsed(), cpu }
    }

    /// Writes the output to a file, because a process that a failed test left behind would keep a pipe open.
    fn run_into(&self, output: &mut Vec<u8>, cpu: &mut Duration) -> Result<ExitStatus> {
        let mut file = new_file(&self.log()).with_context(|| format!("{}", self.log().display()))?;
        let mut command = self.command();
        command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        *cpu = cpu_at_end(&child);
        let status = child.wait()?;
        file.rewind()?;
        file.read_to_end(output)?;
        Ok(status)
    }
}

/// Creates a file at this path that no other process has open. A process of an earlier or concurrent run may
/// still write to the existing file.
fn new_file(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    loop {
        match File::options().read(true).append(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            opened => return opened,
        }
    }
}

impl Name {
    fn of(selector: &str) -> Self {
        Self { environment: String::new(), selector: selector.to_owned() }
    }
}

impl Done {
    /// Fails if the program failed in a way that its harness has not reported in `summary`, or if not all of
    /// its tests ran.
    pub(super) fn check(&self, summary: Summary) -> Result<()> {
        let (name, tests) = (&self.name, self.tests);
        let Summary { passed, failed, skipped } = summary;
        let status = self.status.as_ref().map_err(|error| anyhow!("{name}: {error:#}"))?;
        ensure!(status.success() || failed > 0, "{name}: {status}");
        ensure!(
            self.output.contains("test result: "),
            "{name}: the program ended without a test result, {status}"
        );
        let ended = passed + failed + skipped;
        ensure!(ended >= tests as u64, "{name}: only {ended} of {tests} tests ran");
        Ok(())
    }
}

/// Returns the name of the package with this id, which ends with `#version` after a folder of the same name,
/// and with `#name@version` otherwise.
fn package_name(id: &str) -> Option<&str> {
    let (url, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => url.rsplit('/').next(),
    }
}

#[cfg(test)]
impl Job {
    /// Returns a job that runs a shell script.
    pub(super) fn script(selector: &str, script: &str, tests: usize) -> Self {
        Self {
            name: Name::of(selector),
            package: String::new(),
            program: "sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: Vec::new(),
            folder: ".".into(),
            tests,
            slow: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(id: &str, kind: &str, is_test: bool) -> Option<String> {
        let message = serde_json::json!({
            "reason": "compiler-artifact", "package_id": id, "manifest_path": "/work/crates/core/Cargo.toml",
            "target": { "kind": [kind], "name": "locks" }, "profile": { "test": is_test }, "executable": "/target/locks-1",
        });
        Job::of(&message).map(|job| job.name.selector)
    }

    #[test]
    fn a_test_binary_is_selected_by_package_and_target() {
        let id = "path+file:///work/crates/docent-core#0.1.0";
        assert_eq!(selector(id, "test", true).unwrap(), "--package docent-core --test locks");
        assert_eq!(selector(id, "lib", true).unwrap(), "--package docent-core --lib");
        assert_eq!(selector(id, "proc-macro", true).unwrap(), "--package docent-core --lib");
        let id = "path+file:///work/tests#docent-tests@0.1.0";
        assert_eq!(selector(id, "bin", true).unwrap(), "--package docent-tests --bin locks");
        assert_eq!(selector(id, "bin", false), None);
        assert!(Job::of(&serde_json::json!({ "reason": "build-finished", "success": true })).is_none());
    }

    #[test]
    fn a_job_that_leaves_a_process_behind_has_ended() {
        let done = Job::script("left behind", "sleep 60 & echo out; echo err >&2; exit 3", 1).run();
        assert_eq!((&*done.output, done.status.as_ref().unwrap().code()), ("out\nerr\n", Some(3)));
        assert!(done.wall < Duration::from_secs(60));
        assert_eq!(done.check(Summary::default()).unwrap_err().to_string(), "left behind: exit status: 3");
    }

    #[test]
    fn a_program_that_ends_without_a_result_has_failed() {
        let summary = Summary { passed: 1, ..Summary::default() };
        let check = |script, tests| Job::script("without a result", script, tests).run().check(summary);
        let error = check("echo 'test a ... ok'", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "without a result: the program ended without a test result, exit status: 0"
        );
        check("echo 'test result: ok. 1 passed'", 1).unwrap();
        let error = check("echo 'test result: ok. 1 passed'", 2).unwrap_err();
        assert_eq!(error.to_string(), "without a result: only 1 of 2 tests ran");
    }

    #[test]
    fn ignored_tests_can_be_skipped() {
        let mut job = Job::script("ignored", "echo \"$0\"", 1);
        job.arguments.push(IGNORED_TOO.to_owned());
        assert_eq!(job.run().output, format!("{IGNORED_TOO}\n"));
        job.leave_out_ignored();
        assert_eq!(job.run().output, "sh\n");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_reported() {
        let job = Job { program: "/no/such/program".into(), ..Job::script("missing", "", 1) };
        assert!(job.run().check(Summary::default()).unwrap_err().to_string().contains("cannot run"));
    }
}
