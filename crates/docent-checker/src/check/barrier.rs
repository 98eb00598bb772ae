use super::Found;
use crate::event::What;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};

/// **The barrier**: a waiter goes on only if the barrier was not set for a moment since it began to wait.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let grain = scene.tolerances().grain;
    for (_, event) in scene.events() {
        let What::Passed { path, since } = &event.what else { continue };
        let Some(index) = scene.truth.node_at(path, since.saturating_sub(grain)) else { continue };
        let node = &scene.truth.nodes()[index];
        if node.gone.is_none_or(|gone| gone.when.at > event.at + grain) {
            let violation =
                Violation::new(Invariant::B3, event.at, "went on while the barrier was set:").path(path);
            found.push(event.client.into_iter().fold(violation, Violation::client));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::What;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::B3;
    use std::time::Duration;

    fn passed(removed: bool) -> Sketch {
        let mut sketch = Sketch::new();
        sketch.at(100).make("/barrier", 1, 0);
        if removed {
            sketch.at(250).delete_path("/barrier", 2).at(251).make("/barrier", 1, 0);
        }
        let since = Duration::from_millis(200);
        sketch.at(300).tell(1, What::Passed { path: "/barrier".to_owned(), since }).end(1_000)
    }

    #[test]
    fn who_waits_goes_on_when_it_is_removed() {
        passed(true).holds();
    }

    #[test]
    fn who_goes_on_before_is_caught() {
        passed(false).breaks(B3);
    }
}
