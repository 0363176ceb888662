# frozen_string_literal: true

require "rbconfig"

module DQ
  class Worker
    # Keeps leases while no thread of the worker can run, because a handler holds the global lock of the interpreter: in
    # a C extension, for example. The reporter extends leases at half time. If it has not done so when {SHARE} of a
    # lease are over, another process does (guard_process.rb). A thread could not.
    #
    # That process is told what the worker holds. When a lease seems to be over, the worker reads what its guard has
    # extended before it believes that. If the process ends, the worker starts another one.
    class Guard
      # The guard extends a lease when so much of it is over.
      SHARE = 0.7
      # A guard that is so far behind does not run, and is replaced.
      MOST_UNSENT_BYTES = 4_000_000
      PROGRAM = File.expand_path("guard_process.rb", __dir__)
      # Options of a connection that name what only the worker has loaded.
      ONLY_HERE = %i[driver middlewares].freeze
      # How long it takes until a guard that has ended is replaced.
      PAUSE_SECONDS = 0.2

      def initialize(worker)
        @worker = worker
        @lock = Mutex.new
        @dropped = []
      end

      # Starts the process.
      # @return [void]
      # @raise [TypeError] if the options of the connection cannot be passed to a process
      def start
        options = Frames.dump(@worker.settings.options.except(*ONLY_HERE))
        @lock.synchronize { start_process(options) }
      end

      # Starts it again whenever it has ended, until the worker is closed.
      def run
        until @worker.closed?
          wait
          start_again unless @socket && catch_up
        end
      end

      # Has the process extend these leases, if they are not extended before.
      # @param lane [Lane]
      # @param deliveries [Array<Delivery>]
      def hold(lane, deliveries)
        now = DQ.now
        held = deliveries.filter_map do |delivery|
          period = [delivery.end - now, lane.leases.seconds].min
          [delivery.receipt, now + (period * SHARE), period, delivery.limit] if delivery.due.finite?
        end
        @lock.synchronize do
          dropped = @dropped
          @dropped = []
          write([lane.name, lane.leases.words, held, dropped])
        end
      end

      # The lease no longer matters. The process is told of that with what is held next: until then, it may try to
      # extend a lease that the server does not have, which does no harm.
      # @param receipt [String]
      def drop(receipt) = @lock.synchronize { @dropped << receipt if @socket }

      # Notes which leases the process has extended.
      # @return [Boolean] false if the process has ended
      def catch_up
        news = @lock.synchronize { @frames ? @frames.read : [] }
        news.each do |queue, receipt, deadline, sent|
          lane = @worker.lanes.find { |one| one.name == queue }
          delivery = lane&.delivery_of(receipt)
          @worker.extended(lane, delivery, deadline, sent) if delivery
        end
        true
      rescue SystemCallError, IOError
        false
      end

      # @return [Integer, nil] the id of the process
      attr_reader :pid

      # Ends the process.
      def close
        @lock.synchronize do
          @socket&.close
          @socket = @frames = nil
        end
      end

      private

      def wait
        @socket&.wait_readable(1)
      rescue IOError
        nil # It was closed.
      end

      def start_process(options)
        ours, theirs = UNIXSocket.pair
        environment = { "RUBYOPT" => nil, "RUBYLIB" => $LOAD_PATH.uniq.join(File::PATH_SEPARATOR) }
        words = [RbConfig.ruby, "--disable=gems", PROGRAM, Process.pid.to_s]
        @pid = Process.spawn(environment, *words, in: theirs, out: File::NULL)
        Process.detach(@pid)
        theirs.close
        @unsent = options
        @dropped = []
        @socket = ours
        @frames = Frames.new(ours)
        flush
      end

      def start_again
        return if @worker.closed?

        close
        sleep PAUSE_SECONDS
        start
        @worker.lanes.each { |lane| hold(lane, lane.running) }
      end

      # It does not wait for the process.
      def write(words)
        return unless @socket

        @unsent << Frames.dump(words)
        flush
      end

      def flush
        until @unsent.empty?
          written = @socket.write_nonblock(@unsent, exception: false)
          break if written == :wait_writable

          @unsent = @unsent.byteslice(written..)
        end
        @socket.shutdown if @unsent.bytesize > MOST_UNSENT_BYTES # The thread of the guard then starts another one.
      rescue SystemCallError, IOError
        nil # Its thread notices that, too.
      end
    end
  end
end
