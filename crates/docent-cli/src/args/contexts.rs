//! The file of contexts.

use crate::exit::Failure;
use docent::client::Options;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Contexts by name, as read from the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// Name of the context to use when no servers are given.
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Options>,
}

impl Contexts {
    /// Reads `file`, as [`ContextsFile::read`] does.
    pub(super) fn read(file: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        Ok(ContextsFile::read(file, var)?.contexts)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    /// Returns the context with this name.
    pub(super) fn named(mut self, name: &str) -> Result<Options, Failure> {
        self.check_known(name)?;
        Ok(self.contexts.remove(name).expect("the name was checked"))
    }

    /// Checks that there is a context with this name.
    ///
    /// # Errors
    /// `Usage` with the names of all contexts.
    pub(crate) fn check_known(&self, name: &str) -> Result<(), Failure> {
        if self.contexts.contains_key(name) {
            return Ok(());
        }
        let names = self.contexts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let known = if names.is_empty() { "the file has none".to_owned() } else { format!("known: {names}") };
        Err(Failure::usage(format!("no context {name:?} in the file of contexts; {known}")))
    }

    /// Returns the name that the file gives as current, whether or not there is such a context.
    pub(crate) fn current_name(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Returns all contexts in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Options)> {
        self.contexts.iter().map(|(name, options)| (&**name, options))
    }

    /// Returns the context that the file names as current.
    pub(super) fn current(self) -> Result<Option<Options>, Failure> {
        match self.current.clone() {
            Some(name) => self.named(&name).map(Some),
            None => Ok(None),
        }
    }
}

/// The file of contexts.
#[derive(Debug, Default)]
pub(crate) struct ContextsFile {
    /// Path of the file; `None` if there is no name for a default file.
    pub(crate) path: Option<PathBuf>,
    /// Content; empty if the default file does not exist.
    pub(crate) text: String,
    pub(crate) contexts: Contexts,
}

impl ContextsFile {
    /// Reads `file`. A missing default file yields no contexts; a missing file that was named is an error.
    pub(super) fn read(file: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        let named = file.map(Path::to_owned).or_else(|| var("DOCENT_CONTEXTS").map(PathBuf::from));
        let Some(path) = named.clone().or_else(|| default_file(var)) else { return Ok(Self::default()) };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => String::new(),
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        Ok(Self { contexts: Contexts::parse(&text, &path)?, path: Some(path), text })
    }
}

/// Returns the path of `contexts.toml` in the user's configuration folder.
fn default_file(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("docent/contexts.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        current = \"local\"
        [contexts.local]
        connect = \"127.0.0.1:2181\"
        [contexts.shop]
        connect = \"zk1:2181,zk2:2181/shop\"
        session_timeout = \"30s\"
    ";

    fn parse(text: &str) -> Result<Contexts, Failure> {
        Contexts::parse(text, Path::new("contexts.toml"))
    }

    #[test]
    fn a_context_has_the_settings_of_the_library() {
        let shop = parse(FILE).unwrap().named("shop").unwrap();
        assert_eq!(shop.connect, "zk1:2181,zk2:2181/shop");
        assert_eq!(shop.session_timeout, Some(std::time::Duration::from_secs(30)));
        assert_eq!(parse(FILE).unwrap().current().unwrap().unwrap().connect, "127.0.0.1:2181");
    }

    #[test]
    fn an_unknown_context_is_refused_with_those_that_are_known() {
        let failure = parse(FILE).unwrap().named("prod").unwrap_err();
        assert_eq!(failure.to_string(), "no context \"prod\" in the file of contexts; known: local, shop");
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_file() {
        let failure = parse("[contexts.a]\nconnect = \"a\"\npasword = \"b\"").unwrap_err();
        let text = failure.to_string();
        assert!(text.starts_with("contexts.toml: ") && text.contains("pasword"), "{text}");
    }

    #[test]
    fn a_default_file_that_does_not_exist_has_no_contexts() {
        let folder = tempfile::tempdir().unwrap();
        let var = |name: &str| (name == "HOME").then(|| folder.path().into());
        assert!(Contexts::read(None, var).unwrap().current().unwrap().is_none());
        let missing = folder.path().join("missing");
        assert!(Contexts::read(Some(&missing), var).is_err(), "a file that was named must exist");
    }
}
