# frozen_string_literal: true

require "optparse"
require "dq"
require "dq/service_manager"

module DQ
  # The program dq-work.
  class CommandLine
    # The exit code of a command line that is not understood.
    WRONG = 2
    RAILS = "./config/environment.rb"

    # @param arguments [Array<String>]
    def initialize(arguments)
      @arguments = arguments.dup
      @required = []
      @options = {}
    end

    # Works until a signal, and ends the process.
    def run
      queues = refuse_wrong { parse }
      load_handlers
      worker = refuse_wrong { make_worker(queues) }
      manager = ServiceManager.new(worker)
      manager.start
      code = worker.run
      manager.finish
      finish(worker, code)
    end

    private

    def refuse_wrong
      yield
    rescue OptionParser::ParseError, ArgumentError => error
      warn("dq-work: #{error.message}\n#{parser.banner}")
      exit(WRONG)
    end

    # @return [Hash{String => Integer}] how many threads work on each queue
    def parse
      words = parser.parse(@arguments)
      raise ArgumentError, "name a queue, as in mail=5" if words.empty?
      if @required.empty? && !File.exist?(RAILS)
        raise ArgumentError, "there is no #{RAILS}: --require FILE names the file that defines what to work on"
      end

      queues = words.map { |word| queue(word) }
      twice, = queues.map(&:first).tally.find { |_name, times| times > 1 }
      raise ArgumentError, "the queue #{twice} is named twice" if twice

      queues.to_h
    end

    def queue(word)
      name, equals, threads = word.rpartition("=")
      return [word, Worker::CONCURRENCY] if equals.empty?
      return [name, Integer(threads, 10)] if threads.match?(/\A[1-9]\d*\z/) && !name.empty?

      raise ArgumentError, "#{word}: write the number of threads behind the name, as in mail=5"
    end

    def parser
      @parser ||= OptionParser.new do |parser|
        parser.banner = "usage: dq-work NAME[=THREADS] ... [options]   (#{Worker::CONCURRENCY} threads by default)"
        parser.version = VERSION
        add_times(parser)
        parser.on("--keep WHAT", %w[process thread], "what keeps leases while a handler lets no thread run:",
                  "a process (the default), or nothing: thread") { |what| @options[:keep] = what }
        parser.on("--name NAME", "the end of the name that DQ.CONSUMERS lists (worker)") do |name|
          @options[:name] = name
        end
        parser.on("--require FILE", "load this file instead of #{RAILS}; can be repeated") { |file| @required << file }
      end
    end

    def add_times(parser)
      parser.on("--lease SECONDS", Float, "how long messages stay with a worker that is gone",
                "(that of the message, else that of its queue)") { |seconds| @options[:lease] = seconds }
      parser.on("--grace SECONDS", Float, "how long handlers may end at a stop (30)") do |seconds|
        @options[:grace] = seconds
      end
      parser.on("--time-limit SECONDS", Float, "how long a handler may take (no limit)") do |seconds|
        @options[:time_limit] = seconds
      end
    end

    def load_handlers
      files = @required.empty? ? [RAILS] : @required
      files.each { |file| require(File.exist?(file) ? File.expand_path(file) : file) }
    rescue LoadError => error
      raise unless @required.include?(error.path)

      warn("dq-work: --require #{error.path}: there is no such file")
      exit(WRONG)
    end

    def make_worker(queues)
      worker = Worker.new(**@options)
      queues.each do |name, threads|
        consumer = DQ.consumer(name)
        raise ArgumentError, "nothing handles the queue #{name}: call DQ.consume(#{name.inspect}) { … }" unless consumer

        worker.consume(name, concurrency: threads, kind: consumer.kind, &consumer.handler)
      end
      worker
    end

    # A handler that goes on would prevent the end of the process.
    def finish(worker, code)
      $stdout.flush
      worker.busy? ? exit!(code) : exit(code)
    end
  end
end
