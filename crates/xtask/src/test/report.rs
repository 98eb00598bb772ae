use super::job::{Done, check};
use super::panics::{Failed, Panics};
use super::summary::Summary;
use anyhow::{Error, Result};
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

/// Number of tests that are listed because they took longest.
const SLOWEST: usize = 20;

/// What the tests of a run have shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) summary: Summary,
    binaries: Vec<Binary>,
    /// Failures of programs that their harness did not tell.
    errors: Vec<Error>,
}

/// A program with tests that has ended.
#[derive(Debug)]
struct Binary {
    selector: String,
    summary: Summary,
    wall: Duration,
    cpu: Duration,
    tests: Vec<Test>,
    failed: Vec<Failed>,
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
    /// Adds what a program has shown, and prints a line about it; all that it wrote where something failed.
    pub(super) fn add(&mut self, done: Done) {
        let (mut summary, mut panics, mut tests) = (Summary::default(), Panics::default(), Vec::new());
        for line in done.output.lines() {
            summary.add_line(line);
            panics.add_line(line);
            tests.extend(Test::of(line));
        }
        let error = check(&done, summary.failed).err();
        if error.is_some() || summary.failed > 0 {
            println!("{}", done.output);
        }
        let Done { selector, wall, cpu, .. } = done;
        println!("{:6.1} s  {selector}: {summary}", wall.as_secs_f64());
        self.errors.extend(error);
        self.summary += summary;
        self.binaries.push(Binary { selector, summary, wall, cpu, tests, failed: panics.failed });
    }

    /// Fails where something did.
    pub(super) fn outcome(&self) -> Result<()> {
        if let Some(error) = self.errors.first() {
            anyhow::bail!("{error:#}");
        }
        anyhow::ensure!(self.summary.failed == 0, "{} tests failed", self.summary.failed);
        anyhow::ensure!(self.summary.passed > 0, "no test was run");
        Ok(())
    }

    /// As an XML file of the format that JUnit's runner writes, which CI servers read.
    pub(super) fn junit(&self) -> String {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
        for Binary { selector, summary, wall, tests, failed, .. } in &self.binaries {
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\">",
                escaped(selector),
                summary.passed + summary.failed + summary.skipped,
                summary.failed,
                summary.skipped,
                wall.as_secs_f64()
            );
            for Test { name, outcome, seconds } in tests {
                let (class, name) = (escaped(selector), escaped(name));
                let _ =
                    write!(xml, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.3}\">");
                xml += &match outcome {
                    Outcome::Passed => String::new(),
                    Outcome::Skipped => "<skipped/>".to_owned(),
                    Outcome::Failed => {
                        let told = failed.iter().find(|failed| escaped(&failed.test) == name);
                        let lines = told.map(|failed| failed.lines.join("\n")).unwrap_or_default();
                        format!("<failure>{}</failure>", escaped(&lines))
                    }
                };
                xml += "</testcase>\n";
            }
            xml += "  </testsuite>\n";
        }
        xml + "</testsuites>\n"
    }
}

impl Test {
    /// The test that a line of a harness is about.
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
        let name = name.strip_suffix(" - should panic").unwrap_or(name).to_owned();
        Some(Self { name, outcome, seconds })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut binaries: Vec<_> = self.binaries.iter().filter(|binary| binary.summary.is_good()).collect();
        binaries.sort_by_key(|binary| std::cmp::Reverse(binary.wall));
        writeln!(f, "seconds, of these on a core, and tests of each test binary:")?;
        for Binary { selector, summary, wall, cpu, .. } in binaries {
            let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
            writeln!(f, "{wall:8.1} {cpu:8.1} {:6}  {selector}", summary.passed)?;
        }
        let tests =
            self.binaries.iter().flat_map(|binary| binary.tests.iter().map(|test| (&binary.selector, test)));
        let mut tests: Vec<_> = tests.filter(|(_, test)| test.seconds > 0.0).collect();
        tests.sort_by(|(_, one), (_, other)| other.seconds.total_cmp(&one.seconds));
        writeln!(f, "the slowest tests, in seconds:")?;
        for (selector, test) in tests.into_iter().take(SLOWEST) {
            writeln!(f, "{:8.1}  {selector} {}", test.seconds, test.name)?;
        }
        for error in &self.errors {
            writeln!(f, "failed: {error:#}")?;
        }
        for Binary { selector, failed, .. } in &self.binaries {
            for failed in failed {
                write!(f, "{failed}")?;
                writeln!(
                    f,
                    "  again: cargo test --all-features {selector} -- --include-ignored --exact {}",
                    failed.test
                )?;
            }
        }
        Ok(())
    }
}

/// Text as XML has it, without the characters that XML cannot have.
fn escaped(text: &str) -> String {
    let allowed = text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t'));
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
        let done = Job::script(&format!("--test {}", script.len()), script, 1).run("1");
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
    fn a_failed_test_is_told_with_the_command_that_runs_it_again() {
        let report = report(ONE_FAILS);
        assert_eq!(report.outcome().unwrap_err().to_string(), "1 tests failed");
        let selector = format!("--test {}", ONE_FAILS.len());
        let told = report.to_string();
        let end: Vec<_> = told.lines().skip_while(|line| !line.starts_with("the slowest")).collect();
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
        let report = report("echo 'test a ... ok <1.500s>'; kill -9 $$");
        assert!(report.outcome().unwrap_err().to_string().ends_with("failed: signal: 9 (SIGKILL)"));
        assert!(report.to_string().contains("failed: --test"));
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
