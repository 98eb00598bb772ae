use super::paragraphs::{Paragraph, paragraphs};

/// First words that say that there is something, and leave its name out.
const NAMELESS: [&str; 5] = ["what", "who", "whoever", "whose", "whatever"];

/// A sentence of the docs, with the number of the line it begins on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) line: usize,
    pub(super) text: String,
}

impl Sentence {
    /// True when the first word names nothing. A name in backticks does.
    pub(super) fn is_nameless(&self) -> bool {
        let text = self.text.trim_start_matches(|c: char| c != '`' && !c.is_alphabetic());
        let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        NAMELESS.iter().any(|word| first.eq_ignore_ascii_case(word))
    }
}

/// Sentences of the docs in `source`. Questions are left out.
pub(super) fn sentences(source: &str) -> Vec<Sentence> {
    let all = paragraphs(source).into_iter().flat_map(split);
    all.filter(|sentence| !without_closing(&sentence.text).ends_with('?')).collect()
}

/// Splits a paragraph at full stops outside code, unless the next word begins small, as after an
/// abbreviation.
fn split(paragraph: Paragraph<'_>) -> Vec<Sentence> {
    let mut found = Vec::<Sentence>::new();
    let mut ended = true;
    let mut in_code = false;
    for (line, word) in paragraph {
        match found.last_mut() {
            Some(sentence) if !ended || word.starts_with(char::is_lowercase) => {
                sentence.text = format!("{} {word}", sentence.text);
            }
            _ => found.push(Sentence { line, text: word.to_owned() }),
        }
        in_code ^= word.matches('`').count() % 2 == 1;
        ended = !in_code && without_closing(word).ends_with(['.', '!', '?']);
    }
    found
}

fn without_closing(text: &str) -> &str {
    text.trim_end_matches([')', ']', '"', '\'', '*', '_', '”', '’'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(docs: &str) -> Vec<String> {
        sentences(docs).into_iter().map(|sentence| sentence.text).collect()
    }

    fn is_nameless(text: &str) -> bool {
        Sentence { line: 1, text: text.to_owned() }.is_nameless()
    }

    #[test]
    fn a_paragraph_is_split_at_full_stops_and_each_sentence_has_its_line() {
        let found = sentences("/// One is. Two\n/// is. (Three is.) `a.b. c` is");
        let expected = [(1, "One is."), (1, "Two is."), (2, "(Three is.)"), (2, "`a.b. c` is")];
        let expected = expected.map(|(line, text)| Sentence { line, text: text.to_owned() });
        assert_eq!(found, expected);
    }

    #[test]
    fn an_abbreviation_ends_no_sentence() {
        assert_eq!(texts("/// Servers, e.g. old ones, refuse it."), ["Servers, e.g. old ones, refuse it."]);
    }

    #[test]
    fn questions_are_left_out() {
        assert_eq!(texts("/// Who holds it? A guard. (What else?)"), ["A guard."]);
    }

    #[test]
    fn a_first_word_that_names_nothing_is_found() {
        for text in [
            "What is held.",
            "Who waits.",
            "(Whoever waits.",
            "**Whose** turn it is.",
            "whatever it is",
            "What’s left.",
        ] {
            assert!(is_nameless(text), "{text}");
        }
    }

    #[test]
    fn names_and_other_words_are_let_pass() {
        for text in [
            "Claims to make.",
            "Whole lists.",
            "`what` of the event.",
            "[`What`] happened.",
            "…",
            "Node that a client, whatever it does, keeps.",
        ] {
            assert!(!is_nameless(text), "{text}");
        }
    }
}
