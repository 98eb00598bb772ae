use docent::inspect::{NodeText, Stake, StakeRole};

/// Maximum number of characters of a text that comes from a node: it may have up to a megabyte.
const MAX_SHOWN: usize = 200;

/// Returns who the client is, for people. A member's data is only named if data may be shown.
pub(crate) fn owner_of(stake: &Stake<'_>, shows_data: bool) -> String {
    let is_data = stake.role == StakeRole::Joins && stake.client.is_none();
    match stake.session {
        Some(session) if is_data && !shows_data => format!("session {session:#x}"),
        None if is_data && !shows_data => "a member".to_owned(),
        _ => shortened(&stake.owner()),
    }
}

/// Returns the text of a node, safe for terminals and short.
pub(crate) fn short_text(text: &NodeText) -> String {
    let bytes = text.bytes();
    // At most four bytes for each character, so the beginning is enough.
    shortened(&docent::inspect::printable(&bytes[..bytes.len().min(4 * MAX_SHOWN + 4)]))
}

/// Returns the beginning of a long text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("web-1"), "web-1");
        let long = "\u{e4}".repeat(MAX_SHOWN + 1);
        assert_eq!(shortened(&long), format!("{}\u{2026}", "\u{e4}".repeat(MAX_SHOWN)));
        let short = short_text(&NodeText::new(vec![1; 1_000_000]));
        assert_eq!(short.chars().count(), MAX_SHOWN + 1);
    }
}
