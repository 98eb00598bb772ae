use crate::sources::comment;

/// Fewest words of a sentence that counts.
const FEWEST_WORDS: usize = 4;

/// The sentences of a page, or of the comments of a Rust file.
pub(super) fn sentences(path: &str, text: &str) -> Vec<String> {
    let prose = if path.ends_with(".rs") { comments(text) } else { text.to_owned() };
    let mut sentences = Vec::new();
    let mut inside = false;
    let mut paragraph = String::new();
    for line in prose.lines() {
        let trimmed = line.trim();
        let fence = trimmed.starts_with("```");
        inside ^= fence;
        let starts = trimmed.is_empty() || fence || inside || trimmed.starts_with(['-', '*', '#', '|']);
        if starts {
            split(&std::mem::take(&mut paragraph), &mut sentences);
        }
        if !inside && !fence {
            paragraph.push_str(trimmed);
            paragraph.push(' ');
        }
    }
    split(&paragraph, &mut sentences);
    sentences
}

/// The comment lines of a Rust file. What is between two comments ends a paragraph.
fn comments(text: &str) -> String {
    text.lines().map(|line| comment(line).unwrap_or_default().to_owned() + "\n").collect()
}

/// Cuts a paragraph after each full stop, colon and the like.
fn split(paragraph: &str, sentences: &mut Vec<String>) {
    let mut sentence = Vec::new();
    for word in paragraph.split_whitespace() {
        sentence.push(word);
        if word.ends_with(['.', '!', '?', ':', ';']) {
            keep(&std::mem::take(&mut sentence), sentences);
        }
    }
    keep(&sentence, sentences);
}

fn keep(words: &[&str], sentences: &mut Vec<String>) {
    if words.len() >= FEWEST_WORDS {
        sentences.push(words.join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_pages_end_at_stops_blank_lines_and_list_items() {
        let text = "# A page with a title\n\nOne two three\nfour. Five six seven eight\n- nine ten eleven twelve\n```\nno code here at all.\n```\n";
        assert_eq!(
            sentences("a.md", text),
            [
                "# A page with a title",
                "One two three four.",
                "Five six seven eight",
                "- nine ten eleven twelve"
            ]
        );
    }

    #[test]
    fn sentences_of_code_are_in_its_comments() {
        let text = "/// Reads a node,\n/// then returns.\nfn read() {}\n// It is too short.\nlet a = 1; // not a comment line\n";
        assert_eq!(sentences("a.rs", text), ["Reads a node, then returns.", "It is too short."]);
    }
}
