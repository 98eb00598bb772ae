use docent::inspect::Since;
use std::time::Duration;

/// Formats an age in one unit, or in two if the first is small, such as `3m 20s` or `at least 3m 20s`.
/// Returns an empty text for `None`.
pub(crate) fn age(since: Option<Since>) -> String {
    let text = |since: Since| {
        let bound = if since.is_at_least { "at least " } else { "" };
        format!("{bound}{}", short(since.age))
    };
    since.map(text).unwrap_or_default()
}

fn short(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0 => format!("{}ms", age.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::short;
    use std::time::Duration;

    #[test]
    fn ages_are_short() {
        let shown = [0, 59, 200, 7_260, 180_000].map(|seconds| short(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0ms", "59s", "3m 20s", "2h 1m", "2d 2h"]);
    }
}
