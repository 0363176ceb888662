# frozen_string_literal: true

module DQ
  # Makes the adapter +:dq+ known to Active Job before the application names it, and has +Rails.logger+ be the log.
  class Railtie < ::Rails::Railtie
    ActiveSupport.on_load(:active_job) { require "dq/active_job" }

    initializer "dq.logger", after: :initialize_logger do
      DQ.logger = ::Rails.logger
    end
  end
end
