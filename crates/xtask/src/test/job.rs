use crate::cargo::{cargo, target};
use anyhow::{Context, Result, ensure};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(super) const TESTS: &str = "test --workspace --all-features --no-fail-fast";

/// How many clock ticks a second has in `/proc`: the same on all platforms of Linux.
const TICKS: u64 = 100;

/// A program that runs tests and reports as Rust's test harness does.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Arguments of `cargo test` that select its tests.
    pub(super) selector: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// Where cargo runs it: the folder of its package.
    folder: PathBuf,
    /// Number of its tests; 0 where that is not known.
    pub(super) tests: usize,
    /// Number of those that need other software, and take longer for that.
    slow: usize,
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) selector: String,
    /// What it wrote to standard output and standard error.
    pub(super) output: String,
    /// `Err` when it could not be run.
    pub(super) status: Result<ExitStatus>,
    pub(super) wall: Duration,
    /// Time on processors, that of ended child processes included.
    pub(super) cpu: Duration,
}

/// Builds all test binaries. The result has those that could be built, and whether that is all of them.
pub(super) fn build() -> Result<(Vec<Job>, Result<()>)> {
    let mut command = cargo(&format!("{TESTS} --no-run --message-format=json-render-diagnostics"));
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let messages = child.stdout.take().context("the messages were not piped")?;
    let mut jobs = Vec::new();
    for line in BufReader::new(messages).lines() {
        let line = line?;
        // A build script or a linker may write to standard output, too.
        match serde_json::from_str(&line) {
            Ok(message) => jobs.extend(Job::of(&message)),
            Err(_) => println!("{line}"),
        }
    }
    let status = child.wait()?;
    for job in &mut jobs {
        (job.tests, job.slow) = (job.count("--include-ignored"), job.count("--ignored"));
    }
    let complete = match status.success() {
        true => Ok(()),
        false => Err(anyhow::anyhow!("{command:?} failed: {status}")),
    };
    Ok((jobs, complete))
}

/// All doc tests, in one job.
pub(super) fn doc_tests() -> Job {
    let command = cargo(&format!("{TESTS} --doc -- --include-ignored"));
    Job {
        selector: "--workspace --doc".to_owned(),
        program: command.get_program().into(),
        arguments: command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        environment: Vec::new(),
        folder: command.get_current_dir().map(Path::to_owned).unwrap_or_default(),
        tests: 0,
        slow: 0,
    }
}

impl Job {
    /// The test binary that a message of cargo is about.
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
        Some(Self {
            selector: format!("--package {} {target}", package_name(id)?),
            program: program.into(),
            // The harness tells how long each test took on nightly only, or with this variable.
            arguments: ["--include-ignored", "-Zunstable-options", "--report-time"].map(str::to_owned).into(),
            environment: vec![
                ("RUSTC_BOOTSTRAP", "1".to_owned()),
                // As cargo sets it.
                ("CARGO_MANIFEST_DIR", folder.to_string_lossy().into_owned()),
            ],
            folder,
            tests: 0,
            slow: 0,
        })
    }

    /// The tests that match one of `filters`, in an environment with one variable more.
    pub(super) fn with(&self, filters: &[&str], variable: (&'static str, &str)) -> Self {
        let mut job = self.clone();
        job.arguments.extend(filters.iter().map(|filter| (*filter).to_owned()));
        job.environment.push((variable.0, variable.1.to_owned()));
        job.tests = 0;
        job
    }

    /// How long it will take, in comparison with others: a test that needs other software counts ten times.
    pub(super) fn weight(&self) -> usize {
        self.tests + 9 * self.slow
    }

    /// True for the tests of the integration test `name`.
    pub(super) fn is_suite(&self, name: &str) -> bool {
        self.selector == format!("--package docent-tests --test {name}")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn count(&self, which: &str) -> usize {
        let mut command = Command::new(&self.program);
        let listed = command.args([which, "--list", "--format", "terse"]).current_dir(&self.folder).output();
        let listed = listed.map(|listed| listed.stdout).unwrap_or_default();
        listed.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b": test")).count()
    }

    /// The file to which it writes while it runs.
    pub(super) fn log(&self) -> PathBuf {
        let name: String =
            self.selector.chars().map(|char| if char.is_alphanumeric() { char } else { '-' }).collect();
        target().join("test-output").join(name.trim_matches('-')).with_extension("log")
    }

    /// Runs it, with as many tests at the same time as `threads` says.
    pub(super) fn run(&self, threads: &str) -> Done {
        let started = Instant::now();
        let log = self.log();
        let ended = self.run_into(&log, threads);
        let (status, cpu) = match ended {
            Ok((status, cpu)) => (Ok(status), cpu),
            Err(error) => (Err(error), Duration::ZERO),
        };
        let output = fs::read(&log).map(|output| String::from_utf8_lossy(&output).into_owned());
        Done {
            selector: self.selector.clone(),
            output: output.unwrap_or_default(),
            status,
            wall: started.elapsed(),
            cpu,
        }
    }

    /// Into a file, because a process that a failed test left behind would keep a pipe open.
    fn run_into(&self, log: &Path, threads: &str) -> Result<(ExitStatus, Duration)> {
        fs::create_dir_all(log.parent().context("the log is in a folder")?)?;
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command();
        command.env("RUST_TEST_THREADS", threads).stdout(file.try_clone()?).stderr(file);
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let cpu = cpu_at_end(&child);
        Ok((child.wait()?, cpu?))
    }
}

/// Waits until the process has ended, and tells how long it was on processors.
fn cpu_at_end(child: &Child) -> Result<Duration> {
    let pid = Pid::from_raw(child.id().try_into()?);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    cpu(&stat).with_context(|| format!("/proc/{pid}/stat has another format: {stat}"))
}

/// The time on processors of a process and its children, from its line in `/proc`.
fn cpu(stat: &str) -> Option<Duration> {
    // The second field is a name in brackets, which may have blanks.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = 0;
    let times = fields.split(' ').skip(11).take(4);
    for time in times {
        ticks += time.parse::<u64>().ok()?;
    }
    Some(Duration::from_millis(ticks * (1000 / TICKS)))
}

/// The name of the package with this id, which ends with `#version` behind a folder of the same name, and
/// with `#name@version` behind others.
fn package_name(id: &str) -> Option<&str> {
    let (url, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => url.rsplit('/').next(),
    }
}

/// Fails where a job did, with what its harness did not say.
pub(super) fn check(done: &Done, failed: u64) -> Result<()> {
    match &done.status {
        Ok(status) => ensure!(status.success() || failed > 0, "{} failed: {status}", done.selector),
        Err(error) => anyhow::bail!("{}: {error:#}", done.selector),
    }
    Ok(())
}

#[cfg(test)]
impl Job {
    /// A job that runs a script of the shell.
    pub(super) fn script(selector: &str, script: &str, tests: usize) -> Self {
        Self {
            selector: selector.to_owned(),
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
        Job::of(&message).map(|job| job.selector)
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
        let done = Job::script("left behind", "sleep 60 & echo out; echo err >&2; exit 3", 1).run("1");
        assert_eq!((&*done.output, done.status.as_ref().unwrap().code()), ("out\nerr\n", Some(3)));
        assert!(done.wall < Duration::from_secs(60));
        assert!(
            check(&done, 1).is_ok() && check(&done, 0).unwrap_err().to_string().contains("exit status: 3")
        );
    }

    #[test]
    fn a_program_that_cannot_be_run_is_told() {
        let job = Job { program: "/no/such/program".into(), ..Job::script("missing", "", 1) };
        assert!(check(&job.run("1"), 0).unwrap_err().to_string().contains("cannot run"));
    }

    #[test]
    fn the_time_on_processors_is_that_of_a_process_and_its_children() {
        let stat = "42 (a (b) c) Z 1 2 3 4 5 6 7 8 9 10 150 50 20 30 20 0 1 0 99";
        assert_eq!(cpu(stat), Some(Duration::from_millis(2_500)));
        assert_eq!(cpu("42"), None);
    }
}
