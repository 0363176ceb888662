"""The worker that the conformance suite drives: what each message asks for is in its payload."""

import argparse
import asyncio
import inspect
import json
import logging
import os
import pathlib
import sys
import threading
import time
from typing import Callable

# The package is imported from the source tree if it is not installed.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "src"))

from dq_client import App, Context, Event, Reject, Retry, Worker
from dq_client.cli import queue_sizes

OUTPUT = threading.Lock()
HOOK = os.environ.get("DQ_HOOK")
ENDS = {"done": "ok", "failed": "fail", "rejected": "reject", "retried": "retry"}


def say(event: str, **fields: object) -> None:
    """Writes a line."""
    line = json.dumps(dict(fields, event=event))
    with OUTPUT:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def now() -> int:
    """Returns the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def heard(event: Event) -> None:
    """Tells what the worker decides by itself, and how handlers end. Then it may do what a hook should not."""
    if event.kind == "ready":
        say("ready")
    elif event.kind == "lost" or (event.kind == "returned" and event.text == "stopping"):
        say("lost", id=event.id, reason=event.text, at=now())
    elif event.kind in ENDS:
        say("end", id=event.id, how=ENDS[event.kind], at=now())
    if HOOK == "fail":
        raise RuntimeError("the hook fails")
    if HOOK == "block" and event.kind == "failed":
        time.sleep(3)


async def handle(payload: bytes, ctx: Context) -> object:
    """Does what the payload says."""
    checkpoint = ctx.checkpoint.decode() if ctx.checkpoint else None
    say("start", queue=ctx.queue, id=ctx.id, attempt=ctx.attempt, headers=ctx.headers, checkpoint=checkpoint, at=now())
    try:
        return await work(json.loads(payload), ctx.attempt, ctx.save)
    finally:
        if ctx.lost.is_set() and ctx.reason != "time limit":
            say("end", id=ctx.id, how="lost", at=now())


async def refuse(wanted: dict) -> None:
    """The only task of the app."""
    raise ValueError(f"unknown task {wanted!r}")


async def work(wanted: dict, attempt: int, save: Callable[[str], None]) -> object:
    """Does one thing."""
    do, text, seconds = wanted["do"], wanted.get("text", ""), wanted.get("ms", 0) / 1000
    if do == "save":
        await asyncio.sleep(seconds)
        save(text)
        await asyncio.sleep(seconds)
        do = "fail"
    if do == "fail" and attempt <= wanted.get("times", attempt):
        raise RuntimeError(text)
    if do == "reject":
        raise Reject(text)
    if do == "retry":
        after = wanted.get("after")
        if after in ("NaN", "Infinity"):
            after = float(after)
        raise Retry(text, after=after / 1000 if isinstance(after, (int, float)) else after)
    if do == "exit":
        os._exit(3)
    if do == "hang":
        await asyncio.sleep(seconds)
    elif do == "spin":
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
    elif do not in ("ok", "result", "no-result", "fail"):
        raise ValueError(f"unknown task {do!r}")
    return {"result": wanted.get("result"), "no-result": {"a", "set"}}.get(do)


def main() -> int:
    """Works until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", action="append", required=True)
    parser.add_argument("--lease", type=int)
    parser.add_argument("--grace", type=int, default=30_000)
    parser.add_argument("--name", default="worker")
    parser.add_argument("--time-limit", type=int)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    app, by_default = App(given.url), inspect.signature(Worker).parameters["concurrency"].default
    queues = queue_sizes(given.queue, by_default)
    for name in queues:
        if name == "tasks":
            app.task(queue=name)(refuse)
        else:
            app.consumer(name)(handle)
    worker = Worker(
        app,
        queues=queues,
        lease=given.lease and given.lease / 1000,
        grace=given.grace / 1000,
        time_limit=given.time_limit and given.time_limit / 1000,
        name=given.name,
        hook=heard,
    )
    code = worker.run()
    say("stopped")
    return code


if __name__ == "__main__":
    sys.exit(main())
