use crate::scene::Scene;
use docent::recipe::{ClaimRequest, ClaimResult, Hold, claim_all, hand_out};
use docent::{Client, ConnectionState, CreateMode, ErrorKind};
use docent_battery::Rule;
use docent_proto::OpCode;
use docent_tests::{KIND, soon, until};
use futures_util::poll;
use std::pin::pin;

fn wanted(handed_out: bool) -> ClaimRequest {
    ClaimRequest { claim: "/claim".to_owned(), node: "/item".to_owned(), handed_out, beside_curator: false }
}

async fn draw(client: &Client) -> Option<Hold> {
    claim(client, true).await
}

async fn claim(client: &Client, handed_out: bool) -> Option<Hold> {
    let wanted = wanted(handed_out);
    match soon(claim_all(client, &[wanted], &KIND, "take")).await.unwrap() {
        ClaimResult::All(mut all) => all.pop().map(|(claim, _)| claim),
        _ => None,
    }
}

async fn is_claimed(scene: &Scene) -> bool {
    scene.other.exists("/claim").await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_late_claim_is_refused() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let client = scene.client.clone();
    let drawn = scene.begin(async move { draw(&client).await }).await;
    let claim = soon(drawn).await.unwrap().unwrap();
    soon(claim.release()).await.unwrap();
    scene.deliver();
    assert!(!is_claimed(&scene).await);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_given_up_before_it_was_sent_is_never_sent() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let (client, proxy) = scene.at_leader().await;
    // Creates the session's marker.
    client.create("/marked", "", CreateMode::Ephemeral).await.unwrap();
    proxy.cut().await;
    soon(client.state().reached(ConnectionState::Suspended)).await;
    assert!(poll!(pin!(draw(&client))).is_pending());
    proxy.heal().await.unwrap();
    soon(client.sync("/")).await.unwrap();
    soon(client.close()).await;
    assert_eq!(scene.other.exists("/item").await.unwrap().unwrap().cversion, 0, "a child existed");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_with_claims_under_way_leaves_nothing() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let (client, proxy) = scene.at_leader().await;
    client.create("/marked", "", CreateMode::Ephemeral).await.unwrap();
    let held = proxy.add(Rule::on(OpCode::Multi).hold());
    let drawing = tokio::spawn({
        let client = client.clone();
        let wanted = wanted(true);
        async move { claim_all(&client, &[wanted], &KIND, "take").await.map(drop) }
    });
    soon(held.fired()).await;
    let closing = tokio::spawn(async move { client.close().await });
    assert_eq!(soon(drawing).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    proxy.heal().await.unwrap();
    soon(closing).await.unwrap();
    until(async || !is_claimed(&scene).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_release_does_not_affect_the_next_claim() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let claim = draw(&scene.client).await.unwrap();
    let released = scene.begin(async move { claim.release().await }).await;
    soon(released).await.unwrap().unwrap();
    let next = draw(&scene.other).await.unwrap();
    scene.deliver();
    assert!(is_claimed(&scene).await);
    soon(next.verify()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_late_release_of_a_claim_without_proof_does_not_affect_the_next_claim() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let claim = draw(&scene.client).await.unwrap();
    let proof = scene.other.children("/item").await.unwrap().names.remove(0);
    scene.other.delete(&format!("/item/{proof}"), None).await.unwrap();
    // The claim learns of its loss from a watch, or from the servers, which refuse the release.
    let released = scene.begin(async move { drop(claim.release().await) }).await;
    soon(released).await.unwrap();
    until(async || !is_claimed(&scene).await).await;
    let next = draw(&scene.other).await.unwrap();
    scene.deliver();
    soon(next.verify()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_another_client_re_created_during_a_lost_link_is_neither_held_nor_ended() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    for end in [false, true] {
        let (client, proxy) = scene.at_leader().await;
        let claim = draw(&client).await.unwrap();
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Suspended)).await;
        scene.other.delete("/claim", None).await.unwrap();
        let next = draw(&scene.other).await.unwrap();
        let ended = async {
            match end {
                true => Hold::end_all("ack", vec![claim], &["/item".to_owned()], client.transaction())
                    .await
                    .map(drop),
                false => {
                    let verified = claim.verify().await;
                    assert!(verified.is_err() && !claim.is_held());
                    drop(claim);
                    client.sync("/").await.unwrap();
                    verified
                }
            }
        };
        let (ended, healed) = soon(async { tokio::join!(ended, proxy.heal()) }).await;
        healed.unwrap();
        let error = ended.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
        assert!(is_claimed(&scene).await, "the next claim must exist");
        soon(next.verify()).await.unwrap();
        soon(next.release()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_release_of_a_claim_made_ahead_ends_no_delivery() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let ahead = claim(&scene.client, false).await.unwrap();
    let released = scene.begin(async move { ahead.release().await }).await;
    soon(released).await.unwrap().unwrap();
    let next = draw(&scene.other).await.unwrap();
    scene.deliver();
    assert!(is_claimed(&scene).await);
    soon(next.verify()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_late_hand_out_is_refused() {
    let scene = Scene::start().await;
    scene.other.create("/item", "", CreateMode::Persistent).await.unwrap();
    let ahead = claim(&scene.client, false).await.unwrap();
    let client = scene.client.clone();
    let handed_out = scene.begin(async move {
        hand_out(&client, &[&ahead], "take").await.unwrap();
        ahead
    });
    let delivery = soon(handed_out.await).await.unwrap();
    soon(delivery.verify()).await.unwrap();
    soon(delivery.release()).await.unwrap();
    let next = draw(&scene.other).await.unwrap();
    scene.deliver();
    soon(next.verify()).await.unwrap();
    assert_eq!(scene.other.children("/item").await.unwrap().names.len(), 1, "exactly one proof must exist");
}
