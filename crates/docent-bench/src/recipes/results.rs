use super::counts::Counts;
use super::order::Answer;
use super::ratio::Ratio;
use super::workload::{Role, Workload};
use std::collections::HashMap;

/// Maximum load of other processes during a quiet sample, in cores.
pub(super) const QUIET: f64 = 0.2;

/// One measurement.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) round: u32,
    pub(super) answer: Answer,
    /// Load of other processes during the sample, in cores.
    pub(super) foreign: f64,
}

/// Operations of a counting run, with the requests that they sent.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) operations: f64,
    pub(super) counts: Counts,
}

impl Counted {
    /// Requests for each operation.
    pub(super) fn requests(&self) -> f64 {
        self.counts.total() as f64 / self.operations
    }

    /// Bytes for each operation, of both directions.
    pub(super) fn bytes(&self) -> f64 {
        self.counts.bytes as f64 / self.operations
    }
}

/// All results.
#[derive(Debug, Default)]
pub(super) struct Results {
    samples: HashMap<(&'static str, Role), Vec<Sample>>,
    counted: HashMap<(&'static str, Role), Counted>,
    /// Number of samples that were repeated because other processes used too much CPU.
    pub(super) dropped: usize,
    /// Number of rounds of workloads that were skipped because the time limit was reached.
    pub(super) left_out: usize,
    /// Error messages of workloads that failed.
    pub(super) failures: Vec<String>,
}

/// A figure of one workload, for both sides.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    pub(super) subject: Option<Ratio>,
    pub(super) peer: Option<Ratio>,
    /// Median of the ratios within rounds.
    pub(super) ratio: Option<Ratio>,
    /// True if no round was quiet on both sides. In this case the noisy rounds count.
    pub(super) is_noisy: bool,
}

impl Sample {
    fn is_quiet(&self) -> bool {
        self.foreign <= QUIET
    }
}

impl Results {
    pub(super) fn add(&mut self, workload: &Workload, role: Role, sample: Sample) {
        self.samples.entry((workload.name, role)).or_default().push(sample);
    }

    pub(super) fn add_counted(&mut self, workload: &Workload, role: Role, counted: Counted) {
        self.counted.insert((workload.name, role), counted);
    }

    pub(super) fn samples(&self, workload: &Workload, role: Role) -> &[Sample] {
        self.samples.get(&(workload.name, role)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn counted(&self, workload: &Workload, role: Role) -> Option<&Counted> {
        self.counted.get(&(workload.name, role))
    }

    /// Number of samples that were kept.
    pub(super) fn kept(&self) -> usize {
        self.samples.values().map(Vec::len).sum()
    }

    /// Number of kept samples during which other processes used too much CPU.
    pub(super) fn noisy(&self) -> usize {
        self.samples.values().flatten().filter(|sample| !sample.is_quiet()).count()
    }

    /// Returns Docent's figure, the other library's, and their ratio.
    pub(super) fn compared(&self, workload: &Workload, key: &str) -> Compared {
        self.between(workload, key, [Role::Subject, Role::Peer])
    }

    /// Returns a figure of two sides, and the ratio of the first side to the second.
    pub(super) fn between(&self, workload: &Workload, key: &str, roles: [Role; 2]) -> Compared {
        if key == "requests" {
            return self.compared_requests(workload, roles);
        }
        let is_noisy = self.lacks_quiet(workload, roles);
        let [subject, peer] = roles.map(|role| self.figures(workload, role, key, !is_noisy));
        let ratios = subject.iter().filter_map(|(round, subject)| {
            let peer = peer.iter().find(|(other, _)| other == round)?;
            Some(subject / peer.1)
        });
        let ratio = Ratio::of(ratios);
        let figure = |figures: &[(u32, f64)]| Ratio::of(figures.iter().map(|(_, figure)| *figure));
        Compared { subject: figure(&subject), peer: figure(&peer), ratio, is_noisy }
    }

    /// Returns the median of a side's figure, taken from quiet samples if there are any.
    pub(super) fn figure(&self, workload: &Workload, role: Role, key: &str) -> Option<Ratio> {
        let quiet = self.figures(workload, role, key, true);
        let figures = if quiet.is_empty() { self.figures(workload, role, key, false) } else { quiet };
        Ratio::of(figures.into_iter().map(|(_, figure)| figure))
    }

    fn compared_requests(&self, workload: &Workload, roles: [Role; 2]) -> Compared {
        let of = |role| self.counted(workload, role).and_then(|counted| Ratio::of([counted.requests()]));
        let [subject, peer] = roles.map(of);
        let ratio = subject.zip(peer).and_then(|(subject, peer)| Ratio::of([subject.median / peer.median]));
        Compared { subject, peer, ratio, is_noisy: false }
    }

    /// Returns true if no round was quiet for both compared sides.
    fn lacks_quiet(&self, workload: &Workload, [subject, peer]: [Role; 2]) -> bool {
        let is_quiet = |role, round| {
            let mut samples = self.samples(workload, role).iter();
            samples.any(|sample| sample.round == round && sample.is_quiet())
        };
        let is_alone = workload.order(peer).is_none();
        !self
            .samples(workload, subject)
            .iter()
            .any(|sample| is_quiet(subject, sample.round) && (is_alone || is_quiet(peer, sample.round)))
    }

    /// Figures with their rounds.
    fn figures(&self, workload: &Workload, role: Role, key: &str, only_quiet: bool) -> Vec<(u32, f64)> {
        let samples = self.samples(workload, role).iter();
        let samples = samples.filter(|sample| !only_quiet || sample.is_quiet());
        samples.filter_map(|sample| Some((sample.round, sample.answer.figure(key)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::workloads::WORKLOADS;

    fn results(subject: &[(f64, f64)], peer: &[(f64, f64)]) -> Results {
        let mut results = Results::default();
        for (role, samples) in [(Role::Subject, subject), (Role::Peer, peer)] {
            for (round, (p50, foreign)) in (0..).zip(samples) {
                let answer = Answer::default().with("p50", *p50);
                results.add(&WORKLOADS[0], role, Sample { round, answer, foreign: *foreign });
            }
        }
        results
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let results =
            results(&[(20.0, 0.0), (300.0, 0.0), (9.0, 0.1)], &[(10.0, 0.0), (100.0, 0.0), (9.0, 0.0)]);
        let compared = results.compared(&WORKLOADS[0], "p50");
        let ratio = compared.ratio.unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 1.0, 3.0));
        assert!(!compared.is_noisy);
    }

    #[test]
    fn rounds_with_noise_on_one_side_do_not_count() {
        let results = results(&[(20.0, 0.0), (900.0, 0.3)], &[(10.0, 0.0), (100.0, 0.0)]);
        let compared = results.compared(&WORKLOADS[0], "p50");
        assert_eq!(compared.ratio.unwrap().median, 2.0);
        assert_eq!(compared.subject.unwrap().median, 20.0);
        assert_eq!(results.noisy(), 1);
    }

    #[test]
    fn if_all_rounds_are_noisy_they_count_and_are_marked() {
        let results = results(&[(20.0, 0.5), (90.0, 0.0)], &[(10.0, 0.0), (100.0, 0.4)]);
        let compared = results.compared(&WORKLOADS[0], "p50");
        assert!(compared.is_noisy);
        assert_eq!(compared.ratio.unwrap().max, 2.0);
    }

    #[test]
    fn requests_are_those_of_the_counting_run() {
        let mut results = Results::default();
        for (role, requests) in [(Role::Subject, 300), (Role::Peer, 500)] {
            let counts = Counts { requests: [(2, requests), (11, 40)].into(), bytes: 20_000 };
            results.add_counted(&WORKLOADS[0], role, Counted { operations: 100.0, counts });
        }
        let compared = results.compared(&WORKLOADS[0], "requests");
        assert_eq!((compared.subject.unwrap().median, compared.peer.unwrap().median), (3.0, 5.0));
        assert_eq!(compared.ratio.unwrap().median, 0.6);
        assert_eq!(results.counted(&WORKLOADS[0], Role::Subject).unwrap().bytes(), 200.0);
    }
}
