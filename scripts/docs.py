#!/usr/bin/env python3
"""Builds the site of docs/ with mdbook, and checks every link of it.

    python3 scripts/docs.py [DIRECTORY]      by default target/docs; the site is in DIRECTORY/book

The pages in docs/ link to files outside it, as GitHub expects. mdbook knows only what lies in one folder. So book.toml
is copied to DIRECTORY first, and the pages to DIRECTORY/src: those of the root of the repository next to those of
docs/, and the examples below them. Links follow. A link to a file that is not part of the site, such as a source file,
becomes plain text.
"""
import html
import html.parser
import os
import re
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Files outside docs/ that are part of the site.
BESIDE = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "redis.conf.example", "examples"]
# The README of the repository is not a page of the site: links to it lead to the index of docs/.
INSTEAD = {"README.md": "docs/README.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
STYLE = """\
:root { --content-max-width: 1000px; }
table { display: block; max-width: 100%; width: fit-content; margin: 0 0 1.5em; overflow-x: auto; }
table td { vertical-align: top; }
table td, table th { min-width: 4em; padding: 4px 10px; }
/* Tables of eight and more columns, which are numbers. */
tr > :first-child:nth-last-child(n+8), tr > :first-child:nth-last-child(n+8) ~ * {
  min-width: 2.5em; padding: 4px 6px; font-size: 0.85em;
}
pre > code { font-size: 0.82em; }
pre > code.syntax { white-space: pre-wrap; }
.content img { max-width: 100%; background: white; }
@media (max-width: 600px) {
  table { font-size: 0.85em; }
  table td, table th { min-width: 3em; padding: 4px 6px; }
  table td:last-child { min-width: 9em; }
  table td code { overflow-wrap: anywhere; white-space: normal; }
  /* A row of a wide table becomes a card, so that nothing of it is beyond the edge: each cell below the name of its
     column. */
  table.cards, table.cards tbody { display: block; width: auto; }
  table.cards thead { display: none; }
  table.cards tbody tr {
    display: flex; flex-wrap: wrap; padding: 6px 0; border: 0; border-bottom: 2px solid var(--table-border-color);
  }
  table.cards td {
    box-sizing: border-box; max-width: 100%; min-width: 0; border: 0; padding: 2px 8px; overflow-wrap: anywhere;
  }
  table.cards td:first-child, table.cards td:last-child { flex: 1 0 100%; }
  table.cards td:first-child { font-weight: 600; }
  table.cards td:empty { display: none; }
  table.cards td:not(:first-child, :last-child)::before {
    content: attr(data-label) ": "; color: var(--fg); opacity: 0.7;
  }
  /* Of tables of numbers, what a row is about stays in sight while the rest of it is scrolled. */
  table tbody tr { background: var(--bg); }
  table thead tr { background: var(--table-header-bg); }
  table:not(.cards) tr > :first-child:nth-last-child(n+4) {
    position: sticky; left: -2px; background: inherit; max-width: 8em;
  }
  pre > code { font-size: 0.7em; }
}
"""
# On a phone a drawing has the font with which it is as wide as the screen. A column is 0.61 em wide, and the margins
# are 60 px together.
DRAWING = ("@media (max-width: 600px) {{ pre > code.columns-{0} {{ "
           "font-size: clamp(5px, (100vw - 60px) / {0} / 0.61, 0.7em); }} }}\n")
WIDEST_DRAWING = 120  # columns; lines beyond the width of a page of source are commands
CARDS = range(4, 8)  # columns of a table of words that is too wide for a phone; those with more are numbers
BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def place(path):
    """Where a file of the repository is in the site, or None."""
    path = INSTEAD.get(path, path)
    if path.startswith("docs/"):
        return path[len("docs/"):]
    if any(path == beside or path.startswith(beside + "/") for beside in BESIDE):
        return path
    return None


def rewrite(text, page):
    """The text of a page of the repository with the links that it has in the site."""
    def link(match):
        mark, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return match.group(0)
        aim = os.path.normpath(os.path.join(os.path.dirname(page), path))
        there = place(aim)
        if there is None or os.path.isdir(os.path.join(ROOT, aim)):
            return label
        if aim in INSTEAD:
            anchor = ""
        there = os.path.relpath(there, os.path.dirname(place(page)) or ".")
        if page != "docs/SUMMARY.md":  # mdbook makes index.html of a README.md, but leaves the links to it alone
            there = re.sub(r"(^|/)README\.md$", r"\1index.md", there)
        return f"{mark}[{label}]({there}{'#' if anchor else ''}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def name_blocks(text):
    """The text of a page whose blocks without a language are named: as syntax, whose lines may be broken, or as a
    drawing of a given number of columns. Without a name, the site guesses a language and colours their words."""
    def name(match):
        lines = match.group(1).splitlines()
        columns = max(map(len, lines), default=0)
        kind = "syntax" if len(lines) == 1 or columns > WIDEST_DRAWING else f"drawing,columns-{columns}"
        return f"```text,{kind}\n{match.group(1)}```"

    # Each block is looked at as a whole: the end of one looks like the beginning of another.
    block = re.compile(r"^```[^`]*?^```$", re.DOTALL | re.MULTILINE)
    return block.sub(lambda found: BLOCK.sub(name, found.group(0)), text)


def lay_out(source):
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "docs"), source)
    for beside in BESIDE:
        path = os.path.join(ROOT, beside)
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(source, beside))
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    for page in filter(None, files):
        there = place(page)
        if there and page not in INSTEAD and os.path.exists(os.path.join(source, there)):
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = name_blocks(rewrite(file.read(), page))
            with open(os.path.join(source, there), "w", encoding="utf-8") as file:
                file.write(text)


def widths_of_drawings(source):
    """The numbers of columns that drawings have, in all pages."""
    found = set()
    for folder, _, names in os.walk(source):
        for name in (name for name in names if name.endswith(".md")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found.update(map(int, re.findall(r"^```text,drawing,columns-(\d+)$", file.read(), re.MULTILINE)))
    return sorted(found)


def label_cells(book):
    """Writes the name of its column to each cell of a wide table of words, for screens on which a row becomes a card.
    Returns how many pages have such tables."""
    pages = 0
    def table(match):
        head, body = match.group(1), match.group(2)
        names = [re.sub(r"<[^>]*>", "", name).strip() for name in re.findall(r"<th[^>]*>(.*?)</th>", head, re.DOTALL)]
        if len(names) not in CARDS:
            return match.group(0)

        def row(cells):
            places = iter(names + [""])
            return re.sub(r"<td", lambda _: f'<td data-label="{html.escape(next(places, ""))}"', cells.group(0))
        return f'<table class="cards">{head}{re.sub(r"<tr>.*?</tr>", row, body, flags=re.DOTALL)}</table>'

    for folder, _, names in os.walk(book):
        for path in (os.path.join(folder, name) for name in names if name.endswith(".html")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            labelled = re.sub(r"<table>(\s*<thead>.*?</thead>)(.*?)</table>", table, text, flags=re.DOTALL)
            if labelled != text:
                pages += 1
                with open(path, "w", encoding="utf-8") as file:
                    file.write(labelled)
    return pages


class Html(html.parser.HTMLParser):
    """The links and the anchors of a file."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name == "href" and tag in ("a", "link") or name == "src":
                self.links.append(value)


def check(book):
    """Follows the links within the site. Returns how many there are, and those that lead nowhere."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(book) for name in names]
    pages = {path: Html(path) for path in files if path.endswith(".html")}
    followed, broken = 0, []
    for path, page in pages.items():
        # 404.html is shown under any address, so mdbook gives it links from the root.
        if os.path.basename(path) in ("404.html", "toc.html"):
            continue
        for link in page.links:
            parts = urlsplit(link or "")
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            aim = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if os.path.isdir(aim):
                aim = os.path.join(aim, "index.html")
            anchor = unquote(parts.fragment)
            if not os.path.exists(aim) or anchor and aim in pages and anchor not in pages[aim].anchors:
                broken.append(f"{os.path.relpath(path, book)}: {link}")
    return followed, broken


def main():
    target = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target/docs"))
    source, book = os.path.join(target, "src"), os.path.join(target, "book")
    lay_out(source)
    shutil.copy(os.path.join(ROOT, "book.toml"), target)
    with open(os.path.join(target, "site.css"), "w", encoding="utf-8") as file:
        file.write(STYLE)
        file.writelines(DRAWING.format(columns) for columns in widths_of_drawings(source))
    subprocess.run(["mdbook", "build", target], check=True)
    if not label_cells(book):
        sys.exit("dq: no wide table was found: does this mdbook write other HTML?")
    followed, broken = check(book)
    for link in broken:
        print(f"dq: a link that leads nowhere: {link}", file=sys.stderr)
    print(f"dq: {followed} links followed; the site is {book}/index.html")
    sys.exit(1 if broken or not followed else 0)


if __name__ == "__main__":
    main()
