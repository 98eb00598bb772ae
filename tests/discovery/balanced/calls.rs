//! Single requests through connections with scripted behaviour.

use crate::scene::{orders, registry, until_ids};
use docent::discovery::{
    AttemptPolicy, Balanced, CallError, Outcome, OutlierPolicy, PickPolicy, RetryBudget,
};
use docent::{Client, Instance, Service};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{PATIENCE, connect, soon};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tower::limit::ConcurrencyLimit;
use tower::{Service as _, ServiceExt};

/// A request with a word that determines how it is answered.
#[derive(Clone)]
struct Call(&'static str);

/// A connection that answers with its instance's id, or behaves as the request determines.
#[derive(Clone)]
struct Link {
    id: String,
    stage: Arc<Stage>,
    is_broken: Arc<AtomicBool>,
    _alive: Arc<()>,
}

/// Shared state of all connections.
struct Stage {
    /// Number of connections that were started, and number of connections that were established.
    started: AtomicUsize,
    made: AtomicUsize,
    /// While false, connection attempts wait.
    open: watch::Sender<bool>,
    /// Each connection holds a clone, which counts the living connections.
    alive: Arc<()>,
    /// Ids of the instances at which requests arrived.
    arrived: mpsc::UnboundedSender<String>,
    /// Permits for waiting requests to continue.
    may_continue: Semaphore,
    is_broken: Arc<AtomicBool>,
}

impl Stage {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let stage = Self {
            started: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            open: watch::Sender::new(true),
            alive: Arc::default(),
            arrived,
            may_continue: Semaphore::new(0),
            is_broken: Arc::default(),
        };
        (Arc::new(stage), arrivals)
    }

    async fn connect(self: Arc<Self>, instance: Arc<Instance<String>>) -> Result<Link, Error> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        if instance.payload.as_deref() == Some("away") {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        // Connections created from now on work.
        self.is_broken.store(false, Ordering::Relaxed);
        let (is_broken, alive) = (Arc::clone(&self.is_broken), Arc::clone(&self.alive));
        Ok(Link { id: instance.id.clone(), stage: self, is_broken, _alive: alive })
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    fn alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }
}

impl tower::Service<Call> for Link {
    type Response = String;
    type Error = Error;
    type Future = BoxFuture<'static, Result<String, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.is_broken.load(Ordering::Relaxed) {
            true => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
            false => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, Call(request): Call) -> Self::Future {
        let Self { id, stage, .. } = self.clone();
        async move {
            let _ = stage.arrived.send(id.clone());
            if request.contains("wait") {
                let permit = stage.may_continue.acquire().await.map_err(Error::other)?;
                permit.forget();
            }
            match id.as_str() {
                "fails" => Err(Error::other("planted")),
                "refuses" => Err(Error::from(ErrorKind::ConnectionRefused)),
                "busy" => Ok("503".to_owned()),
                _ => Ok(id),
            }
        }
        .boxed()
    }
}

type Orders = Balanced<String, Link, Call>;

fn balanced(view: &Service<String>, stage: &Arc<Stage>) -> Orders {
    let stage = Arc::clone(stage);
    view.balanced(move |instance| Arc::clone(&stage).connect(instance))
        .retry_if(|Call(request)| request.starts_with("safe"))
        .classify(|answer| match answer {
            Ok(answer) => Outcome::of_status(answer.parse().unwrap_or(200)),
            Err(error) => Outcome::of_error(error),
        })
}

async fn call_once(orders: &Orders, request: &'static str) -> Result<String, CallError<Error>> {
    soon(orders.clone().oneshot(Call(request))).await
}

/// Returns the outcomes of 20 requests.
async fn ends(orders: &Orders, request: &'static str) -> BTreeSet<String> {
    let mut ends = BTreeSet::new();
    for _ in 0..20 {
        ends.insert(call_once(orders, request).await.unwrap_or_else(|error| error.to_string()));
    }
    ends
}

fn set<const N: usize>(ends: [&str; N]) -> BTreeSet<String> {
    ends.map(str::to_owned).into()
}

async fn open(client: &Client, policy: PickPolicy, outlier_policy: OutlierPolicy) -> Service<String> {
    let builder = registry(client).service_builder("orders").policy(policy).outlier_policy(outlier_policy);
    soon(builder.open()).await.unwrap()
}

/// Opens a view that never sets an instance aside.
async fn patient(client: &Client) -> Service<String> {
    open(client, PickPolicy::RoundRobin, OutlierPolicy::never()).await
}

/// Opens a view that sets an instance aside at its first failure.
async fn strict(client: &Client) -> Service<String> {
    open(client, PickPolicy::PowerOfTwo, OutlierPolicy::default().threshold(1)).await
}

const FAILED: &str = "call: instance \"fails\" of service \"orders\" failed: planted";

both_backends_in_real_time! {
    async fn one_connection_serves_all_and_is_closed_when_its_instance_is_removed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let orders_service = balanced(&view, &stage);
        stage.open.send_replace(false);
        let calls: Vec<_> = (0..3).map(|_| {
            let orders = orders_service.clone();
            tokio::spawn(async move { call_once(&orders, "one").await })
        }).collect();
        soon(async { while stage.started.load(Ordering::Relaxed) == 0 { docent_tests::pause().await; } }).await;
        // When the call that started the connection is dropped, another call continues it.
        let mut calls = calls.into_iter();
        calls.next().unwrap().abort();
        soon(async { while stage.started.load(Ordering::Relaxed) == 1 { docent_tests::pause().await; } }).await;
        stage.open.send_replace(true);
        for call in calls {
            assert_eq!(soon(call).await.unwrap().unwrap(), "1");
        }
        assert_eq!((stage.made(), stage.alive()), (1, 1));
        // The connection is closed with its instance, even without a further request.
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
        assert_eq!(call_once(&orders_service, "one").await.unwrap(), "1");
        assert_eq!((stage.made(), stage.alive()), (2, 1));
        soon(one.deregister()).await.unwrap();
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
        until_ids(&view, &[]).await;
        let _again = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_ids(&view, &["1"]).await;
        assert_eq!(call_once(&orders_service, "one").await.unwrap(), "1");
        // The view and its calls keep working without ZooKeeper. The last clone closes the connection.
        soon(other.close()).await;
        assert_eq!(call_once(&orders_service, "one").await.unwrap(), "1");
        drop(orders_service);
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
    }

    async fn a_broken_connection_is_replaced_and_does_not_count_against_its_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = strict(&other).await;
        let (stage, _) = Stage::new();
        let orders_service = balanced(&view, &stage);
        assert_eq!(ends(&orders_service, "one").await, set(["1", "2"]));
        stage.is_broken.store(true, Ordering::Relaxed);
        assert_eq!(ends(&orders_service, "one").await, set(["1", "2"]));
        assert!(stage.made() > 2);
    }

    async fn attempts_at_further_instances_have_one_budget_for_all_requests(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("fails"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("refuses"))).await.unwrap();
        let view = patient(&other).await;
        until_ids(&view, &["fails", "refuses"]).await;
        let (stage, mut arrived) = Stage::new();
        let calls = balanced(&view, &stage);
        let budget = RetryBudget::default().percent(10).min_per_second(0);
        let (bounded, free) = (calls.clone().retry_budget(budget), calls.clone().retry_budget(None));
        // With the default budget, all of the few requests after a start may be retried on another instance.
        for (service, attempts) in [(bounded, 100..=110), (free, 200..=200), (calls, 200..=200)] {
            let clones = [service.clone(), service];
            for number in 0..100 {
                assert!(call_once(&clones[number % 2], "safe").await.is_err());
            }
            let count = std::iter::from_fn(|| arrived.try_recv().ok()).count();
            assert!(attempts.contains(&count), "{count} attempts, expected {attempts:?}");
        }
    }

    async fn a_request_is_retried_on_another_instance_if_it_is_safe_or_was_never_sent(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _good = soon(registry(&client).register(orders("good"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let calls = balanced(&view, &stage);
        let fails = soon(registry(&client).register(orders("fails"))).await.unwrap();
        until_ids(&view, &["fails", "good"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["good", FAILED]));
        assert_eq!(ends(&calls, "safe").await, set(["good"]));
        let once = calls.clone().attempt_policy(AttemptPolicy::default().limit(1));
        assert_eq!(ends(&once, "safe").await, set(["good", FAILED]));
        soon(fails.deregister()).await.unwrap();
        // A response may count as a failure as well.
        let busy = soon(registry(&client).register(orders("busy"))).await.unwrap();
        until_ids(&view, &["busy", "good"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["503", "good"]));
        assert_eq!(ends(&calls, "safe").await, set(["good"]));
        soon(busy.deregister()).await.unwrap();
        // The client never established this connection.
        let refuses = soon(registry(&client).register(orders("refuses"))).await.unwrap();
        until_ids(&view, &["good", "refuses"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["good"]));
        soon(refuses.deregister()).await.unwrap();
        // The connection maker fails, so even a request that cannot be cloned is sent elsewhere.
        let unreachable = soon(registry(&client).register(orders("away").payload("away".to_owned()))).await.unwrap();
        until_ids(&view, &["away", "good"]).await;
        let plain: Orders = {
            let stage = Arc::clone(&stage);
            view.balanced(move |instance| Arc::clone(&stage).connect(instance))
        };
        assert_eq!(ends(&plain, "unsafe").await, set(["good"]));
        drop(unreachable);
    }

    async fn the_last_failure_is_returned_when_no_other_instance_remains(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let calls = balanced(&view, &stage);
        let none = call_once(&calls, "safe").await.unwrap_err();
        assert!(matches!(none, CallError::NoInstance { .. }) && none.is_retryable());
        // A waiting call is sent to the next instance that appears.
        let waits = calls.clone().attempt_policy(AttemptPolicy::default().wait(PATIENCE));
        let waiting = tokio::spawn(async move { call_once(&waits, "one").await });
        docent_tests::pause().await;
        let fails = soon(registry(&client).register(orders("fails"))).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap().unwrap_err().to_string(), FAILED);
        let failed = call_once(&calls, "safe").await.unwrap_err();
        assert!(failed.may_have_applied() && !failed.is_retryable(), "{failed}");
        soon(fails.deregister()).await.unwrap();
        let _unreachable = soon(registry(&client).register(orders("away").payload("away".to_owned()))).await.unwrap();
        until_ids(&view, &["away"]).await;
        let unreachable = call_once(&calls, "one").await.unwrap_err();
        assert!(matches!(unreachable, CallError::Unreachable { .. }) && !unreachable.may_have_applied(), "{unreachable}");
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_ids(&view, &["1", "away"]).await;
        let short = calls.attempt_policy(AttemptPolicy::default().timeout(Duration::from_millis(50)));
        let late = call_once(&short, "wait").await.unwrap_err();
        assert!(matches!(late, CallError::TimedOut { .. }) && late.may_have_applied(), "{late}");
        assert_eq!(late.to_string(), "call: instance \"1\" of service \"orders\" did not answer within 50ms");
    }

    async fn a_dropped_request_is_neither_a_success_nor_a_failure_and_not_in_flight(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = strict(&other).await;
        let (stage, mut arrivals) = Stage::new();
        let calls = balanced(&view, &stage);
        // Drops the call while its connection is established, and while the request is in flight.
        for polls in 0..6 {
            let mut call = Box::pin(calls.clone().oneshot(Call("wait")));
            for _ in 0..polls {
                assert!(call.as_mut().now_or_never().is_none());
                docent_tests::pause().await;
            }
        }
        let mut call = calls.clone();
        let waiting = tokio::spawn(call.call(Call("wait")));
        let id = soon(async { loop { if let Some(id) = arrivals.recv().await { break id; } } }).await;
        waiting.abort();
        let _ = soon(waiting).await;
        // A leaked in-flight request or a recorded failure would make one instance always win. Neither
        // remains after the call was dropped.
        assert_eq!(ends(&calls, "one").await, set(["1", "2"]), "the dropped call was sent to {id}");
        // While one request is in flight, all other requests are sent to the other instance.
        while arrivals.try_recv().is_ok() {}
        let waiting = tokio::spawn(call.call(Call("wait")));
        let id = soon(arrivals.recv()).await.unwrap();
        assert!(!ends(&calls, "one").await.contains(&id));
        stage.may_continue.add_permits(1);
        assert_eq!(soon(waiting).await.unwrap().unwrap(), id);
    }

    async fn requests_to_an_instance_are_bounded_by_its_connection(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, mut arrivals) = Stage::new();
        let calls: Balanced<String, ConcurrencyLimit<Link>, Call> = view.balanced({
            let stage = Arc::clone(&stage);
            move |instance| Arc::clone(&stage).connect(instance).map(|link| link.map(|link| ConcurrencyLimit::new(link, 2)))
        });
        let waiting: Vec<_> = (0..6).map(|_| tokio::spawn(calls.clone().oneshot(Call("wait")))).collect();
        for _ in 0..3 {
            for _ in 0..2 {
                soon(arrivals.recv()).await.unwrap();
            }
            for _ in 0..20 {
                docent_tests::pause().await;
            }
            assert!(arrivals.try_recv().is_err());
            stage.may_continue.add_permits(2);
        }
        for call in waiting {
            assert_eq!(soon(call).await.unwrap().unwrap(), "1");
        }
    }
}
