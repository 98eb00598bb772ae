use super::markdown::blocks;

/// Maximum number of lines in the README.
const MOST_LINES: usize = 150;

/// Returns violations of the rules for the README alone: its length, and hidden lines in its code.
pub(super) fn check(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        wrong.push(format!("README.md has {lines} lines, more than {MOST_LINES}"));
    }
    for block in blocks(text).iter().filter(|block| block.is_rust()) {
        let hidden = block.hidden().count();
        if hidden > 0 {
            wrong.push(format!(
                "README.md:{}: {hidden} hidden lines, which code hosting sites show",
                block.line
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_readme_and_hidden_lines_are_refused() {
        assert!(check("# A\n\n```rust\nfn a() {}\n```\n\n```sh\n# a comment\n```\n").is_empty());
        assert_eq!(check(&"line\n".repeat(MOST_LINES + 1)).len(), 1);
        assert_eq!(check("```rust\n# use a;\nfn a() {}\n```\n").len(), 1);
    }
}
