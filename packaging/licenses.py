"""Prints the licenses of all crates that are linked into libdq.so and dqctl, which ask for it in whatever is
distributed.

    python3 packaging/licenses.py TRIPLE

A crate under a choice of licenses that includes MIT is taken under MIT. Equal texts are printed once.
"""
import json
import os
import re
import subprocess
import sys

ROOTS = {"dq", "dqctl"}
NAMES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.I)


def metadata(triple):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(data):
    """The packages that the roots depend on at run time."""
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    own = [name for name, package in packages.items() if package["name"] in ROOTS and not package["source"]]
    found, left = set(), own
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for dependency in nodes[name]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    ours = [packages[name] for name in found if packages[name]["source"]]
    return sorted(ours, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The license files of a crate, those of MIT alone if that suffices."""
    folder = os.path.dirname(package["manifest_path"])
    names = sorted(name for name in os.listdir(folder)
                   if NAMES.match(name) and os.path.isfile(os.path.join(folder, name)))
    if "MIT" in re.split(r"[\s/()]+", package["license"] or ""):
        names = [name for name in names if "MIT" in name.upper()] or names
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            yield file.read().strip()


def main():
    users, without = {}, []
    for package in linked(metadata(sys.argv[1])):
        label = f"{package['name']} {package['version']} ({package['license']})"
        found = list(texts(package))
        if not found:
            without.append(label)
        for text in found:
            users.setdefault(text, []).append(label)
    print("libdq.so and dqctl contain these crates, under the licenses that follow their names.\n")
    if without:
        print("Without a file of its own, under the license in parentheses:")
        print("\n".join(f"  {label}" for label in without))
    for text, labels in sorted(users.items(), key=lambda item: item[1]):
        print("\n" + "-" * 80 + "\n" + "\n".join(labels) + "\n\n" + text)


if __name__ == "__main__":
    main()
