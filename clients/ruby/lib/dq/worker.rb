# frozen_string_literal: true

module DQ
  # Takes messages of queues, calls handlers, keeps leases, and reports outcomes.
  #
  #   worker = DQ::Worker.new(grace: 30)
  #   worker.consume("orders", concurrency: 8) { |message| ship(message.json) }
  #   exit worker.run
  #
  # Each queue has two threads, each with a connection: one that pops, and one that reports and extends leases. One more
  # learns of messages that are taken away, one watches the time, one calls the hook and the logger. Each handler runs
  # in a thread of its own. See {Guard} for handlers that keep all of these threads from running.
  class Worker
    # What a worker reports to its hook: kind is :ready; :started, :done, :failed, :rejected, :retried, :lost or
    # :returned of a message; :interrupted, :resumed or :refused of a queue. seconds is how long the message has been
    # here, text the error or the reason, job what the message is, such as the class of its job.
    Event = Struct.new(:kind, :queue, :id, :job, :attempt, :seconds, :text, keyword_init: true)

    CONCURRENCY = 8
    # How long the end of a worker waits for handlers that were told to stop, and for answers to the last outcomes.
    LAST_SECONDS = 1.0

    # @return [Array<Lane>]
    attr_reader :lanes
    # @return [String, nil] the name under which DQ.CONSUMERS lists the worker, once it has started
    attr_reader :consumer
    # @return [Float] until when outcomes are sent again
    attr_reader :patience
    # @return [Guard, nil]
    attr_reader :guard

    # @param client [Client] where its queues are
    # @param lease [Numeric, nil] seconds after which the messages of a worker that is gone are delivered again; nil:
    #   the lease of each message, else that of its queue. It is extended as long as the handler runs.
    # @param grace [Numeric] how many seconds handlers get to end when the worker stops
    # @param time_limit [Numeric, nil] how many seconds a handler may take; then its message has failed, and {TimeLimit}
    #   is raised in its thread
    # @param keep [Symbol] :process: leases are kept by a process, too, while a handler lets no thread run; :thread: by
    #   threads only
    # @param name [String] the end of the name under which DQ.CONSUMERS lists the worker
    # @param logger [Logger]
    # @param hook [#call, nil] is called with each {Event}, from a thread of its own
    def initialize(client: DQ.client, lease: nil, grace: 30, time_limit: nil, keep: :process, name: "worker",
                   logger: DQ.logger, hook: DQ.hook)
      @client = client
      @lease_ms = lease && Words.milliseconds(:lease, positive(:lease, lease))
      @grace = positive(:grace, grace, zero: true)
      @keep = keep.to_sym
      raise ArgumentError, "keep is :process or :thread, not #{keep.inspect}" unless %i[process thread].include?(@keep)

      @time_limit = time_limit && positive(:time_limit, time_limit)
      @name = name
      @announcer = Announcer.new(logger)
      @hook = hook
      @lanes = []
      @threads = {}
      @clock = Clock.new(self)
      @lock = Mutex.new
      @woken = ConditionVariable.new
      @stopping = @closed = @ready = false
      @patience = Float::INFINITY
      @given_back = 0
      @unkept = {}
    end

    # Adds a queue. The block gets each {Message}; what it returns is the result, if the message is retained.
    # @param name [String, Symbol]
    # @param concurrency [Integer] how many of its messages are worked on at a time
    # @param kind [#call, nil] returns what a message is, such as the class of its job, for the log and for hooks
    # @yieldparam message [Message]
    # @return [void]
    def consume(name, concurrency: CONCURRENCY, kind: nil, &handler)
      raise ArgumentError, "a queue needs a block that handles its messages" unless handler
      unless concurrency.is_a?(Integer) && concurrency.positive?
        raise ArgumentError, "the concurrency of a queue is an Integer of at least 1, not #{concurrency.inspect}"
      end
      raise ArgumentError, "the queue #{name} is consumed already" if @lanes.any? { |lane| lane.name == name.to_s }

      @lanes << Lane.new(self, name.to_s, concurrency, @lease_ms, handler, kind)
    end

    # Works until SIGTERM or SIGINT, then stops. A second signal ends the process at once.
    # @return [Integer] the exit code: 0, or 1 if the server has not accepted all outcomes
    def run
      received, signal = IO.pipe
      previous = trap_signals(signal)
      start
      received.read(1)
      stop.zero? ? 0 : 1
    ensure
      previous&.each { |name, handler| trap(name, handler || "DEFAULT") }
      [received, signal].each { |pipe| pipe&.close }
    end

    # Starts the threads.
    # @return [void]
    def start
      raise ArgumentError, "there is no queue to work on" if @lanes.empty?

      DQ.worker = self
      # Programs become daemons, or fork, after they have made a worker: both of these name this process.
      @consumer = Texts.consumer(@name)
      @handlers = Handlers.new(self, @time_limit)
      @announcer.start
      sizes = @lanes.map { |lane| "#{lane.title} (#{lane.concurrency} at a time)" }
      @announcer.log(Logger::INFO, "#{@consumer} works on #{sizes.join(", ")}")
      start_guard if @keep == :process
      @listener = Listener.new(self)
      @fetchers = @lanes.to_h { |lane| [lane, Fetcher.new(self, lane)] }
      @fetchers.each do |lane, fetcher|
        spawn("dq-fetch-#{lane.title}", fetcher)
      end
      @reporters = @lanes.map { |lane| Reporter.new(self, lane) }
      @reporters.zip(@lanes) { |reporter, lane| spawn("dq-report-#{lane.title}", reporter) }
      spawn("dq-listen", @listener)
      spawn("dq-clock", @clock)
    end

    # Takes no further messages, waits for handlers as long as grace says, gives back the others, and ends.
    # @return [Integer] how many outcomes the server has not accepted
    def stop
      request_stop
      last = DQ.now + @grace
      end_pops
      wait_for_handlers(last)
      @lanes.each { |lane| lane.running.each { |delivery| lane.take(delivery, "stopping", Outcome::GIVEN_BACK) } }
      wait_for_handlers(DQ.now + LAST_SECONDS)
      close
      unanswered = @lanes.sum { |lane| lane.reported.size }
      log_end(unanswered)
      @announcer.close(LAST_SECONDS)
      unanswered
    end

    # @return [Boolean] whether it takes no further messages
    def stopping? = @stopping

    # @return [Boolean] whether its threads are to end
    def closed? = @closed

    # @return [Boolean] whether a handler goes on, although its message may have been given back
    def busy? = @lanes.any? { |lane| lane.working.positive? || !lane.hanging.empty? }

    # @return [Boolean] whether every queue was popped once, and notices are received
    def ready? = @ready

    # @return [Boolean] whether all places of a queue are kept by handlers that hang although they have lost their
    #   messages; only another process helps
    def stuck? = @lanes.any? { |lane| lane_stuck?(lane, DQ.now) }

    # @return [Boolean] whether each queue got an answer of the server within its last lease, or within the time of a
    #   pop, and neither were its pops refused for so long, nor is the worker {#stuck?}
    def healthy? = !@closed && !@threads.empty? && !stuck? && @lanes.all? { |lane| lane_healthy?(lane, DQ.now) }

    # @!group For the threads of the worker

    def settings = @client.settings
    def middleware = @client.middleware

    # Calls the handlers of messages that were popped.
    def start_handlers(lane, deliveries) = @handlers.start(lane, deliveries)

    # Has the clock watch a delivery.
    def watch(delivery) = @clock.note([delivery.end, delivery.limit].compact.min)

    # A command has extended a lease, or has found that it is lost.
    def extended(lane, delivery, deadline, sent)
      return lane.take(delivery, "lease") if deadline.nil?

      lane.leases.extended(delivery, deadline, sent)
      watch(delivery)
    end

    # Waits, but not when the worker stops.
    def wait(seconds) = @lock.synchronize { @woken.wait(@lock, seconds) unless @stopping }

    # Reports an event of a message to the hook.
    def emit(kind, delivery, text = "")
      message = delivery.message
      log_message(Logger::WARN, "lost", delivery, text) if kind == :lost
      log_unkept(message, text) if kind == :done && !text.empty?
      return unless @hook

      call_hook(kind: kind, queue: message.queue, id: message.id, job: message.kind, attempt: message.attempt,
                seconds: DQ.now - delivery.begun, text: text)
    end

    # The server has taken a message back.
    def gave_back = @lock.synchronize { @given_back += 1 if @stopping }

    # Logs that a delivery has not succeeded.
    def log_failure(delivery, outcome, dead)
      text = outcome.text + (dead ? "; now dead" : "")
      log_message(dead ? Logger::ERROR : Logger::WARN, outcome.kind, delivery, text, outcome.details)
    end

    # Logs an event of a queue, and reports it to the hook.
    def emit_of_queue(kind, queue, text = "")
      @announcer.log(kind == :resumed ? Logger::INFO : Logger::ERROR,
                     "#{Texts.utf8(queue)}: #{kind}#{": #{Texts.utf8(text)}" unless text.empty?}")
      call_hook(kind: kind, queue: queue, text: text)
    end

    # Reports once to the hook that every queue is popped and notices are received.
    def consuming
      first = @lock.synchronize do
        was = @ready
        @ready ||= @listener.listening && @fetchers.each_value.all?(&:consuming)
        @ready && !was
      end
      call_hook(kind: :ready) if first
    end

    # @!endgroup

    private

    # @return [Float] a Duration of Rails, too, as the guard is told of it, which has no Rails
    def positive(name, seconds, zero: false)
      valid = seconds.is_a?(Numeric) && seconds.to_f.finite? && (seconds.positive? || (zero && seconds.zero?))
      valid ? seconds.to_f : raise(ArgumentError, "#{name} is a number of seconds, not #{seconds.inspect}")
    end

    def trap_signals(pipe)
      process = Process.pid
      received = false
      %w[INT TERM].to_h do |name|
        previous = trap(name) do |number|
          if Process.pid != process # A handler has forked: this process is not the worker.
            trap(name, "DEFAULT")
            Process.kill(name, Process.pid)
          elsif received
            exit!(128 + number)
          else
            received = true
            pipe.write_nonblock(".")
          end
        end
        [name, previous]
      end
    end

    def start_guard
      @guard = Guard.new(self)
      @guard.start
      spawn("dq-guard", @guard)
    rescue TypeError, SystemCallError => error
      @guard = nil
      @announcer.log(Logger::WARN,
                     "leases are kept by threads only: no process can be started for them (#{error.message})")
    end

    # Runs again after an unexpected error, so that no worker is alive without working.
    def spawn(name, runner)
      thread = Thread.new do
        runner.run
      rescue StandardError => error
        @announcer.log(Logger::ERROR,
                       "#{name} begins again after an unexpected error: #{error.full_message(highlight: false)}")
        sleep 1
        retry
      end
      thread.name = name.delete("\0")
      @threads[runner] = thread
    end

    def request_stop
      @lock.synchronize do
        @stopping = true
        @woken.broadcast
      end
      @lanes.each(&:wake)
    end

    def end_pops
      @fetchers.each_value.map { |fetcher| Thread.new { fetcher.end_pop(@threads[fetcher]) } }.each(&:join)
    end

    def wait_for_handlers(last)
      sleep 0.01 until @lanes.all? { |lane| lane.working.zero? } || DQ.now > last
    end

    def close
      @patience = DQ.now + LAST_SECONDS
      @closed = true
      request_stop
      @clock.wake
      last = @patience + Fetcher::MARGIN_SECONDS # A server that is slow still gets what is on its way.
      @reporters.each { |reporter| @threads[reporter].join([last - DQ.now, 0].max) }
      @guard&.close
    end

    def log_end(unanswered)
      if unanswered.positive?
        @announcer.log(Logger::ERROR, "#{@consumer} could not report #{unanswered} messages, which are delivered " \
                                      "again when their leases are over")
      end
      @announcer.log(Logger::INFO, "#{@consumer} has stopped; #{@given_back} messages went back")
    end

    # @return [Float] seconds after which a queue that is not served shows that something is wrong
    def patience_with(lane) = [lane.leases.seconds, (Leases::BLOCK_MS / 1000.0) + Fetcher::MARGIN_SECONDS].max

    def lane_stuck?(lane, now)
      lane.hanging.count { |since| now - since > patience_with(lane) } >= lane.concurrency
    end

    def lane_healthy?(lane, now)
      patience = patience_with(lane)
      now - lane.last_answer <= patience && (lane.refused_since.nil? || now - lane.refused_since <= patience)
    end

    def log_message(level, kind, delivery, text, details = nil)
      message = delivery.message
      work = [message.kind, message.id].compact.map { |part| Texts.utf8(part) }.join(" ")
      line = "#{Texts.utf8(message.queue)}: #{work} #{kind} at attempt #{message.attempt}"
      line += ": #{text}" unless text.empty?
      @announcer.log(level, [line, details].compact.join("\n"))
    end

    # Once for each queue is enough.
    def log_unkept(message, text)
      first = @lock.synchronize { @unkept.key?(message.queue) ? false : @unkept[message.queue] = true }
      return unless first

      queue, id = [message.queue, message.id].map { |part| Texts.utf8(part) }
      @announcer.log(Logger::WARN, "#{queue}: #{id} is done, but #{text}")
    end

    def call_hook(**fields)
      hook = @hook or return
      event = Event.new(**fields)
      @announcer.announce { hook.call(event) }
    end
  end
end

require "dq/worker/outcome"
require "dq/worker/server_time"
require "dq/worker/leases"
require "dq/worker/delivery"
require "dq/worker/lane"
require "dq/worker/announcer"
require "dq/worker/clock"
require "dq/worker/handlers"
require "dq/worker/frames"
require "dq/worker/guard"
require "dq/worker/fetcher"
require "dq/worker/reporter"
require "dq/worker/listener"
