# frozen_string_literal: true

require "json"

# The lines of JSON that the conformance suite exchanges with its programs. Bytes that are not UTF-8 are surrogate
# escapes there, \udc80 to \udcff, which the parser of JSON cannot read.
module Lines
  # Stands for an escape while a line is parsed. Nothing that the suite sends contains it.
  MARK = "\u{10ffff}"

  module_function

  # @return [Hash{String => Object}]
  def parse(line)
    unescape(JSON.parse(line.gsub(/(?<!\\)\\udc([89a-f]\h)/) { "#{MARK}#{Regexp.last_match(1)}" }))
  end

  # @return [String]
  def generate(value)
    case value
    when Hash then "{#{value.map { |name, one| "#{generate(name)}:#{generate(one)}" }.join(",")}}"
    when Array then "[#{value.map { |one| generate(one) }.join(",")}]"
    when String, Symbol then escape(value.to_s)
    else JSON.generate(value)
    end
  end

  def escape(text)
    text = text.dup.force_encoding(Encoding::UTF_8)
    parts = text.each_char.map do |char|
      char.valid_encoding? ? JSON.generate(char)[1..-2] : char.bytes.map { |byte| format("\\udc%02x", byte) }.join
    end
    "\"#{parts.join}\""
  end

  def unescape(value)
    case value
    when Hash then value.to_h { |name, one| [unescape(name), unescape(one)] }
    when Array then value.map { |one| unescape(one) }
    when String then value.b.gsub(/#{MARK.b}(\h\h)/n) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8)
    else value
    end
  end
end
