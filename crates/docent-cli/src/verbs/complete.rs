//! `docent __complete`: values for the completions of a shell, which clap's scripts do not know.

use crate::app::App;
use crate::args::Global;
use crate::cli::Cli;
use crate::exit::{Ending, Outcome};
use crate::verbs::inspect::kind_names;
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};
use docent::Client;
use docent::recipe::is_own_name;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum time for the paths of the servers, for which a prompt waits.
const LIMIT: Duration = Duration::from_secs(2);

/// ZooKeeper's own folder.
const SYSTEM: &str = "/zookeeper";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Words of the line after `docent`, up to the one to complete
    #[arg(last = true)]
    words: Vec<String>,
}

/// Prints a line for each value that completes the last word. Prints nothing if there is none, or if no
/// server answers in time.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let (last, before) =
        arguments.words.split_last().map_or(("", &[][..]), |(last, before)| (&**last, before));
    // Bash makes a word of the sign in `--context=NAME`.
    let last = if last == "=" { "" } else { last };
    let before: Vec<&str> = before.iter().map(|word| &**word).filter(|word| *word != "=").collect();
    let values = match Value::wanted(&before) {
        Some(Value::Context) => context_names(&before),
        Some(Value::Path) => paths(&before, last).await,
        Some(Value::KindOrPath) if last.starts_with('/') => paths(&before, last).await,
        Some(Value::KindOrPath) => kind_names().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    for value in values.iter().filter(|value| value.starts_with(last) && !value.contains(char::is_control)) {
        app.output.bytes(format!("{value}\n").as_bytes())?;
    }
    Ok(Ending::Done)
}

/// Kind of a value that is completed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Context,
    Path,
    KindOrPath,
}

impl Value {
    /// Returns the kind of the value that follows these words, or `None` if clap's script completes it.
    fn wanted(before: &[&str]) -> Option<Self> {
        let mut command = Cli::command();
        command.build();
        let (mut verb, mut position, mut words) = (&command, 0, before.iter());
        while let Some(word) = words.next() {
            if let Some(option) = option(verb, word) {
                if option.get_action().takes_values() && words.next().is_none() {
                    return Self::of(option, 0);
                }
            } else if *word == "--" {
                return None;
            } else if let Some(inner) = verb.find_subcommand(word) {
                (verb, position) = (inner, 0);
            } else if !word.starts_with('-') {
                position += 1;
            }
        }
        let positionals: Vec<_> = verb.get_positionals().collect();
        Self::of(positionals.get(position).or(positionals.last())?, position)
    }

    fn of(argument: &Arg, position: usize) -> Option<Self> {
        match (argument.get_id().as_str(), position) {
            ("context", _) => Some(Self::Context),
            ("path" | "root" | "key", 0) | ("words", 1) => Some(Self::Path),
            ("words", 0) => Some(Self::KindOrPath),
            _ => None,
        }
    }
}

/// Returns the option of a word such as `--wait` or `-w`. A word that contains its value is none.
fn option<'a>(verb: &'a Command, word: &str) -> Option<&'a Arg> {
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => verb.get_opts().find(|option| option.get_long() == Some(long)),
        (None, Some(short)) => verb.get_opts().find(|option| option.get_short() == short.chars().last()),
        (None, None) => None,
    }
}

/// Returns the names in the file of contexts, none if it cannot be read.
fn context_names(before: &[&str]) -> Vec<String> {
    let file = global(before).and_then(|global| global.contexts().ok());
    file.map(|file| file.contexts.all().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default()
}

/// Returns the global options in an incomplete line.
fn global(before: &[&str]) -> Option<Global> {
    let words = ["docent"].iter().chain(before);
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    Global::from_arg_matches(&matches).ok()
}

/// Returns the paths of the children of the folder in `prefix`.
async fn paths(before: &[&str], prefix: &str) -> Vec<String> {
    let folder = match prefix.rsplit_once('/') {
        Some((folder, _)) if prefix.starts_with('/') => folder,
        _ if prefix.is_empty() => "",
        _ => return Vec::new(),
    };
    timeout(LIMIT, children(before, folder)).await.ok().flatten().unwrap_or_default()
}

async fn children(before: &[&str], folder: &str) -> Option<Vec<String>> {
    let options = global(before)?.client_options().ok()?;
    let client: Client = options.builder().ok()?.operation_timeout(LIMIT).connect().await.ok()?;
    let children = client.children(if folder.is_empty() { "/" } else { folder }).await;
    client.close().await;
    let children = children.ok()?;
    // Clients create and delete these for themselves.
    let names = children.names.iter().filter(|name| !is_own_name(name));
    let mut paths: Vec<_> = names.map(|name| format!("{folder}/{name}")).collect();
    paths.retain(|path| path != SYSTEM);
    paths.sort();
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_value_follows_from_the_words_before() {
        for (words, value) in [
            ("lock", Some(Value::Path)),
            ("lock --wait 30s -x", Some(Value::Path)),
            ("--connect zk1 queue take -n", Some(Value::Path)),
            ("config get", Some(Value::Path)),
            ("config set /key", None),
            ("ls", Some(Value::KindOrPath)),
            ("ls locks", Some(Value::Path)),
            ("ls locks /a", None),
            ("inspect --context", Some(Value::Context)),
            ("lock --wait", None),
            ("lock /a --", None),
            ("break /a", None),
            ("", None),
        ] {
            let before: Vec<_> = words.split_whitespace().collect();
            assert_eq!(Value::wanted(&before), value, "{words}");
        }
    }

    #[test]
    fn options_of_an_incomplete_line_are_known() {
        let global = global(&["lock", "--connect", "zk1:2181", "--wait"]).unwrap();
        assert_eq!(global.connect.as_deref(), Some("zk1:2181"));
        assert_eq!(super::global(&["--context", "shop", "queue"]).unwrap().context.as_deref(), Some("shop"));
    }
}
