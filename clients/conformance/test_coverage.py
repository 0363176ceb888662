"""Every client has the commands and options of the pages that producers and operators need.

As with the Rust client, an option counts as known if its word is in the sources. `clients/rust/tests/it/coverage.rs` compares
that client with all pages.
"""

import re

import pytest

from server import ROOT

COMMANDS = "push mpush schedule await cancel reschedule promote redrive purge get peek len info pause resume".split()
# The options that a client does not have, on purpose or not yet: its language and the word.
LEFT_OUT = set()
SOURCES = {"python": "src/**/*.py", "node": "src/**/*.ts", "go": "*.go"}


def _words(command):
    """Returns the name of a command and its words in capital letters, as its page shows them."""
    page = (ROOT / f"docs/commands/dq.{command}.md").read_text()
    syntax = page.split("## Syntax")[1].split("```")[1]
    return set(re.findall(r"\bDQ\.[A-Z]+\b|\b[A-Z]{2,}\b", syntax)) - {"DQ"}


@pytest.mark.parametrize("language", SOURCES)
def test_every_option_of_the_pages_is_in_the_client(language):
    files = (ROOT / "clients" / language).glob(SOURCES[language])
    text = "\n".join(path.read_text() for path in files if not path.name.endswith("_test.go"))
    known = {word.upper() for word in re.findall(r"""["'`]([\w.]+)["'`]""", text)}
    wanted = {(f"DQ.{command.upper()}", word) for command in COMMANDS for word in _words(command)}
    missing = sorted((name, word) for name, word in wanted if word not in known and (language, word) not in LEFT_OUT)
    assert not missing, f"teach the {language} client these options, or list them in LEFT_OUT: {missing}"
