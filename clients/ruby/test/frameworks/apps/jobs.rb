# frozen_string_literal: true

# The application that tests of Active Job run on several adapters. DQ_TEST_ADAPTER names the adapter.
require "logger"
require "active_job"
require "action_mailer"
require "dq/active_job" if ENV["DQ_TEST_ADAPTER"] == "dq"
require_relative "../support/record"
require_relative "database"

I18n.available_locales = %i[en de]
ActiveJob::Base.logger = Logger.new(nil)
ActiveJob::Base.queue_adapter = ENV.fetch("DQ_TEST_ADAPTER").to_sym
DQ.redis = { url: ENV.fetch("DQ_TEST_URL") } if ENV["DQ_TEST_ADAPTER"] == "dq"

class ApplicationJob < ActiveJob::Base
end

# Records that it ran.
class NoteJob < ApplicationJob
  def perform(name, what = "ran")
    Record.add(name, what)
  end
end

class UrgentJob < NoteJob
  queue_with_priority 1
end

class TimeoutOfShop < StandardError; end
class ShopIsClosed < StandardError; end
class PaymentRefused < StandardError; end

# Fails as often as it is told to.
class RetriedJob < ApplicationJob
  retry_on TimeoutOfShop, wait: 0, attempts: 3
  discard_on(ShopIsClosed) { |job, error| Record.add(job.arguments.first, "discarded: #{error.message}") }
  rescue_from(PaymentRefused) { |error| Record.add(arguments.first, "rescued: #{error.message}") }

  def perform(name, failures: 0, error: "TimeoutOfShop")
    Record.add(name, "execution #{executions}")
    raise error.constantize, "of a test" if executions <= failures

    Record.add(name, "done")
  end
end

# Has what it does when its attempts are spent in a block.
class GivenUpJob < ApplicationJob
  retry_on(TimeoutOfShop, wait: 0, attempts: 2) { |job, _error| Record.add(job.arguments.first, "given up") }

  def perform(name)
    Record.add(name, "execution #{executions}")
    raise TimeoutOfShop
  end
end

class CallbackJob < ApplicationJob
  before_enqueue { |job| Record.add(job.arguments.first, "before enqueue") }
  after_enqueue { |job| Record.add(job.arguments.first, "after enqueue") }
  before_perform { |job| Record.add(job.arguments.first, "before perform") }
  around_perform do |job, block|
    Record.add(job.arguments.first, "around perform")
    block.call
  end
  after_perform { |job| Record.add(job.arguments.first, "after perform") }

  def perform(name)
    Record.add(name, "perform")
  end
end

class HaltedJob < ApplicationJob
  before_enqueue { throw :abort }

  def perform(name)
    Record.add(name, "perform")
  end
end

class OrderJob < ApplicationJob
  def perform(name, order)
    Record.add(name, order.state)
  end
end

class TolerantOrderJob < OrderJob
  discard_on(ActiveJob::DeserializationError) { |job, _error| Record.add("tolerant", job.class.name) }
end

Money = Struct.new(:cents, :currency)

# How money becomes an argument.
class MoneySerializer < ActiveJob::Serializers::ObjectSerializer
  def serialize?(argument)
    argument.is_a?(Money)
  end

  def serialize(money)
    super("cents" => money.cents, "currency" => money.currency)
  end

  def deserialize(hash)
    Money.new(hash["cents"], hash["currency"])
  end

  # Rails 8.1 wants it to be public.
  def klass
    Money
  end
end
ActiveJob::Serializers.add_serializers(MoneySerializer)

class ArgumentJob < ApplicationJob
  def perform(name, *arguments, **options)
    Record.add(name, [arguments.map { |argument| "#{argument.class}: #{argument}" }, options.keys.map(&:inspect)])
  end
end

# Enqueues the next one before it ends.
class ChainJob < ApplicationJob
  def perform(name, left)
    Record.add(name, left)
    ChainJob.set(wait: 0.05).perform_later(name, left - 1) if left.positive?
  end
end

class LocaleJob < ApplicationJob
  def perform(name)
    Record.add(name, [I18n.locale.to_s, Time.zone&.name])
  end
end

ActionMailer::Base.delivery_method = :recording
ActionMailer::Base.add_delivery_method(:recording, Class.new do
  def initialize(_settings)
    super()
  end

  def deliver!(mail)
    Record.add(mail.subject, mail.to.first)
  end
end)
ActionMailer::Base.logger = nil
ActionMailer::Base.delivery_job = ActionMailer::MailDeliveryJob

class ShopMailer < ActionMailer::Base
  default from: "shop@example.org"

  def reminder(name, to)
    mail(to: to, subject: name, body: "Your order waits.")
  end
end

# Is enqueued when the transaction is committed, if the adapter recommends that.
class AfterCommitJob < OrderJob
  if respond_to?(:enqueue_after_transaction_commit=)
    require "active_job/enqueue_after_transaction_commit"
    ActiveJob::Base.include(ActiveJob::EnqueueAfterTransactionCommit)
    self.enqueue_after_transaction_commit = :default
  end
end
