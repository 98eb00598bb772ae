/// Interface with its group and version, which may be empty. Dubbo treats providers with different keys as
/// different services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceKey {
    pub(super) interface: String,
    pub(super) group: String,
    pub(super) version: String,
}

impl ServiceKey {
    /// Parses a key in any of Dubbo's forms: `interface:version:group` for the name of a node,
    /// `group/interface:version` inside a rule, and `group*interface:version`, the name in Dubbo 2.7.0.
    pub(super) fn parse(text: &str) -> Self {
        let (group, rest) = text.split_once(['/', '*']).unwrap_or(("", text));
        let mut parts = rest.splitn(3, ':');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (interface, version, last) = (next(), next(), next());
        Self { interface, version, group: if last.is_empty() { group.to_owned() } else { last } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_key_is_read() {
        let key = |interface: &str, group: &str, version: &str| ServiceKey {
            interface: interface.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
        };
        for (text, expected) in [
            ("a.B", key("a.B", "", "")),
            ("a.B::", key("a.B", "", "")),
            ("a.B:1.0:", key("a.B", "", "1.0")),
            ("a.B:1.0:g", key("a.B", "g", "1.0")),
            ("a.B::g", key("a.B", "g", "")),
            ("g/a.B:1.0", key("a.B", "g", "1.0")),
            ("g*a.B", key("a.B", "g", "")),
            ("", key("", "", "")),
        ] {
            assert_eq!(ServiceKey::parse(text), expected, "{text}");
        }
    }
}
