//! Series that are there from the start, with zero: an alert can tell nothing from one that is missing.

#[cfg(feature = "metrics")]
use super::{catalogue as c, metric::key, recorder::recorded};
use std::sync::{Arc, Mutex, PoisonError};

/// Describes all metrics, and begins the series of a client.
pub(crate) fn introduce_client(client: &Arc<str>) {
    #[cfg(feature = "metrics")]
    {
        let client = Arc::clone(client);
        recorded(move || {
            c::METRICS.iter().for_each(|metric| metric.describe());
            for metric in [
                &c::CONNECTION_STATE,
                &c::CONNECTED,
                &c::SUSPENDED,
                &c::LATENESS,
                &c::CLEANUPS,
                &c::KEPT_WANTED,
                &c::KEPT_PRESENT,
            ] {
                metric.register(&key(metric, &client, []));
            }
            for end in c::ENDS {
                c::SESSION_LOST.register(&key(&c::SESSION_LOST, &client, [("reason", end)]));
            }
            for op in c::TIMED {
                for outcome in c::OUTCOMES {
                    let labels = [("op", op), ("outcome", outcome)];
                    c::OP_DURATION.register(&key(&c::OP_DURATION, &client, labels));
                }
            }
            retried(&client, c::TIMED.into_iter().chain(c::RETRIED));
        });
    }
}

/// Begins the series of retries of these operations.
#[cfg(feature = "metrics")]
fn retried(client: &Arc<str>, operations: impl Iterator<Item = &'static str>) {
    for op in operations {
        c::RETRIES.register(&key(&c::RETRIES, client, [("op", op)]));
    }
}

/// Recipes of a client whose series have begun.
#[derive(Debug, Default)]
pub(crate) struct Introduced(Mutex<Vec<&'static str>>);

impl Introduced {
    /// Begins the series of `recipe`'s guards and of the retries of its `operations`, once.
    pub(crate) fn introduce(
        &self,
        client: &Arc<str>,
        recipe: &'static str,
        operations: impl Iterator<Item = &'static str> + Send + 'static,
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&recipe) {
            return;
        }
        known.push(recipe);
        drop(known);
        #[cfg(feature = "metrics")]
        {
            let client = Arc::clone(client);
            recorded(move || {
                retried(&client, operations);
                for metric in [&c::LOCK_WAIT, &c::LOCK_HELD, &c::LOCKS_HELD, &c::LOCK_PASSED_ON] {
                    metric.register(&key(metric, &client, [("recipe", recipe)]));
                }
                for reason in c::LOSSES {
                    let labels = [("recipe", recipe), ("reason", reason)];
                    c::LOCK_LOST.register(&key(&c::LOCK_LOST, &client, labels));
                }
            });
        }
    }
}
