"""Prints which crates are linked into libdq.so and dqctl, as a CycloneDX bill of materials.

    python3 packaging/sbom.py TRIPLE

The crates are those whose licenses packaging/licenses.py prints. The same commit gives the same bytes: the bill has
neither a time nor a serial number.
"""
import json
import os
import re
import sys

import licenses


def checksums():
    """The SHA-256 of each crate in Cargo.lock, by name and version."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Cargo.lock"), encoding="utf-8") as file:
        packages = file.read().split("[[package]]\n")[1:]
    fields = [dict(re.findall(r'^(\w+) = "(.*)"$', package, re.MULTILINE)) for package in packages]
    return {(package["name"], package["version"]): package.get("checksum") for package in fields}


def component(package, sums):
    name, version = package["name"], package["version"]
    url = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    if package["license"]:
        # Cargo once separated alternatives by a slash.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if sums.get((name, version)):
        found["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    return found


def main():
    data = licenses.metadata(sys.argv[1])
    version = next(package["version"] for package in data["packages"]
                   if package["name"] == "dq" and not package["source"])
    sums = checksums()
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "dq", "version": version}},
        "components": [component(package, sums) for package in licenses.linked(data)],
    }
    json.dump(bill, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
