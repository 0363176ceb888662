# frozen_string_literal: true

# Jobs whose tests need a queue of dq.
require_relative "jobs"

# Several options of a message.
class OptionsJob < NoteJob
  dq_options retries: 5, lease: 60, ttl: 1.hour, priority: 3, group: ->(job) { job.arguments.first }
end

# One at a time for each order.
class UniqueJob < ApplicationJob
  dq_options id: ->(job) { "order-#{job.arguments.first}" }
  retry_on TimeoutOfShop, wait: ->(_executions) { 0.2 }, attempts: 2

  def perform(name, failures: 0)
    Record.add(name, executions)
    raise TimeoutOfShop if executions <= failures
  end
end

class LastWordJob < NoteJob
  dq_options id: ->(job) { job.arguments.first }, replace: true
end

# Says when it begins and ends, and never runs beside another one of its group.
class GroupJob < ApplicationJob
  dq_options group: "one by one"

  def perform(name, number)
    Record.add(name, "begin #{number}")
    sleep 0.01
    Record.add(name, "end #{number}")
  end
end

class SumJob < ApplicationJob
  dq_options retain: 600

  def perform(*numbers)
    { "sum" => numbers.sum }
  end
end

class RescuedSumJob < SumJob
  rescue_from(PaymentRefused) { "what a handler of an error returns is no result" }

  def perform(*)
    raise PaymentRefused
  end
end

class LaterJob < ApplicationJob
  def perform(name)
    Record.add(name, DQ.message.attempt)
    raise DQ::Retry.new("not now", after: 10.minutes)
  end
end

# Works until it is told that its message is lost.
class WaitingJob < ApplicationJob
  retry_on StandardError, wait: 0

  def perform(name)
    Record.add(name, DQ.message.id)
    DQ.message.wait(60)
    Record.add(name, "not told")
  ensure
    Record.add(name, "lost: #{DQ.message.lost?}")
  end
end

# Takes more time than a worker that stops gives it, and cannot be told.
class StubbornJob < ApplicationJob
  def perform(name)
    Record.add(name, "attempt #{DQ.message.attempt}")
    sleep 60 unless File.exist?("#{Record.path}.calm")
  end
end

# Ends its process after its retry has been enqueued and before its message is acknowledged.
class KilledInBetweenJob < ApplicationJob
  retry_on TimeoutOfShop, wait: 0, attempts: 3
  after_enqueue { Process.kill(:KILL, Process.pid) if executions == 1 }

  def perform(name)
    Record.add(name, executions)
    raise TimeoutOfShop if executions == 1
  end
end

class DeadlyJob < ApplicationJob
  dq_options retries: 1

  def perform(name)
    Record.add(name, DQ.message.attempt)
    Process.kill(:KILL, Process.pid)
  end
end

class FailingJob < ApplicationJob
  dq_options retries: 1

  def perform(name)
    raise "no paper in the printer" if DQ.message

    Record.add(name, "done")
  end
end
