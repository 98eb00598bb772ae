use super::job::{Done, Name};
use super::panics::{Failed, Panics};
use super::summary::Summary;
use anyhow::{Error, Result};
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

/// Number of slowest tests to list.
const SLOWEST: usize = 20;

/// Results of a run of tests.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) summary: Summary,
    binaries: Vec<Binary>,
    /// Failures of a run in which no test failed, such as those of a build or of a stage without tests.
    failures: Vec<String>,
}

/// A program with tests that has ended.
#[derive(Debug)]
struct Binary {
    name: Name,
    summary: Summary,
    wall: Duration,
    cpu: Duration,
    tests: Vec<Test>,
    failed: Vec<Failed>,
    /// Failure of the program that its harness has not reported.
    error: Option<Error>,
}

/// A test that has ended.
#[derive(Debug, PartialEq)]
struct Test {
    name: String,
    outcome: Outcome,
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Report {
    /// Adds the result of a program and prints a line about it, followed by all output if something failed.
    /// Returns the number of failures.
    pub(super) fn add(&mut self, done: Done) -> u64 {
        let (mut summary, mut panics, mut tests) = (Summary::default(), Panics::default(), Vec::new());
        for line in done.output.lines() {
            summary.add_line(line);
            panics.add_line(line);
            tests.extend(Test::of(line));
        }
        let error = done.check(summary).err();
        if error.is_some() {
            summary = without_result(&tests);
        }
        if summary.failed > 0 {
            println!("{}", done.output);
        }
        let mut failed = panics.failed;
        for test in tests.iter().filter(|test| test.outcome == Outcome::Failed) {
            if !failed.iter().any(|failed| failed.test == test.name) {
                failed.push(Failed::without_panic(&test.name));
            }
        }
        let Done { name, wall, cpu, .. } = done;
        println!("{:6.1} s  {name}: {summary}", wall.as_secs_f64());
        self.summary += summary;
        self.binaries.push(Binary { name, summary, wall, cpu, tests, failed, error });
        summary.failed
    }

    /// Counts the failure of a run as a failed test, unless a test failed. The closing line and the report
    /// then show a failure in any case.
    pub(super) fn fail(&mut self, error: &Error) {
        if self.summary.failed == 0 {
            self.summary.failed = 1;
            self.failures.push(format!("{error:#}"));
        }
    }

    /// Fails if a test or a stage failed.
    pub(super) fn outcome(&self) -> Result<()> {
        anyhow::ensure!(self.summary.failed == 0, "{} tests failed", self.summary.failed);
        anyhow::ensure!(self.summary.passed > 0, "no test was run");
        Ok(())
    }

    /// Returns an XML file in the format of JUnit's runner, which CI servers read.
    pub(super) fn junit(&self) -> String {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
        for Binary { name, summary, wall, tests, failed, error, .. } in &self.binaries {
            let binary = escaped(&name.to_string());
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{binary}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\">",
                summary.passed + summary.failed + summary.skipped,
                summary.failed,
                summary.skipped,
                wall.as_secs_f64()
            );
            for Test { name, outcome, seconds } in tests {
                let name = escaped(name);
                let _ = write!(
                    xml,
                    "    <testcase classname=\"{binary}\" name=\"{name}\" time=\"{seconds:.3}\">"
                );
                xml += &match outcome {
                    Outcome::Passed => String::new(),
                    Outcome::Skipped => "<skipped/>".to_owned(),
                    Outcome::Failed => {
                        let text = failed.iter().find(|failed| escaped(&failed.test) == name);
                        let lines = text.map(|failed| failed.lines.join("\n")).unwrap_or_default();
                        format!("<failure>{}</failure>", escaped(&lines))
                    }
                };
                xml += "</testcase>\n";
            }
            if let Some(error) = error {
                let error = escaped(&format!("{error:#}"));
                let case = format!("<testcase classname=\"{binary}\" name=\"end\" time=\"0\">");
                let _ = writeln!(xml, "    {case}<error>{error}</error></testcase>");
            }
            xml += "  </testsuite>\n";
        }
        for failure in &self.failures {
            let case = "<testcase classname=\"stages\" name=\"run\" time=\"0\">";
            let error = escaped(failure);
            let _ = writeln!(
                xml,
                "  <testsuite name=\"stages\" tests=\"1\" failures=\"1\" skipped=\"0\" time=\"0\">"
            );
            let _ = writeln!(xml, "    {case}<error>{error}</error></testcase>\n  </testsuite>");
        }
        xml + "</testsuites>\n"
    }
}

impl Test {
    /// Returns the test that a line of a harness describes.
    fn of(line: &str) -> Option<Self> {
        let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (outcome, seconds) = match outcome.split_once(" <") {
            Some((outcome, seconds)) => (outcome, seconds.strip_suffix("s>")?.parse().ok()?),
            None => (outcome, 0.0),
        };
        let outcome = match outcome {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            ignored if ignored.starts_with("ignored") => Outcome::Skipped,
            _ => return None,
        };
        let marks = [" - should panic", " - compile fail", " - compile"];
        let name = marks.iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name).to_owned();
        Some(Self { name, outcome, seconds })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_tests = |binary: &&Binary| binary.summary != Summary::default();
        let mut binaries: Vec<_> = self.binaries.iter().filter(has_tests).collect();
        binaries.sort_by_key(|binary| std::cmp::Reverse(binary.wall));
        writeln!(f, "seconds, CPU seconds, and tests of each test binary:")?;
        for Binary { name, summary, wall, cpu, .. } in binaries {
            let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
            writeln!(f, "{wall:8.1} {cpu:8.1} {:6}  {name}", summary.passed + summary.failed)?;
        }
        let tests =
            self.binaries.iter().flat_map(|binary| binary.tests.iter().map(|test| (&binary.name, test)));
        let mut tests: Vec<_> = tests.filter(|(_, test)| test.seconds > 0.0).collect();
        tests.sort_by(|(_, one), (_, other)| other.seconds.total_cmp(&one.seconds));
        writeln!(f, "the slowest tests, in seconds:")?;
        for (binary, test) in tests.into_iter().take(SLOWEST) {
            writeln!(f, "{:8.1}  {binary} {}", test.seconds, test.name)?;
        }
        for Binary { name, failed, error, .. } in &self.binaries {
            for failed in failed {
                write!(f, "{failed}")?;
                writeln!(f, "  again: {}", again(name, &failed.test))?;
            }
            if let Some(error) = error {
                writeln!(f, "failed: {error:#}")?;
            }
        }
        Ok(())
    }
}

/// Counts the tests of a program that has not reported a result. The program itself counts as a failed test.
fn without_result(tests: &[Test]) -> Summary {
    let count = |outcome| tests.iter().map(|test| u64::from(test.outcome == outcome)).sum::<u64>();
    Summary {
        passed: count(Outcome::Passed),
        failed: count(Outcome::Failed) + 1,
        skipped: count(Outcome::Skipped),
    }
}

/// Returns the command that runs a test again.
fn again(Name { environment, selector }: &Name, test: &str) -> String {
    let filter = match test.split_once(" - ") {
        // The name of a doc test contains blanks, which would split the filter.
        Some((file, _)) => file.to_owned(),
        None => format!("--include-ignored --exact {test}"),
    };
    format!("{environment}cargo test --all-features {selector} -- {filter}")
}

/// Returns text escaped for XML, without the characters that XML does not allow.
fn escaped(text: &str) -> String {
    let is_allowed = |char: &char| match char {
        '\n' | '\t' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        other => !other.is_control(),
    };
    let allowed = text.chars().filter(is_allowed);
    allowed.fold(String::new(), |mut escaped, char| {
        match char {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            _ => escaped.push(char),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::job::Job;

    fn report(script: &str) -> Report {
        let mut report = Report::default();
        let done = Job::script(&format!("--test {}", script.len()), script, 0).run();
        report.add(done);
        report
    }

    const ONE_FAILS: &str = "echo 'test a ... ok <1.500s>
test b::c ... FAILED <0.250s>
test d ... ignored, on demand
failures:

---- b::c stdout ----
thread '\\''b::c'\\'' panicked at src/a.rs:1:1:
1 < 2 & \"3\"

failures:
    b::c

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out'; exit 101";

    #[test]
    fn a_failed_test_is_reported_with_the_command_that_reruns_it() {
        let report = report(ONE_FAILS);
        assert_eq!(report.outcome().unwrap_err().to_string(), "1 tests failed");
        let selector = format!("--test {}", ONE_FAILS.len());
        let text = report.to_string();
        let end: Vec<_> = text.lines().skip_while(|line| !line.starts_with("the slowest")).collect();
        let again =
            format!("  again: cargo test --all-features {selector} -- --include-ignored --exact b::c");
        let panicked = "  thread 'b::c' panicked at src/a.rs:1:1:";
        let slowest = [format!("     1.5  {selector} a"), format!("     0.2  {selector} b::c")];
        assert_eq!(
            end,
            [
                "the slowest tests, in seconds:",
                &slowest[0],
                &slowest[1],
                "failed: b::c",
                panicked,
                "  1 < 2 & \"3\"",
                &again
            ]
        );
    }

    #[test]
    fn a_report_for_ci_servers_is_well_formed() {
        let selector = format!("--test {}", ONE_FAILS.len());
        let xml = report(ONE_FAILS).junit();
        let (_, suite) = xml.split_once("<testsuites>\n").unwrap();
        let (suite, cases) = suite.split_once('\n').unwrap();
        assert!(suite.starts_with(&format!(
            "  <testsuite name=\"{selector}\" tests=\"3\" failures=\"1\" skipped=\"1\" time="
        )));
        let expected = "thread 'b::c' panicked at src/a.rs:1:1:\n1 &lt; 2 &amp; &quot;3&quot;";
        let cases: Vec<_> = cases.split("</testcase>\n").map(str::trim).collect();
        assert_eq!(cases[0], format!("<testcase classname=\"{selector}\" name=\"a\" time=\"1.500\">"));
        assert!(cases[1].ends_with(&format!("name=\"b::c\" time=\"0.250\"><failure>{expected}</failure>")));
        assert!(cases[2].ends_with("<skipped/>"));
        assert_eq!(cases[3], "</testsuite>\n</testsuites>");
    }

    #[test]
    fn a_program_that_ends_without_a_result_is_a_failure() {
        let report = report("echo 'test a ... ok <1.500s>'; echo 'test b ... FAILED <0.1s>'; kill -9 $$");
        assert_eq!(report.summary.to_string(), "1 passed, 2 failed, 0 skipped");
        assert!(report.outcome().is_err());
        let text = report.to_string();
        assert!(text.contains("--include-ignored --exact b\nfailed: --test "), "{text}");
        assert!(text.ends_with(": signal: 9 (SIGKILL)\n"), "{text}");
        assert!(report.junit().contains("<error>--test "));
    }

    #[test]
    fn a_command_runs_a_test_of_the_documentation_or_of_another_version_again() {
        let name = |environment: &str, selector: &str| Name {
            environment: environment.to_owned(),
            selector: selector.to_owned(),
        };
        let doc = again(&name("", "--workspace --doc"), "src/lib.rs - a::b (line 3)");
        assert_eq!(doc, "cargo test --all-features --workspace --doc -- src/lib.rs");
        let newer = again(&name("AS=3.9 ", "--test core"), "a::b");
        assert_eq!(newer, "AS=3.9 cargo test --all-features --test core -- --include-ignored --exact a::b");
    }

    #[test]
    fn the_failure_of_a_stage_is_counted_once_and_reported() {
        let mut passed = report("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'");
        passed.fail(&anyhow::anyhow!("no compiler & no linker"));
        assert_eq!(passed.summary.to_string(), "1 passed, 1 failed, 0 skipped");
        assert!(passed.junit().contains("<error>no compiler &amp; no linker</error>"));
        let mut failed = report(ONE_FAILS);
        failed.fail(&anyhow::anyhow!("1 tests failed"));
        assert_eq!(failed.summary.failed, 1);
    }

    #[test]
    fn a_run_without_any_test_is_a_failure() {
        let outcome = report("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'").outcome();
        assert_eq!(outcome.unwrap_err().to_string(), "no test was run");
        report("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'").outcome().unwrap();
    }

    #[test]
    fn lines_that_are_no_results_are_no_tests() {
        for line in
            ["running 3 tests", "test a", "test a ... well", "test a ... ok <1s", "test result: ok. 1 passed"]
        {
            assert_eq!(Test::of(line), None, "{line}");
        }
        let test = Test::of("test a - should panic ... ok").unwrap();
        assert_eq!(test, Test { name: "a".to_owned(), outcome: Outcome::Passed, seconds: 0.0 });
    }
}
