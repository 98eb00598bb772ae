//! `docent completions`.

use crate::docent_command::{Ended, PATIENCE, docent, end, run, servers};
use docent::Client;
use docent::node::CreateMode;
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::Port;
use std::time::Instant;

/// Completes a line in bash, and returns the proposals.
async fn proposals(connect: &str, line: &str) -> Vec<String> {
    // Bash makes a word of each sign, and separates them from the words beside them.
    let script = "docent() { \"$DOCENT\" \"$@\"; }; source <(docent completions bash); \
                  read -ra COMP_WORDS <<< \"${LINE//=/ = }\"; \
                  [[ $LINE == *' ' ]] && COMP_WORDS+=(''); \
                  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=$LINE; COMP_POINT=${#LINE}; \
                  _docent_or_value docent \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    let command = docent(connect, [""; 0]);
    let docent = env!("CARGO_BIN_EXE_docent");
    let mut bash = tokio::process::Command::new("bash");
    bash.args(["-c", script])
        .env_clear()
        .envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    bash.env("DOCENT", docent).env("LINE", line).kill_on_drop(true);
    bash.stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let ended: Ended = end(bash.spawn().unwrap()).await.ok();
    assert_eq!(ended.stderr, "", "{line}");
    ended.stdout.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

both_backends_in_real_time! {
    async fn paths_of_the_servers_are_completed(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for path in ["/locks/report", "/locks/restart", "/limits"] {
            run(&connect, ["config", "set", path, "1"]).await.ok();
        }
        // Clients keep nodes of their own while they write.
        let client = Client::connect(&connect).await.unwrap();
        client.create("/_docent-test", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(proposals(&connect, "docent lock /lo").await, ["/locks"]);
        assert_eq!(proposals(&connect, "docent lock --wait 30s /locks/re").await, ["/locks/report", "/locks/restart"]);
        assert_eq!(proposals(&connect, "docent config get /").await, ["/limits", "/locks"]);
        assert_eq!(proposals(&connect, "docent ls locks /lim").await, ["/limits"]);
        let other = Port::claim().unwrap().address().to_string();
        assert_eq!(proposals(&other, &format!("docent --connect {connect} inspect /lo")).await, ["/locks"]);
    }
}

#[tokio::test]
async fn contexts_and_kinds_need_no_servers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexts.toml");
    std::fs::write(&file, "[contexts.shop]\nconnect = \"a\"\n[contexts.staging]\nconnect = \"b\"\n[contexts.test]\nconnect = \"c\"")
        .unwrap();
    let line = |rest: &str| format!("docent --contexts-file {} {rest}", file.display());
    for option in ["--context s", "--context=s", "ls --context s"] {
        assert_eq!(proposals("", &line(option)).await, ["shop", "staging"], "{option}");
    }
    let missing = line("--context s").replace("contexts.toml", "none");
    assert!(!proposals("", &missing).await.iter().any(|name| name == "shop"));
    assert_eq!(proposals("", "docent ls ").await, ["locks", "elections", "services", "queues", "configs"]);
    assert_eq!(proposals("", "docent ls q").await, ["queues"]);
}

#[tokio::test]
async fn verbs_and_options_are_completed_as_before() {
    assert_eq!(proposals("", "docent insp").await, ["inspect"]);
    assert_eq!(proposals("", "docent lock --nonb").await, ["--nonblock"]);
    assert!(!proposals("", "docent ").await.iter().any(|verb| verb.starts_with("__")));
}

#[tokio::test]
async fn servers_that_do_not_answer_give_no_paths_and_no_error() {
    // A listener that never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    assert!(proposals(&silent.local_addr().unwrap().to_string(), "docent lock /").await.is_empty());
    assert!(began.elapsed() < PATIENCE);
    assert!(proposals("", "docent lock /").await.is_empty());
}

#[tokio::test]
async fn the_scripts_of_other_shells_ask_for_values_too() {
    for shell in ["zsh", "fish"] {
        let script = run("", ["completions", shell]).await.ok().stdout;
        assert!(script.contains("docent __complete -- "), "{shell}");
    }
}
