# frozen_string_literal: true

module DQ
  # Sees the headers of every message on both sides. Inherit from it, and add an object to the middleware of a {Client}.
  class Middleware
    # @return [Array<Middleware>] the middleware that traces, if the gem opentelemetry-api is loaded
    def self.installed = defined?(OpenTelemetry::Trace) ? [Tracing.new] : []

    # May add headers to a message that is pushed.
    # @param queue [String]
    # @param headers [Hash{String => String}]
    def push(queue, headers); end

    # Is called around the handler of a message, and has to yield.
    # @param message [Message]
    def handle(_message) = yield
  end

  # Adds trace context to what is pushed, and makes a span for each attempt: the first one continues the trace of the
  # producer, a retry begins a trace of its own with a link to it.
  class Tracing < Middleware
    def push(_queue, headers)
      carrier = {}
      OpenTelemetry.propagation.inject(carrier)
      carrier.each { |name, value| headers[name] ||= value }
    end

    def handle(message, &block)
      producer = OpenTelemetry.propagation.extract(message.headers)
      parent = message.attempt > 1 ? OpenTelemetry::Context::ROOT : producer
      OpenTelemetry::Context.with_current(parent) do
        tracer.in_span("process #{message.queue}", kind: :consumer, links: links(message, producer),
                                                   attributes: attributes(message), &block)
      end
    end

    private

    def tracer = OpenTelemetry.tracer_provider.tracer("dq-client", VERSION)

    def links(message, producer)
      return [] unless message.attempt > 1

      context = OpenTelemetry::Trace.current_span(producer).context
      context.valid? ? [OpenTelemetry::Trace::Link.new(context)] : []
    end

    def attributes(message)
      {
        "messaging.system" => "dq", "messaging.operation.type" => "process",
        "messaging.destination.name" => message.queue, "messaging.message.id" => message.id,
        "messaging.dq.attempt" => message.attempt
      }
    end
  end
end
