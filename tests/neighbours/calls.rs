//! Calls that are answered by one of several providers.

use docent_tests::{pause, soon};
use std::collections::BTreeSet;

/// Number of calls in a row after which no other provider is expected to answer.
const ROW: usize = 30;

/// Calls until a row of calls was answered by these providers, by each at least once, and no call failed.
pub(crate) async fn until_answered_by(providers: &[i32], mut call: impl AsyncFnMut() -> Result<i32, String>) {
    let expected: BTreeSet<_> = providers.iter().copied().collect();
    let (mut answered, mut row) = (BTreeSet::new(), 0);
    soon(async {
        while row < ROW || answered != expected {
            match call().await {
                Ok(number) if expected.contains(&number) => {
                    answered.insert(number);
                    row += 1;
                }
                _ => (answered, row) = (BTreeSet::new(), 0),
            }
            pause().await;
        }
    })
    .await;
}
