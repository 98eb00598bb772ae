//! Callers and providers of Apache's Dubbo SDK for Python, beside gRPC servers and channels that Docent
//! registers and balances. Triple's unary calls have gRPC's wire format.

use crate::calls::until_answered_by;
use crate::processes::{peer, provider, until_containers_were_checked};
use docent::discovery::{AttemptPolicy, BalancedChannel, RegistryLayout, Service};
use docent::{Client, Registry};
use docent_battery::packages::DUBBO;
use docent_battery::peer::{Peer, PeerRecipe};
use docent_battery::{Backend, Port, TestServer, both_backends_with_packages};
use docent_tests::{PATIENCE, connect, pause, soon, until};
use serde_json::Value;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const SERVICE: &str = "grpc.health.v1.Health";

fn registry(client: &Client) -> Registry {
    Registry::builder(client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap()
}

/// A provider of the SDK in a separate process.
struct SdkProvider {
    peer: Peer,
    port: Port,
}

impl SdkProvider {
    async fn start(server: &TestServer) -> Self {
        Self { peer: peer(&DUBBO, "triple.py", server, &[]).await, port: Port::claim().unwrap() }
    }

    /// Registers the provider and serves.
    async fn serve(&self, number: i32) -> PeerRecipe<'_> {
        self.peer.make(&format!("provider {number} {}", self.port.address().port())).await
    }
}

/// Calls a provider through the SDK. Returns the number of the provider, or why the call failed.
async fn call_by_sdk(caller: &PeerRecipe<'_>) -> Result<i32, String> {
    let words = caller.done("call").await;
    words[0].parse().map_err(|_| words.join(" "))
}

/// Calls a provider through Docent's channel.
async fn call(channel: &BalancedChannel<Value>) -> Result<i32, String> {
    let request = HealthCheckRequest { service: "orders".to_owned() };
    let answer = soon(HealthClient::new(channel.clone()).check(request)).await;
    answer.map(|response| response.into_inner().status).map_err(|status| status.to_string())
}

/// Opens a channel that waits while no provider is registered, and resends calls without limit.
fn channel(view: &Service<Value>) -> BalancedChannel<Value> {
    let policy = AttemptPolicy::default().wait(PATIENCE);
    view.channel().attempt_policy(policy).retry_if(|_| true).retry_budget(None)
}

both_backends_with_packages! {
    async fn dubbos_caller_follows_providers_of_docent(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut first = provider(&server, 1, "tri").await;
        let (second, third) = (provider(&server, 2, "tri").await, provider(&server, 3, "tri").await);
        let sdk = peer(&DUBBO, "triple.py", &server, &[]).await;
        let caller = sdk.make("caller").await;
        until_answered_by(&[1, 2, 3], async || call_by_sdk(&caller).await).await;

        first.kill();
        until_answered_by(&[2, 3], async || call_by_sdk(&caller).await).await;

        // The SDK does not read the parameter `enabled`, so a provider must serve until it is deregistered.
        let order = second.make("order").await;
        order.done("disable").await;
        let view = soon(registry(&client).typed_service::<Value>(SERVICE)).await.unwrap();
        until(async || view.instances().get("2").is_some_and(|second| !second.enabled)).await;
        until_answered_by(&[2, 3], async || call_by_sdk(&caller).await).await;
        order.done("deregister").await;
        until_answered_by(&[3], async || call_by_sdk(&caller).await).await;

        third.make("order").await.done("deregister").await;
        until(async || call_by_sdk(&caller).await.is_err_and(|error| error.contains("No provider"))).await;
        until_containers_were_checked(&client).await;
        let _fourth = provider(&server, 4, "tri").await;
        until_answered_by(&[4], async || call_by_sdk(&caller).await).await;
    }

    async fn docents_channel_follows_providers_of_dubbo(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut first = SdkProvider::start(&server).await;
        let (second, third) = (SdkProvider::start(&server).await, SdkProvider::start(&server).await);
        let _first = first.serve(1).await;
        let (serves_second, serves_third) = (second.serve(2).await, third.serve(3).await);
        let view = soon(registry(&client).typed_service::<Value>(SERVICE)).await.unwrap();
        let channel = channel(&view);
        until_answered_by(&[1, 2, 3], async || call(&channel).await).await;
        for instance in view.instances().iter() {
            let payload = instance.payload.clone().unwrap();
            assert_eq!((&payload["protocol"], &payload["service"]), (&"tri".into(), &SERVICE.into()));
        }

        // No call fails, before and after the servers end the session of the killed provider.
        first.peer.kill();
        let without_failure = async || Ok(call(&channel).await.unwrap());
        until_answered_by(&[2, 3], without_failure).await;
        until(async || view.instances().iter().count() == 2).await;
        until_answered_by(&[2, 3], without_failure).await;

        serves_second.done("deregister").await;
        until_answered_by(&[3], without_failure).await;

        serves_third.done("deregister").await;
        until(async || view.instances().iter().count() == 0).await;
        until_containers_were_checked(&client).await;
        let waiting = tokio::spawn({
            let channel = channel.clone();
            async move { call(&channel).await }
        });
        pause().await;
        assert!(!waiting.is_finished());
        let fourth = SdkProvider::start(&server).await;
        let _fourth = fourth.serve(4).await;
        // The SDK registers a provider before it listens, so a call may find the provider and not reach it.
        let answer = soon(waiting).await.unwrap();
        assert!(answer == Ok(4) || answer.as_ref().is_err_and(|error| error.contains("cannot reach")), "{answer:?}");
        until_answered_by(&[4], async || call(&channel).await).await;
    }

    async fn a_caller_of_either_uses_providers_of_both(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let ours = provider(&server, 1, "tri").await;
        let theirs = SdkProvider::start(&server).await;
        let serves_theirs = theirs.serve(2).await;
        let sdk = peer(&DUBBO, "triple.py", &server, &[]).await;
        let caller = sdk.make("caller").await;
        until_answered_by(&[1, 2], async || call_by_sdk(&caller).await).await;

        // A provider of the SDK serves only the connection that was opened last, so the callers take turns.
        drop(sdk);
        let view = soon(registry(&client).typed_service::<Value>(SERVICE)).await.unwrap();
        let channel = channel(&view);
        until_answered_by(&[1, 2], async || call(&channel).await).await;
        serves_theirs.done("deregister").await;
        until_answered_by(&[1], async || Ok(call(&channel).await.unwrap())).await;
        ours.make("order").await.done("deregister").await;
        until(async || view.instances().all().len() == 0).await;
    }
}
