/// Maximum number of characters in a cell or line. Text written by other programs may be as long as a node,
/// and a table pads all rows.
const MAX_LENGTH: usize = 200;

/// Shortens the text of a cell or line, with dots if text was cut.
pub(crate) fn short(text: &str) -> String {
    shortened(text, MAX_LENGTH)
}

/// Returns the first `most` characters of a text, followed by dots if text was cut.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(["", "äöü", "äöüß"].map(|text| shortened(text, 3)), ["", "äöü", "äöü..."]);
    }
}
