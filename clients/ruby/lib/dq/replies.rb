# frozen_string_literal: true

module DQ
  # Replies as values: maps are flat arrays in RESP2.
  module Replies
    module_function

    # @return [Hash{String => Object}]
    def map(reply)
      return {} if reply.nil?

      reply.is_a?(Hash) ? reply : reply.each_slice(2).to_h
    end

    # @return [Hash{String => Object}, nil] the fields of a queue or a batch
    def fields(reply) = reply && map(reply)

    # @return [Hash{String => Object}, nil] the fields of a message
    def message(reply)
      fields = fields(reply)
      fields&.key?("headers") ? fields.merge("headers" => map(fields["headers"])) : fields
    end
  end
end
