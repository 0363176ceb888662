"""``dq-worker module:app``: a worker as a program."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from typing import Dict, List, Optional

from .app import App
from .worker import Worker


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a worker until a signal comes. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="dq-worker", description="Works on the queues of an app.")
    parser.add_argument("app", help="where the app is, as in shop:app for `app` in shop.py")
    add_options(parser, "messages", "worker")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="how long a handler may take")
    parser.add_argument("--log-level", default="INFO", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR")
    given = parser.parse_args(arguments)
    try:
        logging.basicConfig(level=given.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        app = _load(given.app)
        queues = queue_sizes(given.queue or app.queues, given.concurrency)
        worker = Worker(
            app, queues=queues, lease=given.lease, grace=given.grace, time_limit=given.time_limit, name=given.name
        )
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    return worker.run()


def _load(place: str) -> App:
    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    app = getattr(importlib.import_module(module), name or "app", None)
    if not isinstance(app, App):
        raise ValueError(f"there is no dq_client.App at {place!r}: write it as module:variable")
    return app


def queue_sizes(words: List[str], concurrency: int) -> Dict[str, int]:
    """Returns how many messages of each queue are worked on at a time, for words like ``NAME`` and ``NAME=N``."""
    queues: Dict[str, int] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        queues.update({name: int(number)} if equals and number.isdigit() else {word: concurrency})
    return queues


def add_options(parser: argparse.ArgumentParser, what: str, name: str) -> None:
    """Adds the options of a worker that works on ``what``."""
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help=f"{what} of each queue at a time (8)")
    parser.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="NAME[=N]",
        help=f"work on this queue only, N {what} at a time; can be repeated",
    )
    kept, ends = f"how long {what} stay with a worker that is gone", "how long handlers may end at a stop (30)"
    parser.add_argument("--lease", type=float, metavar="SECONDS", help=kept)
    parser.add_argument("--grace", type=float, default=30.0, metavar="SECONDS", help=ends)
    parser.add_argument("--name", default=name, help=f"the end of the name that DQ.CONSUMERS lists ({name})")
