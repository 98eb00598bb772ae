use super::packed::Packed;
use crate::cargo::{cargo, run};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Checks that a new project outside of the workspace can use the packages: it compiles and runs the program
/// of the facade's README, and compiles the command, with the oldest Rust and with the current one.
pub(super) fn check(packed: &Packed) -> Result<()> {
    let folder = packed.empty("fresh")?;
    fs::create_dir_all(folder.join("src"))?;
    let readme = fs::read_to_string(packed.folder("docent")?.join("README.md"))?;
    fs::write(folder.join("src/main.rs"), program(&readme).context("the README has no Rust program")?)?;
    fs::write(folder.join("Cargo.toml"), manifest(packed))?;
    // The command has the dependencies that `cargo install` would choose.
    let command = packed.empty("command")?;
    run(Command::new("cp").arg("-rT").arg(packed.folder("docent-cli")?).arg(&command))?;
    add_patches(&command, packed)?;
    let _ = fs::remove_file(command.join("Cargo.lock"));
    run(packed.oldest.cargo("run --quiet").current_dir(&folder))?;
    run(packed.oldest.cargo("check --quiet").current_dir(&command))?;
    run(cargo("run --quiet").current_dir(&folder))?;
    run(cargo("check --quiet").current_dir(&command))
}

fn manifest(packed: &Packed) -> String {
    format!(
        "[package]\nname = \"fresh\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         docent = {{ version = \"*\", features = [\"server\"] }}\n\
         tokio = {{ version = \"1\", features = [\"full\"] }}\n\n{}",
        packed.patches()
    )
}

fn add_patches(folder: &Path, packed: &Packed) -> Result<()> {
    let path = folder.join("Cargo.toml");
    let manifest = fs::read_to_string(&path)?;
    Ok(fs::write(path, format!("{manifest}\n[workspace]\n\n{}", packed.patches()))?)
}

/// Returns the first Rust program of a page.
fn program(page: &str) -> Option<&str> {
    let blocks = page.split("\n```rust\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0));
    blocks.into_iter().find(|block| block.contains("fn main()"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_whole_program_is_found() {
        let page = "# A\n\n```rust\nlet a = 1;\n```\n\n```rust\nfn main() {}\n```\n\nEnd.\n";
        assert_eq!(program(page), Some("fn main() {}"));
        assert_eq!(program("# A\n"), None);
    }
}
