use super::plan::Plan;
use super::ratio::Ratio;
use super::results::{Compared, Results};
use super::target::Target;
use super::workload::{Role, Row, Workload};
use crate::report::write_table;
use std::fmt;

/// All tables, in Markdown.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) workloads: &'a [&'static Workload],
    pub(super) grown: &'a [&'static Workload],
    pub(super) results: &'a Results,
    pub(super) plan: Plan,
    /// When and where the figures were measured.
    pub(super) taken: String,
}

impl Report<'_> {
    fn beside(&self, workload: &Workload, row: &Row) -> [String; 6] {
        let compared = self.results.compared(workload, row.key);
        let side = |figure: Option<Ratio>| figure.map_or("–".to_owned(), |of| figure_of(of.median));
        let ratio = ratio_text(&compared);
        let target = row.target.map_or_else(String::new, |target| target.to_string());
        let verdict = row.target.map_or_else(String::new, |target| verdict(target, &compared));
        [row.title.to_owned(), side(compared.subject), side(compared.peer), ratio, target, verdict]
    }

    /// Returns a figure compared with that of bare sockets, or `None` if bare sockets have none.
    fn bound(&self, workload: &Workload, row: &Row) -> Option<[String; 5]> {
        let [subject, peer] = [Role::Subject, Role::Peer]
            .map(|role| self.results.between(workload, row.key, [role, Role::Bare]));
        let side = |figure: Option<Ratio>| figure.map_or("–".to_owned(), |of| figure_of(of.median));
        let bare = figure_of(subject.peer?.median);
        Some([row.title.to_owned(), side(subject.subject), bare, ratio_text(&subject), ratio_text(&peer)])
    }

    fn write_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.workloads.iter().flat_map(|one| one.rows.iter().map(|row| self.bound(one, row)));
        let rows: Vec<_> = rows.flatten().collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n### Compared with bare sockets\n")?;
        let head = ["median of rounds", "Docent", "bare", "Docent : bare (range)", "Curator : bare (range)"];
        write_table(f, &std::iter::once(head.map(str::to_owned)).chain(rows).collect::<Vec<_>>())
    }

    fn costs(&self, workload: &Workload) -> [String; 5] {
        let sides = |figure: &dyn Fn(Role) -> Option<f64>| {
            let [subject, peer] =
                [Role::Subject, Role::Peer].map(|role| figure(role).map_or("–".into(), figure_of));
            if workload.peer.is_some() { format!("{subject} / {peer}") } else { subject }
        };
        let counted = |role| self.results.counted(workload, role);
        let kazoo = self.results.figure(workload, Role::Kazoo, "rate");
        [
            workload.rows[0].title.to_owned(),
            sides(&|role| Some(self.results.figure(workload, role, "cpu")?.median)),
            sides(&|role| Some(counted(role)?.requests())),
            sides(&|role| Some(counted(role)?.bytes())),
            kazoo.map_or_else(String::new, |kazoo| figure_of(kazoo.median)),
        ]
    }

    fn requests(&self, workload: &Workload) -> [String; 3] {
        let by = |role| self.results.counted(workload, role).map_or("–".to_owned(), by_operation);
        [workload.rows[0].title.to_owned(), by(Role::Subject), by(Role::Peer)]
    }

    fn write_all(&self, f: &mut fmt::Formatter<'_>, workloads: &[&'static Workload]) -> fmt::Result {
        let head =
            ["median of rounds", "Docent", "Curator", "ratio (range)", "target", "met?"].map(str::to_owned);
        let rows = workloads.iter().flat_map(|one| one.rows.iter().map(|row| self.beside(one, row)));
        write_table(f, &std::iter::once(head).chain(rows).collect::<Vec<_>>())?;
        let counted: Vec<_> = workloads.iter().filter(|one| !one.is_memory()).collect();
        if counted.is_empty() {
            return Ok(());
        }
        let head =
            ["for each operation, Docent / Curator", "client CPU, µs", "requests", "bytes", "kazoo, 1/s"];
        let rows = counted.iter().map(|one| self.costs(one));
        writeln!(f)?;
        write_table(f, &std::iter::once(head.map(str::to_owned)).chain(rows).collect::<Vec<_>>())?;
        let head = ["requests by operation", "Docent", "Curator"].map(str::to_owned);
        let rows = counted.iter().map(|one| self.requests(one));
        writeln!(f)?;
        write_table(f, &std::iter::once(head).chain(rows).collect::<Vec<_>>())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (results, rounds) = (self.results, self.plan.described_rounds());
        writeln!(f, "{}, {rounds} rounds, {} samples.", self.taken, results.kept())?;
        writeln!(
            f,
            "{} samples were taken again because other processes used more than {} cores meanwhile; {} samples stayed noisy.",
            results.dropped,
            super::results::QUIET,
            results.noisy(),
        )?;
        if results.left_out > 0 {
            writeln!(f, "The time limit was reached before {} rounds of workloads.", results.left_out)?;
        }
        for failure in &results.failures {
            writeln!(f, "Failed: {failure}")?;
        }
        for (title, workloads) in [("Compared with Curator", self.workloads), ("How it grows", self.grown)] {
            if !workloads.is_empty() {
                writeln!(f, "\n### {title}\n")?;
                self.write_all(f, workloads)?;
            }
        }
        self.write_bounds(f)
    }
}

/// Returns the ratio of two sides, as text.
fn ratio_text(compared: &Compared) -> String {
    let noisy = if compared.is_noisy { ", noisy" } else { "" };
    compared.ratio.map_or("–".to_owned(), |ratio| format!("{ratio}{noisy}"))
}

fn verdict(target: Target, compared: &Compared) -> String {
    let figure = match target {
        Target::Absolute(_) => compared.subject,
        Target::AtLeast(_) | Target::AtMost(_) => compared.ratio,
    };
    figure.map_or_else(|| "not measured".to_owned(), |figure| target.verdict(&figure).to_string())
}

/// Returns a figure with its significant digits.
pub(super) fn figure_of(figure: f64) -> String {
    match figure {
        figure if figure < 100.0 => format!("{figure:.1}"),
        figure => {
            let digits = format!("{figure:.0}");
            let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
            groups.collect::<Vec<_>>().join(",")
        }
    }
}

fn by_operation(counted: &super::results::Counted) -> String {
    let each = counted.counts.named().map(|(name, count)| (name, count as f64 / counted.operations));
    let ratio_text =
        each.filter(|(_, count)| *count >= 0.05).map(|(name, count)| format!("{count:.1} {name}"));
    ratio_text.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::counts::Counts;
    use crate::recipes::order::Answer;
    use crate::recipes::plan::Options;
    use crate::recipes::results::{Counted, Sample};
    use crate::recipes::workloads::WORKLOADS;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn figures_have_as_many_digits_as_they_are_good_for() {
        assert_eq!(
            [3.04, 99.96, 465.4, 2_317.2, 2_452_179.0].map(figure_of),
            ["3.0", "100.0", "465", "2,317", "2,452,179"]
        );
    }

    #[test]
    fn each_target_is_reported_with_its_verdict() {
        let mut results = Results::default();
        let workload = &WORKLOADS[0];
        let rates =
            [(Role::Subject, 3_000.0), (Role::Peer, 1_500.0), (Role::Kazoo, 700.0), (Role::Bare, 4_000.0)];
        for (role, rate) in rates {
            for round in 0..3 {
                let answer =
                    Answer::default().with("ops", rate).with("seconds", 1.0).with("cpu_micros", rate * 60.0);
                results.add(workload, role, Sample { round, answer, foreign: 0.1 });
            }
            let counts = Counts { requests: [(2, 10), (15, 10), (12, 10)].into(), bytes: 5_000 };
            results.add_counted(workload, role, Counted { operations: 10.0, counts });
        }
        let plan = Arguments::parse_from(["bench", "--quick"]).options.plan();
        let chosen = [workload];
        let report =
            Report { workloads: &chosen, grown: &[], results: &results, plan, taken: "today".into() };
        let text = report.to_string();
        let line = |title: &str| {
            let line = text.lines().find(|line| line.contains(title)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(line("mutex, uncontended").contains("| 2.00 (2.00..2.00) | ≥ 1.7 × | met |"), "{text}");
        assert!(line("its client CPU").contains("| ≤ 0.35 × | **not met** |"), "{text}");
        assert!(line("its requests").contains("| ≤ 3 | met |"), "{text}");
        assert!(text.contains("1.0 Delete, 1.0 GetChildren2, 1.0 Create2"), "{text}");
        assert!(text.contains("| 700 "), "{text}");
        assert!(!text.contains("How it grows"), "{text}");
        let (_, bounds) = text.split_once("### Compared with bare sockets").unwrap();
        let bounds = bounds.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(bounds.contains("| 3,000 | 4,000 | 0.75 (0.75..0.75) | 0.38 (0.38..0.38) |"), "{text}");
    }
}
