//! Nodes that Dubbo 3 reads besides the instances.

use super::dubbo3;
use crate::texts::Texts;
use bytes::Bytes;
use docent_core::recipe::VersionedNode;
use docent_core::{Client, Error, ErrorKind};

const MAPPING: &str = "/dubbo/mapping";
const METADATA: &str = "/dubbo/metadata";

/// Writes the description of an application's interfaces, and adds the application to the mapping of each.
///
/// # Errors
/// Those of the writes, which can be repeated.
pub(super) async fn write(client: &Client, app: &str, metadata: &Texts) -> Result<(), Error> {
    let Some((revision, description)) = dubbo3::description(app, metadata) else { return Ok(()) };
    let path = format!("{METADATA}/{app}/{revision}");
    change(client, &path, |text| text.is_empty().then(|| description.clone())).await?;
    for interface in dubbo3::interfaces(metadata) {
        change(client, &format!("{MAPPING}/{interface}"), |apps| with_app(apps, app)).await?;
    }
    Ok(())
}

/// Returns the list of applications with `app` added; `None` if it is in the list.
fn with_app(apps: &str, app: &str) -> Option<String> {
    let mut names = apps.split(',').map(str::trim).filter(|name| !name.is_empty());
    if names.clone().any(|name| name == app) {
        return None;
    }
    let first = names.next().is_none();
    Some(if first { app.to_owned() } else { format!("{},{app}", apps.trim_end_matches([',', ' '])) })
}

/// Changes the text of a node by compare and set, until `change` returns `None`.
async fn change(client: &Client, path: &str, change: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
    let mut cas = VersionedNode::new(client, path)?.cas_loop();
    loop {
        let node = cas.versioned();
        let seen = node.read().await?;
        let text = seen.as_ref().map(|seen| String::from_utf8_lossy(&seen.data).into_owned());
        let Some(changed) = change(text.as_deref().unwrap_or_default()) else { return Ok(()) };
        let stat = seen.as_ref().map(|seen| &seen.stat);
        match Box::pin(node.write(stat, &Bytes::from(changed), |with| with)).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            // The next read shows whether the change was applied.
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Err(error) => return Err(error),
        }
        cas.lost().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::with_app;

    #[test]
    fn an_application_is_added_once_and_the_others_stay() {
        for (apps, with) in [
            ("", Some("shop")),
            (" ", Some("shop")),
            ("cart", Some("cart,shop")),
            ("cart,till,", Some("cart,till,shop")),
            ("shop", None),
            ("cart, shop", None),
            ("bookshop", Some("bookshop,shop")),
        ] {
            assert_eq!(with_app(apps, "shop").as_deref(), with, "{apps:?}");
        }
    }
}
