# frozen_string_literal: true

require "active_record"
require "global_id/railtie" if defined?(Rails::Railtie)
require "globalid"

# A database in a file, for records that jobs have as arguments.
ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ENV.fetch("DQ_TEST_DATABASE"), timeout: 30_000)
ActiveRecord::Base.connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT)")

GlobalID.app = "shop"
ActiveRecord::Base.include(GlobalID::Identification)

class Order < ActiveRecord::Base
end
