use super::ratio::Ratio;
use super::report::Report;
use super::results::Results;
use super::workload::{Role, Row, Workload};
use serde_json::{Value, json};

/// Returns all results, with each sample.
pub(super) fn all(report: &Report<'_>) -> Value {
    let workloads = report.workloads.iter().chain(report.grown);
    json!({
        "taken": report.taken,
        "rounds": report.plan.rounds,
        "dropped": report.results.dropped,
        "noisy": report.results.noisy(),
        "failures": report.results.failures,
        "workloads": workloads.map(|one| workload(report.results, one)).collect::<Vec<_>>(),
    })
}

fn workload(results: &Results, workload: &Workload) -> Value {
    let sides = Role::ALL.into_iter().filter_map(|role| Some((workload.order(role)?, role)));
    let sides =
        sides.map(|((side, order), role)| {
            let samples = results.samples(workload, role).iter();
            let samples = samples.map(|one| json!({
            "round": one.round, "foreign_cores": one.foreign, "figures": figures(&one.answer.to_string()),
        }));
            json!({
                "side": side.to_string(),
                "order": order,
                "cpu_micros": ratio(results.figure(workload, role, "cpu")),
                "requests": results.counted(workload, role).map(super::results::Counted::requests),
                "bytes": results.counted(workload, role).map(super::results::Counted::bytes),
                "samples": samples.collect::<Vec<_>>(),
            })
        });
    json!({
        "name": workload.name,
        "figures": workload.rows.iter().map(|one| row(results, workload, one)).collect::<Vec<_>>(),
        "sides": sides.collect::<Vec<_>>(),
    })
}

fn row(results: &Results, workload: &Workload, row: &Row) -> Value {
    let compared = results.compared(workload, row.key);
    let bound = |role| results.between(workload, row.key, [role, Role::Bare]);
    json!({
        "title": row.title,
        "key": row.key,
        "docent": ratio(compared.subject),
        "theirs": ratio(compared.peer),
        "ratio": ratio(compared.ratio),
        "bare": ratio(bound(Role::Subject).peer),
        "docent_to_bare": ratio(bound(Role::Subject).ratio),
        "theirs_to_bare": ratio(bound(Role::Peer).ratio),
        "noisy": compared.is_noisy,
        "target": row.target.map(|target| target.to_string()),
    })
}

fn ratio(of: Option<Ratio>) -> Value {
    of.map_or(Value::Null, |of| json!({ "median": of.median, "min": of.min, "max": of.max }))
}

/// Returns the figures of an answer, given its printed form.
fn figures(answer: &str) -> Value {
    let figures = answer.split_whitespace().filter_map(|word| word.split_once('='));
    figures.map(|(key, value)| (key.to_owned(), json!(value.parse::<f64>().ok()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_numbers() {
        assert_eq!(figures("ok ops=3 p50=1.5"), json!({ "ops": 3.0, "p50": 1.5 }));
    }
}
