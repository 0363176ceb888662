# frozen_string_literal: true

# Runs all tests of the client and of the worker; those of the frameworks need their gems.
Dir[File.join(__dir__, "*_test.rb")].each { |file| require file }
