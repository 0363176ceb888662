# frozen_string_literal: true

require_relative "support/home"
require_relative "support/pages"

# The programs of the README are those of the recipes, which other tests run.
class PagesTest < Minitest::Test
  def test_the_five_minutes_of_the_readme_are_those_of_the_recipes
    recipes = %w[active-job sidekiq].flat_map { |page| blocks("docs/recipes/#{page}.md") }
    section = blocks("clients/ruby/README.md").select { |block| recipes.include?(block) }
    assert_equal 6, section.size, "an adapter, a server, a job, its producer, a worker, and the bridge"
  end

  private

  def blocks(page)
    Pages.blocks(page, "ruby") + Pages.blocks(page, "sh")
  end
end
