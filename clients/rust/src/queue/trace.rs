//! The context of traces, in the headers of messages.

use super::Headers;
use opentelemetry::global::get_text_map_propagator;
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::TraceContextExt;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

struct Carrier<'a>(&'a mut Headers);

/// The longest value of a header.
const LONGEST: usize = 4096;

impl Injector for Carrier<'_> {
    /// A value that the server would refuse, such as large baggage, is left out.
    fn set(&mut self, name: &str, value: String) {
        if self.0.get(name).is_none() && value.len() <= LONGEST {
            self.0.set(name, value);
        }
    }
}

impl Extractor for Headers {
    fn get(&self, name: &str) -> Option<&str> {
        self.text(name)
    }

    fn keys(&self) -> Vec<&str> {
        self.iter().filter_map(|(name, _)| std::str::from_utf8(name).ok()).collect()
    }
}

/// Adds the context of the current span to the headers of a push, unless the program has set them.
pub(crate) fn inject(headers: &mut Headers) {
    let context = Span::current().context();
    get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut Carrier(headers)));
}

/// Lets the span of a handler continue the trace of the push. A retry begins a trace of its own that links to it:
/// otherwise a trace would last as long as the retries.
pub(crate) fn follow(span: &Span, headers: &Headers, attempt: u32) {
    let pushed = get_text_map_propagator(|propagator| propagator.extract(headers));
    if attempt > 1 {
        span.add_link(pushed.span().span_context().clone());
    } else if let Err(error) = span.set_parent(pushed) {
        tracing::debug!(%error, "the span of a handler has no parent");
    }
}
