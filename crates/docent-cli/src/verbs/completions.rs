//! `docent completions`: completions for a shell.

use crate::app::App;
use crate::cli::Cli;
use crate::exit::{Ending, Outcome};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print completions for a shell: verbs and options, and in bash, zsh and fish also contexts, kinds and the
/// paths of the servers, which get two seconds to answer.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Shell to print completions for
    shell: Shell,
}

/// End of clap's script for bash.
const BASH: &str = r#"
_docent_or_value() {
    COMPREPLY=()
    local value
    while IFS= read -r value; do
        COMPREPLY+=("$(printf %q "$value")")
    done < <(docent __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if ((${#COMPREPLY[@]} == 0)); then
        _docent "$@"
    elif [[ ${COMPREPLY[0]} == /* ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _docent_or_value -o bashdefault -o default docent
"#;

/// End of clap's script for zsh.
const ZSH: &str = r#"
_docent_or_value() {
    local -a values
    values=("${(@f)$(docent __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z ${values[1]} ]]; then
        _docent "$@"
    elif [[ ${values[1]} == /* ]]; then
        compadd -S '' -- "${values[@]}"
    else
        compadd -- "${values[@]}"
    fi
}

compdef _docent_or_value docent
"#;

/// End of clap's script for fish.
const FISH: &str = r#"
complete -c docent -a '(docent __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"#;

pub(crate) fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "docent", &mut text);
    let values = match arguments.shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    };
    // Clap proposes hidden verbs in bash.
    let text = String::from_utf8_lossy(&text).replace(" __complete ", " ");
    app.output.bytes(format!("{text}{values}").as_bytes())?;
    Ok(Ending::Done)
}
