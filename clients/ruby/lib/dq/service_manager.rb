# frozen_string_literal: true

require "socket"

module DQ
  # Tells systemd that a worker is ready, and as long as it is healthy (sd_notify): with WatchdogSec= in its unit, a
  # worker that is not is started again.
  class ServiceManager
    LAST_SECONDS = 2

    # @param worker [Worker]
    def initialize(worker)
      @worker = worker
      @address = ENV.fetch("NOTIFY_SOCKET", nil)
    end

    # Starts a thread, if systemd wants to be told.
    # @return [void]
    def start
      return if @address.nil? || @address.empty?

      @thread = Thread.new { run }
      @thread.name = "dq-systemd"
    end

    # Waits until systemd was told that the worker has stopped.
    # @return [void]
    def finish = @thread&.join(LAST_SECONDS)

    private

    def run
      sleep 0.1 until @worker.healthy? || @worker.stopping?
      tell("READY=1")
      until @worker.stopping?
        tell("WATCHDOG=1") if @worker.healthy?
        sleep interval
      end
      tell("STOPPING=1")
    end

    # @return [Float] seconds
    def interval = [Float(ENV.fetch("WATCHDOG_USEC", "2000000")) / 2_000_000, 1.0].min

    def tell(state)
      address = @address.sub(/\A@/) { "\0" } # An abstract socket.
      Socket.new(:UNIX, :DGRAM).tap { |socket| socket.send(state, 0, Socket.sockaddr_un(address)) }.close
    rescue SystemCallError => error
      DQ.logger.warn("systemd was not told #{state}: #{error.message}")
    end
  end
end
