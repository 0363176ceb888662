# frozen_string_literal: true

require_relative "test_helper"

# The context of traces, by a stand-in with those methods of opentelemetry-api that are called.
class TracingTest < ServerTest
  Span = Struct.new(:context)
  SpanContext = Struct.new(:id) do
    def valid? = !id.nil?
  end

  # The propagator, the tracer and its provider.
  class StandIn
    attr_reader :spans

    def initialize = @spans = Thread::Queue.new
    def propagation = self
    def tracer_provider = self
    def tracer(_name, _version) = self
    def inject(carrier) = carrier["traceparent"] = Thread.current[:trace]
    def extract(headers) = headers["traceparent"] || "none"

    def in_span(name, kind:, links:, attributes:)
      @spans << [name, kind, Thread.current[:trace], links, attributes["messaging.dq.attempt"]]
      yield
    end
  end

  def setup
    super
    stand_in = @stand_in = StandIn.new
    api = Module.new
    %i[propagation tracer_provider].each { |name| api.define_singleton_method(name) { stand_in } }
    api.const_set(:Context, context)
    api.const_set(:Trace, trace)
    Object.const_set(:OpenTelemetry, api)
    @traced = DQ::Client.new(server.url)
  end

  def teardown
    super
    Object.send(:remove_const, :OpenTelemetry)
  end

  def test_the_first_attempt_continues_the_trace_and_a_retry_has_a_link_to_it
    queue.declare(backoff: [0.05, 0.05])
    work { |message| raise "once more" if message.attempt == 1 }
    Thread.current[:trace] = "trace-1"
    @traced.queue("q").push("x")
    counted("acked", 1)
    first, second = Array.new(2) { @stand_in.spans.pop }
    assert_equal ["process q", :consumer, "trace-1", [], 1], first
    assert_equal ["process q", :consumer, "root", ["trace-1"], 2], second
  end

  private

  def context
    Module.new do
      const_set(:ROOT, "root")
      def self.with_current(context)
        Thread.current[:trace] = context
        yield
      end
    end
  end

  def trace
    Module.new do
      def self.current_span(context) = Span.new(SpanContext.new(context))
      const_set(:Link, Class.new { def self.new(context) = context.id })
    end
  end
end
