use anyhow::Result;
use regex::Regex;

/// Phrases that a reader has to decode, and what to write instead.
const HABITS: [(&str, &str); 15] = [
    (r"\b(tell|tells|told|telling)\b", "notify, report, return"),
    (
        r"\b(somebody|nobody|everybody|whoever|whom|anybody|those who|those whom)\b",
        "another client, no client, any client that",
    ),
    (r"\b(go|goes|going|went) on\b", "continue"),
    (r"\b(is|are|was|were|be) (away|gone)\b", "deleted, expired, disconnected, unavailable"),
    (r"\bby (itself|themselves)\b|\bof (its|their|one's) own\b", "automatically, its own, separate"),
    (
        r"(^|[,;:] )[Ww]here (there|it|they|nobody|somebody|one|the|a|no) |\b[Ww]here (nobody|somebody|there) ",
        "if, when",
    ),
    (r"\banew\b", "again, re-create, restart"),
    (r"\bso (many|long)\b", "n, the limit, that many"),
    (r"\b(is|are|was|were|be|been) made\b", "created"),
    (r"\b(hear|hears|heard) (of|from)\b", "learn of, receive"),
    (r"\b(at hand|left out|leaves out|as it is|as they are)\b", "skipped, omitted, unchanged"),
    (r"\b(stand|stands|stood|standing) still\b", "pause, stall, be suspended"),
    (r"\bwhat (became|becomes) of\b|\bwhat is to\b", "the outcome of"),
    (r"\bat once\b", "immediately"),
    (r"\b(come|comes|came) (free|between|true)\b", "become available, conflict"),
];

/// The habits, ready to search for.
#[derive(Debug)]
pub(super) struct Habits(Vec<(Regex, &'static str)>);

impl Habits {
    pub(super) fn new() -> Result<Self> {
        let compiled = HABITS.iter().map(|(pattern, instead)| Ok((Regex::new(pattern)?, *instead)));
        Ok(Self(compiled.collect::<Result<_>>()?))
    }

    /// Each habit found in `text`: the phrase, and what to write instead.
    pub(super) fn found<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'t str, &'static str)> {
        self.0.iter().filter_map(|(pattern, instead)| Some((pattern.find(text)?.as_str(), *instead)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_habit_is_found_in_its_example() {
        let habits = Habits::new().unwrap();
        let examples = [
            ("the server told the client", "told"),
            ("nobody holds the lock", "nobody"),
            ("the client goes on", "goes on"),
            ("the node is gone", "is gone"),
            ("a task of its own", "of its own"),
            ("Where there is no node", "Where there "),
            ("the session is opened anew", "anew"),
            ("so many permits", "so many"),
            ("a node is made", "is made"),
            ("hears of the change", "hears of"),
            ("the field is left out", "left out"),
            ("the process stood still", "stood still"),
            ("what became of the request", "what became of"),
            ("deleted at once", "at once"),
            ("a permit comes free", "comes free"),
        ];
        assert_eq!(examples.len(), HABITS.len());
        for (text, phrase) in examples {
            assert_eq!(habits.found(text).map(|(found, _)| found).collect::<Vec<_>>(), [phrase], "{text}");
        }
        assert_eq!(habits.found("the server deletes the node when the session expires").count(), 0);
    }
}
