use crate::compare::Difference;
use crate::script::{Action, Step};
use crate::servers::Servers;

/// Maximum number of runs for shrinking one script.
const RUNS: usize = 400;

/// Shortens a script that shows a difference, as long as the script still shows one. Removes steps, many at a
/// time at first, and then operations of multis.
pub async fn shrink(servers: &Servers, script: Vec<Step>, difference: Difference) -> (Vec<Step>, Difference) {
    let mut shrinking = Shrinking { servers, script, difference, runs: 0 };
    let mut size = shrinking.script.len() / 2;
    while size > 0 {
        shrinking.without_steps(size).await;
        size /= 2;
    }
    shrinking.without_parts().await;
    while shrinking.without_steps(1).await {}
    (shrinking.script, shrinking.difference)
}

struct Shrinking<'a> {
    servers: &'a Servers,
    script: Vec<Step>,
    difference: Difference,
    runs: usize,
}

impl Shrinking<'_> {
    /// Removes `size` steps wherever the difference remains. Returns true if some steps were removed.
    async fn without_steps(&mut self, size: usize) -> bool {
        let (mut at, mut shorter) = (0, false);
        while at < self.script.len() {
            let mut candidate = self.script.clone();
            let end = after(&candidate, at + size);
            candidate.drain(at..end);
            let splits = matches!(&self.script[at].action, Action::AwaitDeleted(_));
            if !splits && self.adopt(candidate).await {
                shorter = true;
            } else {
                at += size;
            }
        }
        shorter
    }

    /// Removes single operations of multis.
    async fn without_parts(&mut self) {
        for step in 0..self.script.len() {
            let mut part = 0;
            while let Some(candidate) = without_part(&self.script, step, part) {
                if !self.adopt(candidate).await {
                    part += 1;
                }
            }
        }
    }

    async fn adopt(&mut self, candidate: Vec<Step>) -> bool {
        self.runs += 1;
        if self.runs > RUNS {
            return false;
        }
        match self.servers.difference(&candidate).await {
            Ok(Some(difference)) => {
                (self.script, self.difference) = (candidate, difference);
                true
            }
            _ => false,
        }
    }
}

/// The end of a piece that is removed. A wait for a deletion stays with the step before it, because without
/// that step the deletion could happen at any time.
fn after(script: &[Step], end: usize) -> usize {
    match script.get(end) {
        Some(Step { action: Action::AwaitDeleted(_), .. }) => end + 1,
        _ => end.min(script.len()),
    }
}

fn without_part(script: &[Step], step: usize, part: usize) -> Option<Vec<Step>> {
    let Action::Request(operation, fields) = &script[step].action else { return None };
    let mut parts: Vec<&[String]> = fields.split(|word| word == ";").collect();
    if parts.len() < 2 || part >= parts.len() {
        return None;
    }
    parts.remove(part);
    let mut candidate = script.to_vec();
    candidate[step].action = Action::Request(operation, parts.join(&";".to_owned()));
    Some(candidate)
}
