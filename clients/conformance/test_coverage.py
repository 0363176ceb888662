"""Every client has methods for the commands that producers and operators need, with each option of their pages.

Its program `calls` calls all methods, and what then arrives at the server is compared with the pages.
`clients/rust/tests/it/coverage.rs` does that for the Rust client, with all commands.
"""

import re

import pytest

import planted
from program import calls, can_call
from server import ROOT

# Only workers send these, or operators, who have dqctl.
LEFT_OUT = set("ack ackpop bury complete consumers e extend groups mextend mpop nack pop release scan stats".split())


def words_of_the_pages():
    """Returns for each command the words in capital letters of its syntax, and the settings that it takes."""
    words = {}
    table = (ROOT / "docs/settings.md").read_text().split("## When a setting changes")[1].split("\n## ")[0]
    rows = re.findall("^\\| (`.*?) \\|", table, re.MULTILINE)
    settings = set(re.findall("[A-Z]+", " ".join(rows)))
    assert {"LEASE", "JITTER", "GROUPRATE", "DEADFORWARD"} <= settings
    for path in (ROOT / "docs/commands").glob("dq.*.md"):
        name = path.stem.upper()
        syntax = path.read_text().split("## Syntax")[1].split("```")[1].replace(name, "")
        words[name] = set(re.findall(r"\b[A-Z]{2,}\b", syntax)) | (settings if "settings" in syntax else set())
    return {name: found for name, found in words.items() if name[3:].lower() not in LEFT_OUT}


def test_every_command_of_the_pages_has_a_method_with_its_options(client, server):
    if not can_call(client):
        pytest.skip("it has no such program")
    wanted, sent = words_of_the_pages(), {}
    with server.admin.monitor() as monitor:
        calls(client, server.url)
        server.do("PING", "the-end")
        for said in monitor.listen():
            name, *words = said["command"].upper().split()
            if words == ["THE-END"]:
                break
            sent.setdefault(name, set()).update(words)
    missing = {name: sorted(words - sent[name]) if name in sent else "all" for name, words in wanted.items()}
    missing = {name: words for name, words in missing.items() if words}
    assert not missing, f"teach the {client} client these, and its program conformance/calls to call them: {missing}"


def test_every_fault_that_the_suite_has_to_notice_can_be_planted(client):
    folder = planted.sources(client) if client in planted.FAULTS else None
    if folder is None or not folder.exists():
        pytest.skip("no faults are planted into it, or it is not built")
    for _, file, old, _, _ in planted.FAULTS[client]:
        planted.fitting(folder, file, old)
