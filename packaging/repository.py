#!/usr/bin/env python3
"""Writes the address of the repository into all manifests, where registries and their users look for it.

    python3 packaging/repository.py https://HOST/OWNER/NAME

It also writes what GitHub wants to know of it: who owns the code, and where questions and vulnerabilities belong.

The manifests name no address as long as the project has no public one. The release workflow writes its own into what it
packages; once the address is settled, run this and commit the result. It can be run again with another address.
"""
import json
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
CRATES = ["Cargo.toml", "queue/Cargo.toml", "clients/rust/Cargo.toml", "ctl/Cargo.toml"]


def crate(text, url, is_root):
    """A manifest of Cargo: the members take the address from the workspace."""
    text = re.sub(r"^(repository|homepage)(\.workspace)? = .*\n", "", text, flags=re.MULTILINE)
    inherited = "repository.workspace = true\nhomepage.workspace = true\n"
    text = re.sub(r"^(license = .*\n)", rf"\1{inherited}", text, count=1, flags=re.MULTILINE)
    if is_root:
        own = f'repository = "{url}"\nhomepage = "{url}"\n'
        text = re.sub(r'(\[workspace\.package\]\nversion = ".*"\n)', lambda found: found[0] + own, text)
    return text


def python(text, url):
    text = re.sub(r"^\[project\.urls\]\n(.+\n)*\n", "", text, flags=re.MULTILINE)
    return text.replace("[project.scripts]", f'[project.urls]\nHomepage = "{url}"\nRepository = "{url}"\n\n[project.scripts]')


def node(text, url):
    package = json.loads(text)
    own = {"homepage": f"{url}#readme", "repository": {"type": "git", "url": f"git+{url}.git", "directory": "clients/node"}}
    fields = [(key, value) for key, value in package.items() if key not in own]
    at = [key for key, _ in fields].index("license") + 1
    return json.dumps(dict(fields[:at] + list(own.items()) + fields[at:]), indent=2) + "\n"


OWNERS = """\
# Who is asked to review a pull request.
* @{owner}
"""
ISSUES = """\
blank_issues_enabled: false
contact_links:
  - name: A question
    url: {url}/discussions
    about: How to do something with dq, or whether dq is right for it
  - name: A vulnerability
    url: {url}/security/advisories/new
    about: Report it privately
"""


def rewrite(path, change, *arguments):
    path = os.path.join(ROOT, path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(text, *arguments))


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"https://[^/\s\"]+(/[\w.-]+){2}", sys.argv[1]):
        sys.exit("usage: packaging/repository.py https://HOST/OWNER/NAME")
    for path in CRATES:
        rewrite(path, crate, sys.argv[1], path == "Cargo.toml")
    rewrite("clients/python/pyproject.toml", python, sys.argv[1])
    rewrite("clients/node/package.json", node, sys.argv[1])
    values = {"url": sys.argv[1], "owner": sys.argv[1].split("/")[3]}
    for path, text in [(".github/CODEOWNERS", OWNERS), (".github/ISSUE_TEMPLATE/config.yml", ISSUES)]:
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(text.format(**values))


if __name__ == "__main__":
    main()
