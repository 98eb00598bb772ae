/// Words of one paragraph or list item of a doc comment, each with the number of its line.
pub(super) type Paragraph<'a> = Vec<(usize, &'a str)>;

/// Paragraphs of all `///` and `//!` docs in `source`. Code blocks, headings and tables are left out.
pub(super) fn paragraphs(source: &str) -> Vec<Paragraph<'_>> {
    let mut reader = Reader::default();
    for (line, number) in source.lines().zip(1..) {
        reader.add(number, line);
    }
    reader.end_paragraph();
    reader.done
}

#[derive(Default)]
struct Reader<'a> {
    done: Vec<Paragraph<'a>>,
    open: Paragraph<'a>,
    in_code: bool,
}

impl<'a> Reader<'a> {
    fn add(&mut self, number: usize, line: &'a str) {
        let Some(text) = doc_text(line) else {
            self.in_code = false;
            return self.end_paragraph();
        };
        if text.starts_with("```") {
            self.in_code = !self.in_code;
            return self.end_paragraph();
        }
        if self.in_code {
            return;
        }
        if text.is_empty() || text.starts_with('#') || text.starts_with('|') {
            return self.end_paragraph();
        }
        let item = without_list_marker(text);
        if item.is_some() {
            self.end_paragraph();
        }
        self.open.extend(item.unwrap_or(text).split_whitespace().map(|word| (number, word)));
    }

    fn end_paragraph(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }
}

/// Text of a line of docs. Four slashes begin a comment that is no doc.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim();
    let text = line
        .strip_prefix("//!")
        .or_else(|| line.strip_prefix("///").filter(|rest| !rest.starts_with('/')))?;
    Some(text.trim())
}

fn without_list_marker(text: &str) -> Option<&str> {
    let (marker, rest) = text.split_once(' ')?;
    let digits = marker.strip_suffix(['.', ')']).unwrap_or_default();
    let numbered = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (numbered || ["-", "*", "+"].contains(&marker)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[&str]) -> Vec<String> {
        let source = lines.join("\n");
        let text =
            |paragraph: Paragraph<'_>| paragraph.iter().map(|&(_, word)| word).collect::<Vec<_>>().join(" ");
        paragraphs(&source).into_iter().map(text).collect()
    }

    #[test]
    fn lines_of_one_paragraph_are_one() {
        assert_eq!(
            texts(&["/// One", "/// two.", "///", "/// Three.", "code();", "//! Four."]),
            ["One two.", "Three.", "Four."]
        );
    }

    #[test]
    fn items_of_a_list_are_apart() {
        assert_eq!(texts(&["/// - one", "///   more", "/// 2. two"]), ["one more", "two"]);
    }

    #[test]
    fn code_headings_tables_and_plain_comments_are_left_out() {
        let lines =
            ["/// ```", "/// code", "/// ```", "/// # Errors", "/// | a | b |", "// plain", "//// four"];
        assert_eq!(texts(&lines), [""; 0]);
    }

    #[test]
    fn a_code_block_that_is_left_open_ends_with_its_docs() {
        assert_eq!(texts(&["/// ```", "/// code", "fn item() {}", "/// Text."]), ["Text."]);
    }
}
