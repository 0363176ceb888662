#!/usr/bin/env python3
"""Writes the address of the repository into all manifests, where registries and their users look for it, and wherever
else files name it, its owner or its images.

    python3 packaging/repository.py https://HOST/OWNER/NAME

As long as the project has no public address, the manifests name none, since a registry would publish a wrong one for
good; other files say OWNER/NAME. Once the address is settled, run this and commit the result:
`scripts/check-repository.py --tag` demands it. It can be run again with another address.
"""
import glob
import json
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WORKSPACES = ["Cargo.toml", "clients/rust/apalis/Cargo.toml"]
CRATES = [*WORKSPACES, "queue/Cargo.toml", "clients/rust/Cargo.toml", "ctl/Cargo.toml"]
OTHERS = [".github/CODEOWNERS", ".github/ISSUE_TEMPLATE/config.yml", "docs/install.md", "docs/kubernetes.md",
          *sorted(glob.glob("contrib/kubernetes/*.yaml"))]
UNKNOWN = "https://github.com/OWNER/NAME"


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
    urls = f'[project.urls]\nHomepage = "{url}"\nRepository = "{url}"\n\n'
    return text.replace("[project.scripts]", f"{urls}[project.scripts]")


def node(text, url):
    package = json.loads(text)
    own = {"homepage": f"{url}#readme",
           "repository": {"type": "git", "url": f"git+{url}.git", "directory": "clients/node"}}
    fields = [(key, value) for key, value in package.items() if key not in own]
    at = [key for key, _ in fields].index("license") + 1
    return json.dumps(dict(fields[:at] + list(own.items()) + fields[at:]), indent=2) + "\n"


def other(text, url, before):
    """A file that names the address of before. The names of images are in lower case."""
    (_, owner, name), (_, old_owner, old_name) = (address.rsplit("/", 2) for address in (url, before))
    text = text.replace(before, url).replace(f"@{old_owner}\n", f"@{owner}\n")
    return re.sub(rf"(ghcr\.io/)?\b{old_owner}/{old_name}\b",
                  lambda found: f"{found[1]}{owner}/{name}".lower() if found[1] else f"{owner}/{name}",
                  text, flags=re.IGNORECASE)


def rewrite(path, change, *arguments):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(text, *arguments))


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"https://[^/\s\"]+(/[\w.-]+){2}", sys.argv[1]):
        sys.exit("usage: packaging/repository.py https://HOST/OWNER/NAME")
    url = sys.argv[1]
    with open("Cargo.toml", encoding="utf-8") as file:
        known = re.search(r'^repository = "(.+)"$', file.read(), re.MULTILINE)
    for path in CRATES:
        rewrite(path, crate, url, path in WORKSPACES)
    rewrite("clients/python/pyproject.toml", python, url)
    rewrite("clients/node/package.json", node, url)
    for path in OTHERS:
        rewrite(path, other, url, known[1] if known else UNKNOWN)


if __name__ == "__main__":
    main()
