use super::plan::{Present, plan};
use super::published::Published;
use super::registry;
use crate::cargo::cargo;
use anyhow::{Result, bail};
use std::thread::sleep;
use std::time::Duration;

/// Number of times that a crate is tried again after crates.io refused it because of its limit.
const RETRIES: usize = 3;
const WAIT: Duration = Duration::from_secs(10 * 60);

/// Publishes all packages that crates.io does not have yet.
///
/// # Errors
///
/// Fails at the first package that crates.io refuses. A repeated run resumes with this package.
pub(super) fn run(published: &Published) -> Result<()> {
    let mut present = Vec::new();
    for name in published.names() {
        present.push((name, find(name, &published.version())?));
    }
    for (name, _) in present.iter().filter(|(_, present)| *present == Present::Version) {
        println!("{name} {} is already published", published.version());
    }
    let steps = plan(&present);
    let minutes = steps.iter().map(|step| step.wait.as_secs() / 60).sum::<u64>();
    println!("publishing {} crates; the limit for new crates adds {minutes} minutes", steps.len());
    for step in steps {
        if !step.wait.is_zero() {
            println!("waiting {} minutes before {}", step.wait.as_secs() / 60, step.name);
            sleep(step.wait);
        }
        publish(&step.name)?;
    }
    Ok(())
}

fn find(name: &str, version: &str) -> Result<Present> {
    Ok(match registry::newest(name)? {
        None => Present::Nothing,
        Some(_) if registry::has(name, version)? => Present::Version,
        Some(_) => Present::Crate,
    })
}

/// Publishes one package. Cargo returns after the index has it, so the next package can depend on it.
fn publish(name: &str) -> Result<()> {
    for attempt in 0..=RETRIES {
        let output = cargo(&format!("publish --no-verify --package {name}")).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            println!("published {name}");
            return Ok(());
        }
        if !is_limited(&error) || attempt == RETRIES {
            bail!("cannot publish {name}; a repeated run resumes here:\n{}", error.trim());
        }
        println!("crates.io limits new crates; trying {name} again in {} minutes", WAIT.as_secs() / 60);
        sleep(WAIT);
    }
    Ok(())
}

/// Returns true if crates.io refused a crate because there were too many before.
fn is_limited(error: &str) -> bool {
    error.contains("429") || error.contains("published too many")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_because_of_the_limit_is_recognised() {
        let error = "error: failed to publish to registry\n\nCaused by:\n  the remote server responded with an error (status 429 Too Many Requests): You have published too many new crates in a short period of time.";
        assert!(is_limited(error));
        assert!(!is_limited("error: the remote server responded with an error (status 403 Forbidden)"));
    }
}
