"""Tests what `make dist` has built: the files, the tarball and the Debian package, as a new user would use them.

    python3 tests/dist [--dist DIRECTORY] [--server PATH ...] [--no-package]

The sessions and command lines are those of docs/install.md, which are run as they stand. Each server plays the
tarball's part, and loads the module of the package from a directory. The package is installed, upgraded and removed
with dpkg, which needs root and touches this machine; without root, with --no-package, or if a package of that name is
installed, this part is left out and a line says so.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time
import traceback

import files
import image
import kubernetes
import package
import tarball


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    parser.add_argument("--dist", default=os.path.join(target, "dist"), help="what make dist has built")
    parser.add_argument("--server", action="append", help="a redis-server or valkey-server; can be repeated")
    parser.add_argument("--no-package", action="store_true", help="leave out what needs root")
    chosen = parser.parse_args()
    chosen.dist = os.path.abspath(chosen.dist)
    if not os.path.exists(os.path.join(chosen.dist, "SHA256SUMS")):
        sys.exit(f"dq: {chosen.dist} holds no release. Build it with: make dist")
    if not chosen.server:
        found = subprocess.run(["scripts/find-server.sh"], capture_output=True, text=True)
        if found.returncode:
            sys.exit(found.stderr.strip())
        chosen.server = [found.stdout.strip()]
    return chosen


def main():
    chosen = options()
    tests = [(test.__name__, test, (chosen.dist,)) for test in files.TESTS]
    each = tarball.TESTS + package.UNPACKED
    if not shutil.which("dpkg-deb"):
        print("NOT TESTED  the Debian package: dpkg-deb is missing")
        each = tarball.TESTS
    tests += [(test.__name__, test, (chosen.dist, chosen.server[0])) for test in kubernetes.TESTS + image.TESTS]
    for server in chosen.server:
        version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
        label = " ".join(version.split()[:3])
        tests += [(f"{test.__name__} ({label})", test, (chosen.dist, server)) for test in each]
    why_not = "--no-package" if chosen.no_package else package.obstacle()
    if why_not:
        print(f"NOT TESTED  the Debian package: {why_not}")
    else:
        tests += [(test.__name__, test, (chosen.dist, chosen.server[0])) for test in package.TESTS]
    failed = 0
    for name, test, arguments in tests:
        began = time.monotonic()
        try:
            test(*arguments)
            outcome = "ok    "
        except Exception:
            traceback.print_exc()
            outcome = "FAILED"
            failed += 1
        print(f"{outcome}  {name}  {time.monotonic() - began:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


main()
