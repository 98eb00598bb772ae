use crate::stage::Stage;
use anyhow::ensure;
use docent::{Instance, Registry, Service};
use futures_util::StreamExt;

/// Two servers say where they are, and somebody finds them. One leaves, and the finder goes on without a
/// connection.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("A service finds another: who is there, without asking anybody");
    let base = format!("{}/services", stage.root());
    let (one, other, seeker) =
        (stage.client("server 1").await?, stage.client("server 2").await?, stage.client("seeker").await?);
    let at = |id: &str, port| Instance::new("shop", "10.0.0.7", port).id(id).payload("zone a");
    let leaves = Registry::new(&one, &base)?.register(at("shop-1", 8081)).await?;
    let stays = Registry::new(&other, &base)?.register(at("shop-2", 8082)).await?;

    let shops: Service<String> = Registry::new(&seeker, &base)?.service("shop").await?;
    for _ in 0..2 {
        let picked = shops.pick()?;
        stage.say("seeker", format_args!("would ask {} at {}", picked.id, picked.uri()?));
        picked.succeeded();
    }
    ensure!(shops.instances().len() == 2, "not both were found");

    let mut changes = shops.changes();
    stage.say("server 1", "leaves");
    leaves.deregister().await?;
    while shops.instances().len() > 1 {
        ensure!(changes.next().await.is_some(), "the client was closed");
    }
    stage.say("seeker", "sees that shop-1 is gone");
    // ZooKeeper is not asked: the list is there without it.
    seeker.close().await;
    ensure!(shops.pick()?.id == "shop-2" && shops.is_stale(), "what was known is forgotten");
    stage.say("seeker", "goes on with shop-2 when it has no connection any more");
    stays.deregister().await?;
    one.close().await;
    other.close().await;
    Ok(())
}
