/// A Markdown page.
#[derive(Debug)]
pub(super) struct Page {
    /// Path from the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
}

/// A fenced block of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Line of its fence, counted from 1.
    pub(crate) line: usize,
    /// Text behind the fence, such as `rust,no_run`.
    pub(crate) info: String,
    pub(crate) code: String,
}

impl Page {
    pub(super) fn new(path: String, text: String) -> Self {
        Self { path, text }
    }

    /// Anchors of the headings, as code hosting sites generate them.
    pub(super) fn anchors(&self) -> Vec<String> {
        prose(&self.text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| anchor(line)).collect()
    }

    /// Targets of links and pictures, each with its line.
    pub(super) fn targets(&self) -> Vec<(usize, String)> {
        let mut targets = Vec::new();
        for (number, line) in prose(&self.text) {
            let line = without_code(line);
            for (start, _) in line.match_indices("](") {
                if let Some((target, _)) = line[start + 2..].split_once(')') {
                    targets.push((number, target.to_owned()));
                }
            }
        }
        targets
    }
}

impl Block {
    pub(super) fn is_rust(&self) -> bool {
        self.info.split(',').next() == Some("rust")
    }

    /// Lines that rustdoc compiles but does not show.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &str> {
        self.code.lines().filter(|line| line.trim() == "#" || line.trim_start().starts_with("# "))
    }
}

/// Returns the code blocks of a page.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                open = Some(Block { line: index + 1, info: info.trim().to_owned(), code: String::new() });
            }
            (None, Some(block)) => {
                block.code.push_str(line);
                block.code.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Returns the lines outside of code blocks, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((index + 1, line))
    })
}

/// Returns `line` with its code spans blanked out.
pub(super) fn without_code(line: &str) -> String {
    let mut inside = false;
    line.chars()
        .map(|c| {
            inside ^= c == '`';
            if inside && c != '`' { ' ' } else { c }
        })
        .collect()
}

/// Does the same as [`without_code`], keeping the position of each byte.
pub(super) fn without_code_bytes(line: &str) -> String {
    let blank = |c: char| if c.is_ascii() { c.to_string() } else { "_".repeat(c.len_utf8()) };
    without_code(&line.chars().map(blank).collect::<String>())
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_no_prose() {
        let text = "one\n```rust\n[a](b)\n```\ntwo\n";
        assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "one"), (5, "two")]);
        let block = Block { line: 2, info: "rust".into(), code: "[a](b)\n".into() };
        assert_eq!(blocks(text), [block]);
    }

    #[test]
    fn targets_are_those_of_links_and_pictures_outside_of_code() {
        let page = Page::new("a.md".into(), "![x](x.svg), [`y`](y.md#z) and `[no](link)`\n".into());
        assert_eq!(page.targets(), [(1, "x.svg".to_owned()), (1, "y.md#z".to_owned())]);
    }

    #[test]
    fn a_heading_is_named_as_hosts_name_it() {
        assert_eq!(anchor("## Is the clock all right?"), "is-the-clock-all-right");
        assert_eq!(anchor("## The life of one `acquire`"), "the-life-of-one-acquire");
    }

    #[test]
    fn hidden_lines_are_found_and_attributes_are_not() {
        let block = |code: &str| Block { line: 1, info: "rust".into(), code: code.into() };
        assert_eq!(block("# fn a() {}\n#\n#[test]\n").hidden().count(), 2);
    }
}
