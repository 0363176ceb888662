//! The feature `otel`: traces travel with messages.

use crate::support::{eventually, Server};
use dq_client::{Client, Context, Failure, Worker};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use std::time::Duration;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn a_handler_continues_the_trace_of_its_push_and_a_retry_links_to_it() {
    let server = Server::start();
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("dq"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(&server.url()).unwrap();
        let push = async { client.queue::<String>("mail").push(&"hello".to_owned()).await.unwrap() };
        push.instrument(tracing::info_span!("request")).await;
        let handler = |_: String, context: Context| async move {
            if context.attempt() == 1 {
                return Err(Failure::retry_after(Duration::ZERO, "not yet"));
            }
            Ok(())
        };
        let running = Worker::new(client.clone()).queue("mail", 1, handler).start().unwrap();
        let ended = || exporter.get_finished_spans().unwrap().iter().filter(|span| span.name == "message").count();
        eventually("both attempts have ended", || ended() == 2);
        running.stop();
        running.join().await;
    });
    let spans = exporter.get_finished_spans().unwrap();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let (request, attempts) = (named("request").remove(0), named("message"));
    assert_eq!(attempts[0].span_context.trace_id(), request.span_context.trace_id());
    assert_eq!(attempts[0].parent_span_id, request.span_context.span_id());
    assert_ne!(attempts[1].span_context.trace_id(), request.span_context.trace_id());
    assert_eq!(attempts[1].links.links[0].span_context.span_id(), request.span_context.span_id());
}
