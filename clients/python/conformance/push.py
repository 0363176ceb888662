"""The producer that the conformance suite drives: a push for each line of standard input. With ``DQ_FACE=asyncio`` it
pushes from an event loop."""

import argparse
import asyncio
import json
import os
import pathlib
import sys
from typing import Any, Callable, Dict, Optional

# The package is imported from the source tree if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from dq_client import App, DqError, Queue

Push = Callable[[Queue, bytes, Dict[str, Any]], Optional[str]]


def pusher() -> Push:
    """Returns what pushes a payload with options to a queue."""
    if os.environ.get("DQ_FACE") != "asyncio":
        return lambda queue, payload, options: queue.push_sync(payload, **options)
    loop = asyncio.new_event_loop()
    return lambda queue, payload, options: loop.run_until_complete(queue.push(payload, **options))


def main() -> None:
    """Pushes until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    app = App(parser.parse_args().url)
    push = pusher()
    for line in sys.stdin:
        wanted = json.loads(line)
        options = {
            name: wanted[name] for name in ("id", "priority", "group", "headers") if wanted.get(name) is not None
        }
        if wanted.get("delay") is not None:
            options["delay"] = wanted["delay"] / 1000
        payload = wanted["payload"].encode("utf-8", "surrogateescape")
        try:
            answer = {"id": push(app.queue(wanted["queue"]), payload, options)}
        except DqError as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
