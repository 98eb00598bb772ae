use super::endpoint::{Endpoint, is_made_of};
use std::str::FromStr;

/// Line for an instance, with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Host,
    Port,
    Id,
}

const RULE: &str =
    "must be one of {host}, {port} and {id}, or be written with {{ and }} if the braces are meant";

impl Default for Template {
    /// Returns `{host}:{port}`.
    fn default() -> Self {
        Self(vec![Part::Host, Part::Text(":".to_owned()), Part::Port])
    }
}

impl Template {
    /// Returns the line for the instance of a node.
    ///
    /// # Errors
    /// The value and the rule, if the id is wanted and might be read as more than a name.
    pub(super) fn line(&self, id: &str, endpoint: &Endpoint) -> Result<String, String> {
        let mut line = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => line += text,
                Part::Host => line += &endpoint.host,
                Part::Port => line += &endpoint.port.to_string(),
                Part::Id if is_made_of(id, "._-:") => line += id,
                Part::Id => {
                    return Err(format!(
                        "its id {id:?} must consist of letters, digits, '.', '_', '-' and ':', and not start with '-'"
                    ));
                }
            }
        }
        Ok(line)
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal += &rest[..at];
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                literal += &rest[..1];
                rest = after;
                continue;
            }
            let end = rest.find('}').filter(|end| *end > 0).ok_or_else(|| unknown(rest))?;
            let (placeholder, after) = rest.split_at(end + 1);
            parts.push(Part::Text(std::mem::take(&mut literal)));
            parts.push(match placeholder {
                "{host}" => Part::Host,
                "{port}" => Part::Port,
                "{id}" => Part::Id,
                _ => return Err(unknown(placeholder)),
            });
            rest = after;
        }
        parts.push(Part::Text(literal + rest));
        Ok(Self(parts))
    }
}

fn unknown(placeholder: &str) -> String {
    format!("the placeholder {placeholder:?} {RULE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(template: &str, id: &str) -> Result<String, String> {
        template.parse::<Template>()?.line(id, &Endpoint { host: "[::1]".into(), port: 80 })
    }

    #[test]
    fn placeholders_are_replaced() {
        assert_eq!(line("server {host}:{port};", "a b").unwrap(), "server [::1]:80;");
        assert_eq!(
            line("server {id} {host}:{port} check", "a.1_b-c:2").unwrap(),
            "server a.1_b-c:2 [::1]:80 check"
        );
        assert_eq!(line("{{{host}}}", "a").unwrap(), "{[::1]}");
        assert_eq!(line("", "a").unwrap(), "");
        assert_eq!(line("ü{id}ü", "a").unwrap(), "üaü");
        assert_eq!(Template::default().line("a", &Endpoint { host: "h".into(), port: 1 }).unwrap(), "h:1");
    }

    #[test]
    fn an_id_cannot_inject_configuration() {
        for id in ["", "a b", "a;", "a\nserver evil:1", "a{", "a#", "ä", "a\u{202e}"] {
            assert!(line("server {id} {host}", id).unwrap_err().contains("its id"), "{id:?}");
        }
    }

    #[test]
    fn other_placeholders_are_refused_with_the_rule() {
        for (template, named) in
            [("a {hots}", "\"{hots}\""), ("a {host", "\"{host\""), ("a } b", "\"} b\""), ("{}", "\"{}\"")]
        {
            let error = template.parse::<Template>().unwrap_err();
            assert!(error.contains(named) && error.contains("{host}, {port} and {id}"), "{error}");
        }
    }
}
