# frozen_string_literal: true

require "English"
require "fileutils"
require "tmpdir"

FRAMEWORKS = File.expand_path("..", __dir__)
# The files of this run, which its workers share.
HOME = Dir.mktmpdir("dq-frameworks-")
ENV["DQ_TEST_RECORD"] = "#{HOME}/record"
ENV["DQ_TEST_DATABASE"] = "#{HOME}/database"
$LOAD_PATH.unshift(File.expand_path("../../../lib", __dir__))

require "minitest"
require "minitest/autorun"
require_relative "../../support/patience"
require_relative "../../support/program"
require_relative "../../support/server"
require_relative "record"

Minitest.after_run { FileUtils.remove_entry(HOME) }

# Starts dq-work with an application.
def start_dq_work(application, *arguments)
  TestProgram.new(TestProgram::WORKER, *arguments, "--require", application)
end
