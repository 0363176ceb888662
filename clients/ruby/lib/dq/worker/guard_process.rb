# frozen_string_literal: true

# The process of a guard (see guard.rb): it extends leases of a worker that does not do so in time. Its standard input
# is a socket to the worker, and it ends when that does. It loads as little as it can.
require "openssl"
require "redis-client"
require "socket"
require "dq/monotonic"
require "dq/errors"
require "dq/texts"
require "dq/link"
require "dq/sentinels"
require "dq/settings"
require "dq/worker/frames"

# What the worker wants to keep.
class GuardProcess
  # A lease that it has extended is extended again when so much of it is over, as the worker would.
  SHARE = 0.5
  # It tries again after so much of a lease.
  AGAIN_SHARE = 0.05
  # How much longer it waits than until the next lease is due.
  LONGEST_WAIT_SECONDS = 60

  # limit is when the handler has reached its time limit: its lease is not extended any more.
  Held = Struct.new(:queue, :words, :due, :period, :limit)

  # @param socket [UNIXSocket]
  # @param worker [Integer] the id of the process
  def initialize(socket, worker)
    @socket = socket
    @worker = worker
    @frames = DQ::Worker::Frames.new(socket)
    @held = {}
    @links = {}
  end

  # Works until the worker ends. What a handler has forked may keep the socket open for longer than that.
  def run
    while Process.ppid == @worker
      due = @held.each_value.map(&:due).min
      @socket.wait_readable(due ? [due - DQ.now, 0].max : LONGEST_WAIT_SECONDS)
      @frames.read.each { |message| hear(message) }
      extend_due(DQ.now) if Process.ppid == @worker
    end
  rescue SystemCallError, IOError
    nil # The worker has ended.
  end

  private

  # The first message has the options of the connection.
  def hear(message)
    return @settings = DQ::Settings.new(message) unless @settings

    queue, words, held, dropped = message
    dropped.each { |receipt| @held.delete(receipt) }
    held.each { |receipt, *times| @held[receipt] = Held.new(queue, words, *times) }
  end

  def extend_due(now)
    @held.delete_if { |_, held| held.limit && held.limit <= now }
    due = @held.select { |_, held| held.due <= now }
    due.group_by { |_, held| [held.queue, held.words] }.each do |(queue, words), all|
      extend_leases(queue, words, all.map(&:first))
    end
  end

  def extend_leases(queue, words, receipts)
    sent = DQ.now
    deadlines = link(queue).call("DQ.MEXTEND", queue, receipts.size, *receipts, *words)
    receipts.zip(deadlines) { |receipt, deadline| extended(queue, receipt, deadline, sent) }
  rescue DQ::Error => error
    link = @links.delete(queue)
    @settings.learn(queue, error, link&.config)
    link&.close
    receipts.each { |receipt| @held[receipt].due = DQ.now + (@held[receipt].period * AGAIN_SHARE) }
  end

  def extended(queue, receipt, deadline, sent)
    return @held.delete(receipt) if deadline.nil?

    held = @held[receipt]
    held.due = sent + (held.period * SHARE)
    @socket.write(DQ::Worker::Frames.dump([queue, receipt, deadline, sent]))
  end

  def link(queue) = @links[queue] ||= @settings.link(queue)
end

# The worker decides when to end, also if the terminal sends the signal to both.
%w[INT TERM HUP].each { |name| trap(name, "IGNORE") }
worker = Integer(ARGV.fetch(0))
Process.setproctitle("dq-work: keeps leases for #{worker}")
GuardProcess.new(UNIXSocket.for_fd(0), worker).run
exit!(0)
