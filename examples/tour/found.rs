use crate::stage::Stage;
use anyhow::ensure;
use docent::{Instance, Registry, Service};
use futures_util::StreamExt;

/// Two servers register their addresses, and a client finds them. One server leaves, and the client continues
/// without a connection.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("A service finds another: the known instances, without a request");
    let base = format!("{}/services", stage.root());
    let (one, other, seeker) =
        (stage.client("server 1").await?, stage.client("server 2").await?, stage.client("seeker").await?);
    let at = |id: &str, port| Instance::new("shop", "10.0.0.7", port).id(id).payload("zone a");
    let leaves = Registry::new(&one, &base)?.register(at("shop-1", 8081)).await?;
    let second = Registry::new(&other, &base)?.register(at("shop-2", 8082)).await?;

    let shops: Service<String> = Registry::new(&seeker, &base)?.typed_service("shop").await?;
    for _ in 0..2 {
        let picked = shops.pick()?;
        stage.print("seeker", format_args!("picked {} at {}", picked.id, picked.uri()?));
        picked.succeeded();
    }
    ensure!(shops.instances().len() == 2, "not both instances were found");

    let mut changes = shops.changes();
    stage.print("server 1", "leaves");
    leaves.deregister().await?;
    while shops.instances().len() > 1 {
        ensure!(changes.next().await.is_some(), "the client was closed");
    }
    stage.print("seeker", "was notified that shop-1 left");
    // ZooKeeper is not queried: the list is available without it.
    seeker.close().await;
    ensure!(shops.pick()?.id == "shop-2" && shops.is_stale(), "the known instances were forgotten");
    stage.print("seeker", "continues with shop-2 without a connection");
    second.deregister().await?;
    one.close().await;
    other.close().await;
    Ok(())
}
