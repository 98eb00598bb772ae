use crate::app::App;
use crate::args::ContextsFile;
use crate::exit::Failure;
use crate::output::replace_file;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// Position of the current context's name in the file.
#[derive(Debug, Deserialize)]
struct Place {
    current: Option<Spanned<String>>,
}

/// Makes `name` the current context.
///
/// # Errors
/// `Usage` if the file has no such context; `Other` if the file cannot be replaced, and then it has its old
/// content.
pub(super) fn run(app: &App, file: &ContextsFile, name: &str) -> Result<(), Failure> {
    let path = file.path.as_ref().ok_or_else(|| {
        Failure::usage("there is no file of contexts: give --contexts-file, or set DOCENT_CONTEXTS or HOME")
    })?;
    file.contexts.check_known(name)?;
    let changed = with_current(&file.text, name)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    replace_file(path, changed.as_bytes(), false)
        .map_err(|error| Failure::other(format!("cannot replace {}: {error}", path.display())))?;
    app.output.remark(format!("{name} is now the current context"));
    if std::env::var_os("DOCENT_CONNECT").is_some_and(|connect| !connect.is_empty()) {
        app.output.remark("DOCENT_CONNECT is set, and is used in place of the current context");
    }
    Ok(())
}

/// Returns the text with this name as `current`, otherwise unchanged. A key above the first table belongs to
/// the root, so a missing key is inserted at the start.
fn with_current(text: &str, name: &str) -> Result<String, toml::de::Error> {
    let place: Place = toml::from_str(text)?;
    // In TOML, a basic string has the escapes of JSON, and needs one more.
    let name = serde_json::Value::from(name).to_string().replace('\u{7f}', "\\u007F");
    Ok(match place.current.map(|current| current.span()) {
        Some(Range { start, end }) => format!("{}{name}{}", &text[..start], &text[end..]),
        None => format!("current = {name}\n{text}"),
    })
}

#[cfg(test)]
mod tests {
    use super::with_current;

    #[test]
    fn only_the_name_changes_and_comments_stay() {
        let text = "# servers of the shop\ncurrent = 'a' # for now\n\n[contexts.a]\nconnect = \"a:1\"\n";
        let changed = with_current(text, "b").unwrap();
        assert_eq!(changed, text.replace("'a'", "\"b\""));
        let multi = "\ncurrent = \"\"\"\na\"\"\"\n[contexts.b]\nconnect = \"\"\n";
        assert_eq!(with_current(multi, "b").unwrap(), "\ncurrent = \"b\"\n[contexts.b]\nconnect = \"\"\n");
    }

    #[test]
    fn a_missing_key_is_inserted_above_the_tables() {
        let text = "# shop\n[contexts.a]\nconnect = \"a:1\"\ncurrent = \"not this one\"\n";
        let changed = with_current(text, "q\"\\\u{7f}\n").unwrap();
        let read: toml::Table = toml::from_str(&changed).unwrap();
        assert_eq!(read["current"].as_str(), Some("q\"\\\u{7f}\n"));
        assert!(changed.ends_with(text), "{changed}");
    }
}
