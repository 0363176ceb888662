"""The producer that the conformance suite drives: a push for each line of standard input."""

import argparse
import json
import pathlib
import sys

# The package is imported from the source tree if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from dq_client import App, DqError


def main() -> None:
    """Pushes until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    app = App(parser.parse_args().url)
    for line in sys.stdin:
        wanted = json.loads(line)
        options = {
            name: wanted[name] for name in ("id", "priority", "group", "headers") if wanted.get(name) is not None
        }
        if wanted.get("delay") is not None:
            options["delay"] = wanted["delay"] / 1000
        payload = wanted["payload"].encode("utf-8", "surrogateescape")
        try:
            answer = {"id": app.queue(wanted["queue"]).push_sync(payload, **options)}
        except DqError as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
