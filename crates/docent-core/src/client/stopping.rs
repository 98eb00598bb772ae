use super::{Client, Stage};
use std::future::pending;

/// Waits until the [shutdown](Client::shutdown) of `client` has reached `stage`, for recipes that then end
/// their work. A client that is closed without a shutdown never reaches a stage.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn stage_reached(client: &Client, stage: Stage) {
    let mut stages = client.shared().stages.subscribe();
    if stages.wait_for(|reached| *reached >= stage).await.is_err() {
        pending::<()>().await;
    }
}
