/// Most characters of a cell or line. What others wrote may be as long as a node, and a table pads all rows.
const MOST: usize = 200;

/// Text of a cell or line, which ends with dots where it goes on.
pub(super) fn short(text: &str) -> String {
    shortened(text, MOST)
}

/// The first `most` characters of a text, and dots where it goes on.
pub(super) fn shortened(text: &str, most: usize) -> String {
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
