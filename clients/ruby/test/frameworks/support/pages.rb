# frozen_string_literal: true

# The programs in pages, as they stand.
module Pages
  # @param path [String] a page of the repository
  # @param language [String] as the page names it
  # @return [Array<String>] its programs
  def self.blocks(path, language)
    text = File.read(File.expand_path("../../../../../#{path}", __dir__))
    text.scan(/^```#{language}\n(.*?)^```/m).flatten
  end
end
