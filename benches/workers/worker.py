"""Measures one Python library with an empty handler: messages a second, and how late delayed ones are. Prints JSON.

python worker.py dq|arq|taskiq|dramatiq|rq --url URL [--messages N] [--delayed N]

One process works on 64 at a time, as far as the library can. All messages are in the queue before the worker starts.
For the lateness, messages fall due at a steady rate while the worker waits; libraries that cannot delay are not asked.
The server's database 0 is emptied.
"""

import argparse
import asyncio
import json
import os
import statistics
import threading
import time
from importlib.metadata import version

import redis

CONCURRENCY = 64
RATE = 200  # delayed messages a second

CLOCK = {"left": 0, "begun": 0.0}
PASSED = []  # The seconds of each round: that of all messages at once, and that of the delayed ones.
LATE = []
DONE = threading.Event()


def handled(due=None):
    """Counts a message; the last one ends the measurement."""
    if due is not None:
        LATE.append(time.time() - due)
    CLOCK["left"] -= 1
    if not CLOCK["left"]:
        PASSED.append(time.perf_counter() - CLOCK["begun"])
        DONE.set()


def begin(count):
    """Sets the clock."""
    DONE.clear()
    CLOCK.update(left=count, begun=time.perf_counter())


def dues(count):
    """Returns when delayed messages are due, in whole ms; the first one in two seconds and the time that the pushes
    take."""
    start = round(time.time() + 2 + count / 1000, 3)
    return [start + n / RATE for n in range(count)]


def dq(url, messages, delayed):
    import dq_client

    app = dq_client.App(url)

    @app.task(queue="bench", name="empty")
    async def empty(due=None):
        handled(due)

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    queue = app.queue("bench")
    for at in range(0, messages, 1000):
        queue.push_many_sync([empty.payload()] * min(1000, messages - at))
    worker = dq_client.Worker(app, concurrency=CONCURRENCY)
    begin(messages)
    worker.start(loop)
    DONE.wait()
    begin(delayed)
    for due in dues(delayed):
        empty.options(at=dt(due)).push_sync(due)
    DONE.wait()
    worker.stop()


def arq(url, messages, delayed):
    import arq
    from arq.connections import RedisSettings

    async def empty(ctx, due=None):
        handled(due)

    async def run():
        settings = RedisSettings.from_dsn(url)
        pool = await arq.create_pool(settings)
        for at in range(0, messages, 100):
            await asyncio.gather(*[pool.enqueue_job("empty") for _ in range(min(100, messages - at))])
        worker = arq.Worker(
            [arq.func(empty, name="empty", keep_result=0)],
            redis_settings=settings,
            max_jobs=CONCURRENCY,
            handle_signals=False,
        )
        begin(messages)
        working = asyncio.ensure_future(worker.async_run())
        while not DONE.is_set():
            await asyncio.sleep(0.01)
        begin(delayed)
        for due in dues(delayed):
            await pool.enqueue_job("empty", due, _defer_until=dt(due))
        while not DONE.is_set():
            await asyncio.sleep(0.01)
        working.cancel()

    asyncio.run(run())


def taskiq(url, messages, _delayed):
    from taskiq.api import run_receiver_task
    from taskiq_redis import ListQueueBroker

    broker = ListQueueBroker(url)

    @broker.task(task_name="empty")
    async def empty():
        handled()

    async def run():
        await broker.startup()
        for at in range(0, messages, 100):
            await asyncio.gather(*[empty.kiq() for _ in range(min(100, messages - at))])
        begin(messages)
        working = asyncio.ensure_future(run_receiver_task(broker, max_async_tasks=CONCURRENCY))
        while not DONE.is_set():
            await asyncio.sleep(0.01)
        working.cancel()

    asyncio.run(run())


def dramatiq(url, messages, delayed):
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)

    @dramatiq.actor(queue_name="bench")
    def empty(due=None):
        handled(due)

    for _ in range(messages):
        empty.send()
    worker = dramatiq.Worker(broker, worker_threads=CONCURRENCY)
    begin(messages)
    worker.start()
    DONE.wait()
    begin(delayed)
    for due in dues(delayed):
        empty.send_with_options(args=(due,), delay=max(0, int((due - time.time()) * 1000)))
    DONE.wait()
    worker.stop()


def nothing():
    """The job of rq, whose worker runs one at a time; SimpleWorker does not start a process for each."""


def rq(url, messages, _delayed):
    import rq

    connection = redis.Redis.from_url(url)
    queue = rq.Queue("bench", connection=connection)
    queue.enqueue_many([rq.Queue.prepare_data("worker.nothing", result_ttl=0) for _ in range(messages)])
    begin(messages)
    rq.SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
    PASSED.append(time.perf_counter() - CLOCK["begun"])


def dt(due):
    """Returns a time as libraries take it."""
    import datetime

    return datetime.datetime.fromtimestamp(due, datetime.timezone.utc)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["dq", "arq", "taskiq", "dramatiq", "rq"])
    parser.add_argument("--url", required=True)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--delayed", type=int, default=1_000)
    given = parser.parse_args()
    redis.Redis.from_url(given.url).flushdb()
    globals()[given.library](given.url, given.messages, given.delayed)
    packages = {"dq": "dq-redis", "taskiq": "taskiq-redis"}
    name = f"{given.library} {version(packages.get(given.library, given.library))}"
    figures = {"worker": name, "rate": given.messages / PASSED[0]}
    if LATE:
        late = statistics.quantiles([seconds * 1000 for seconds in LATE], n=100, method="inclusive")
        figures.update(p50=late[49], p99=late[98])
    print(json.dumps(figures), flush=True)
    os._exit(0)  # Without waiting for the threads of the libraries.


if __name__ == "__main__":
    main()
