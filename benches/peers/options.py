"""What the command lines of the benchmarks have in common."""
import os
import sys


def add_server_and_module(parser):
    parser.add_argument("--server", default=os.environ.get("DQ_SERVER", "redis-server"))
    parser.add_argument("--module", default=os.environ.get("DQ_MODULE", os.path.join(
        os.environ.get("CARGO_TARGET_DIR", "target"), "release", "libdq.so")))


def chosen(all_of_them, names, what):
    """Returns those of the named things whose names are in the list, separated by commas; all without a list."""
    if not names:
        return all_of_them
    names = names.split(",")
    unknown = set(names) - {one.name for one in all_of_them}
    if unknown:
        sys.exit(f"no such {what}: {', '.join(sorted(unknown))}")
    return [one for one in all_of_them if one.name in names]
