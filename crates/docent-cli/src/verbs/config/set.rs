use super::arguments::Set;
use super::failure::{check_json, missing};
use super::shown::Shown;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::input;
use bytes::Bytes;
use docent::config::{Config, Snapshot};

/// Returns the value to publish: from the arguments, a file or standard input.
pub(super) async fn value(arguments: &Set) -> Result<Bytes, Failure> {
    let value = match (&arguments.value, &arguments.file) {
        (Some(value), _) => value.clone().into(),
        (None, Some(file)) => input::file(file)?.into(),
        (None, None) => Bytes::from(input::all().await?),
    };
    check_json(&value, arguments.json)?;
    Ok(value)
}

/// Publishes a value.
pub(super) async fn run(app: &App, config: &Config<Bytes>, arguments: &Set, value: &Bytes) -> Outcome {
    let published = match (arguments.if_version, arguments.if_absent) {
        (Some(version), _) => config.publish_if(value, &seen(config, version).await?).await?,
        (None, true) => config.publish_new(value).await?,
        (None, false) => config.publish(value).await?,
    };
    print_published(app, config.path(), &published)?;
    Ok(Ending::Done)
}

/// Reports the version of a published value, as JSON or as a remark.
pub(super) fn print_published(app: &App, path: &str, published: &Snapshot<Bytes>) -> Result<(), Failure> {
    if app.output.is_json() {
        app.output.json(&Shown::of(path, published))?;
    } else if let Some(revision) = published.revision() {
        app.output.remark(format!("published {path} as version {}", revision.version));
    }
    Ok(())
}

/// Returns the current value if it has this version.
async fn seen(config: &Config<Bytes>, version: i32) -> Result<Snapshot<Bytes>, Failure> {
    let present = config.get().await?.ok_or_else(|| missing(config.path()))?;
    match present.revision() {
        Some(revision) if revision.version == version => Ok(present),
        revision => {
            let now = revision.map_or(-1, |revision| revision.version);
            Err(Failure::conflict(format!(
                "{} has version {now}, not {version}: nothing was published",
                config.path()
            )))
        }
    }
}
