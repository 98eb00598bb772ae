//! Payloads of services that typed readers in Java cannot read together.

use super::finding::Finding;
use docent::client::Client;
use docent_discovery::internals::mixed_payloads;

/// Default parent folder of services.
const SERVICES: &str = "/services";
/// Maximum number of services of a folder that are checked.
const MOST: usize = 64;

/// Checks the services below [`SERVICES`] and below each of `paths`. The root is skipped, because most of its
/// children are no services. What cannot be read is skipped.
pub(super) async fn check(client: &Client, paths: &[String]) -> Vec<Finding> {
    let mut roots = vec![SERVICES];
    roots.extend(paths.iter().map(String::as_str).filter(|path| *path != "/" && *path != SERVICES));
    let mut findings = Vec::new();
    for root in roots {
        let Ok(children) = client.children(root).await else { continue };
        let services = children.names.iter().take(MOST).map(|name| format!("{root}/{name}"));
        for folder in services.chain([root.to_owned()]) {
            findings.extend(check_service(client, &folder).await);
        }
    }
    findings
}

async fn check_service(client: &Client, folder: &str) -> Option<Finding> {
    let mixed = mixed_payloads(client, folder).await.ok()??;
    let text = format!(
        "{folder}: callers in Java that read payloads of the class {} can find no instance, because that of {} is different",
        mixed.class, mixed.other
    );
    let remedy = format!("register {} with the class of {}: {}", mixed.other, mixed.typed, mixed.remedy);
    Some(Finding::warning("payloads", text, remedy))
}
