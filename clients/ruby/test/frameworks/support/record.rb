# frozen_string_literal: true

require "json"

# What jobs did, in a file that all processes of a test write and read.
module Record
  class << self
    def path
      ENV.fetch("DQ_TEST_RECORD")
    end

    # Adds an event of a test case.
    #
    # @param of [String] which test case it belongs to
    # @param what [Object] anything that JSON can hold
    def add(of, what)
      line = JSON.generate([of, what, (Time.now.to_f * 1000).floor, Process.pid])
      File.open(path, "a") { |file| file.write("#{line}\n") }
    end

    # @return [Array] the events of a test case, in their order
    def of(name)
      lines.filter_map { |of, what| what if of == name }
    end

    # @return [Array<Integer>] when the events happened, as Unix milliseconds
    def times(name)
      lines.filter_map { |of, _what, at| at if of == name }
    end

    # @return [Array<Integer>] which processes wrote the events
    def processes(name)
      lines.filter_map { |of, _what, _at, pid| pid if of == name }
    end

    private

    def lines
      return [] unless File.exist?(path)

      File.readlines(path).select { |line| line.end_with?("\n") }.map { |line| JSON.parse(line) }
    end
  end
end
