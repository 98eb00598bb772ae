//! Spans of acquires, terms, deliveries, publications and requests.

use docent::{Config, Election, Mutex, Queue};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{builder, soon};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex as Lock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// A span: its name, its parent, and its fields.
#[derive(Debug, Clone, Default)]
struct Seen {
    name: &'static str,
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// Spans of this thread.
#[derive(Clone, Default)]
struct Spans(Arc<Lock<BTreeMap<u64, Seen>>>);

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.current_span().metadata().map(tracing::Metadata::name);
        let mut seen = Seen { name: attributes.metadata().name(), parent, ..Seen::default() };
        attributes.record(&mut seen);
        // Span ids are reused.
        let mut spans = self.0.lock().unwrap();
        let number = spans.len() as u64 + (1 << 32);
        if let Some(ended) = spans.insert(id.into_u64(), seen) {
            spans.insert(number, ended);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        if let Some(seen) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            values.record(seen);
        }
    }
}

impl Spans {
    /// Returns the only span with this name for which `is` holds.
    fn find(&self, name: &str, is: impl Fn(&Seen) -> bool) -> Seen {
        let all = self.0.lock().unwrap();
        let found: Vec<_> = all.values().filter(|seen| seen.name == name && is(seen)).collect();
        assert_eq!(found.len(), 1, "{name}: {found:#?} in {all:#?}");
        found[0].clone()
    }
}

both_backends_in_real_time! {
    async fn acquires_terms_deliveries_publications_and_requests_have_spans(backend: Backend) {
        let spans = Spans::default();
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let _another = tracing::Dispatch::new(tracing_subscriber::registry());
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        let _listening = tracing::subscriber::set_default(subscriber);
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).label("shop").connect().await.unwrap();

        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let acquire = spans.find("acquire", |seen| seen.fields["docent.path"] == "/lock");
        assert_eq!(acquire.fields["docent.fence"], guard.fence().to_string());
        assert_eq!((acquire.fields["docent.recipe"].as_str(), acquire.fields["docent.client"].as_str()), ("mutex", "shop"));

        let inner = client.clone();
        let work = |_| { let inner = inner.clone(); async move { inner.get("/").await.map(drop)?; Err::<(), _>(std::io::Error::other("enough").into()) } };
        let done: Result<(), Box<dyn std::error::Error>> = soon(Election::new(&client, "/leader").unwrap().run(work)).await;
        assert_eq!(done.unwrap_err().to_string(), "enough");
        let term = spans.find("term", |_| true);
        assert_eq!((term.fields["docent.path"].as_str(), term.fields["docent.end"].as_str()), ("/leader", "failed"));
        let request = spans.find("request", |seen| seen.parent == Some("term") && seen.fields["db.operation.name"] == "get");
        assert_eq!((request.fields["docent.path"].as_str(), request.fields["docent.outcome"].as_str()), ("/", "answered"));

        let queue = Queue::<u64>::new(&client, "/jobs").unwrap();
        soon(queue.put(&7)).await.unwrap();
        let put = spans.find("publish", |seen| seen.fields["messaging.destination.name"] == "/jobs");
        assert_eq!((put.fields["otel.kind"].as_str(), put.fields["messaging.batch.message_count"].as_str()), ("producer", "1"));
        let delivery = soon(queue.take()).await.unwrap();
        let span = delivery.span().clone();
        let name = delivery.name().to_owned();
        soon(client.get("/").instrument(span)).await.unwrap();
        soon(delivery.ack()).await.unwrap();
        let delivery = spans.find("delivery", |_| true);
        assert_eq!((delivery.fields["messaging.message.id"].as_str(), delivery.fields["docent.end"].as_str()), (name.as_str(), "acknowledged"));
        spans.find("request", |seen| seen.parent == Some("delivery"));

        let limits = Config::<u64>::new(&client, "/limits").unwrap();
        soon(limits.publish(&7)).await.unwrap();
        let publish = spans.find("publish", |seen| seen.fields["messaging.destination.name"] == "/limits");
        assert_eq!(publish.fields["docent.version"], "0");
        soon(client.close()).await;
    }
}
