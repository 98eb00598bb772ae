use super::source::Source;
use crate::sources::code;
use std::collections::{BTreeMap, BTreeSet};

/// Types whose own methods are in three files or more, each with how many.
pub(super) fn spread(sources: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for (_, line) in code(&source.text) {
            if let Some(name) = inherent(line) {
                files.entry(name).or_default().insert(&source.path);
            }
        }
    }
    let wide = files.into_iter().filter(|(_, files)| files.len() > 2);
    wide.map(|(name, files)| format!("{name} ×{}", files.len())).collect()
}

/// The type that a block of methods is for.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        Some(rest) => rest.split_once("> ")?.1,
        None => rest.trim_start(),
    };
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_methods_name_their_type() {
        assert_eq!(inherent("impl Client {"), Some("Client"));
        assert_eq!(inherent("impl<T: Clone> Queue<T> {"), Some("Queue"));
        assert_eq!(inherent("impl Drop for Client {"), None);
        assert_eq!(inherent("implement()"), Some("ement"));
        assert_eq!(inherent("    impl Client {"), None);
    }
}
