use super::{Client, Stage};
use std::future::pending;

/// Waits until the [shutdown](Client::shutdown) of `client` has come to `stage`: for recipes that end what
/// they have under way then. A client that is closed without one never comes to any.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn stage_reached(client: &Client, stage: Stage) {
    let mut stages = client.shared().stages.subscribe();
    if stages.wait_for(|reached| *reached >= stage).await.is_err() {
        pending::<()>().await;
    }
}
