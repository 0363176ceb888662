# frozen_string_literal: true

require "socket"

module DQ
  # Reports to systemd that a worker is ready, and that it is not stuck (sd_notify): with WatchdogSec= in its unit, one
  # that is stuck is started again. One whose server is away is not, since its handlers may still be at work.
  class ServiceManager
    LAST_SECONDS = 2

    # @param worker [Worker]
    def initialize(worker)
      @worker = worker
      @address = ENV.fetch("NOTIFY_SOCKET", nil)
    end

    # Starts a thread, if systemd wants reports.
    # @return [void]
    def start
      return if @address.nil? || @address.empty?

      @thread = Thread.new { run }
      @thread.name = "dq-systemd"
    end

    # Waits until the stop is reported.
    # @return [void]
    def finish = @thread&.join(LAST_SECONDS)

    private

    def run
      sleep 0.1 until @worker.ready? || @worker.stopping?
      report("READY=1")
      until @worker.stopping?
        report("WATCHDOG=1") unless @worker.stuck?
        sleep interval
      end
      report("STOPPING=1")
    end

    # @return [Float] seconds
    def interval = [Float(ENV.fetch("WATCHDOG_USEC", "2000000")) / 2_000_000, 1.0].min

    def report(state)
      address = @address.sub(/\A@/) { "\0" } # An abstract socket.
      Socket.new(:UNIX, :DGRAM).tap { |socket| socket.send(state, 0, Socket.sockaddr_un(address)) }.close
    rescue SystemCallError => error
      DQ.logger.warn("#{state} could not be reported to systemd: #{error.message}")
    end
  end
end
