use crate::sources::code;

/// Lines of each function of a file that the formatter has formatted, from the first to the closing brace.
pub(super) fn functions(text: &str) -> Vec<usize> {
    let lines: Vec<_> = code(text).collect();
    let begins = lines.iter().enumerate().filter(|(_, (_, line))| function_name(line).is_some());
    begins.filter_map(|(index, _)| length(&lines[index..])).collect()
}

/// The name of the function that a line begins.
pub(super) fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| match rest.split_once(") ") {
        Some((scope, rest)) if scope.starts_with('(') && !scope.contains("fn") => rest,
        _ => rest.trim_start(),
    });
    let line = ["const ", "async "].iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    line.strip_prefix("fn ")?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// `None` for a function without a body.
fn length(lines: &[(usize, &str)]) -> Option<usize> {
    let (begin, first) = lines.first()?;
    if first.ends_with('}') && first.contains('{') {
        return Some(1);
    }
    let indent = &first[..first.len() - first.trim_start().len()];
    for (number, line) in lines {
        if line.is_empty() {
            continue;
        }
        let inside = line.strip_prefix(indent)?;
        match inside {
            "}" => return Some(number - begin + 1),
            _ if line.ends_with(';') && !inside.starts_with(' ') => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_their_first_line_to_their_last() {
        let text = "impl A {\n    pub(crate) async fn one(\n        &self,\n    ) -> u8 {\n        2\n    }\n\n    fn two() {}\n}\n";
        assert_eq!(functions(text), [5, 1]);
    }

    #[test]
    fn a_function_is_named_by_its_first_line() {
        assert_eq!(function_name("    pub(in crate::session) fn write(&mut self)"), Some("write"));
        assert_eq!(function_name("pub(super) async fn draw<T>("), Some("draw"));
        assert_eq!(function_name("    let fn_name = 1;"), None);
    }

    #[test]
    fn functions_without_a_body_and_those_of_tests_are_left_out() {
        let text = "trait A {\n    fn one(&self);\n    fn two(\n        &self,\n    );\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {\n    }\n}\n";
        assert_eq!(functions(text), [0; 0]);
    }
}
