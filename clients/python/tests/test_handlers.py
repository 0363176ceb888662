"""Handlers of every kind, and what users hand in around them: each message is done or failed, once."""

import asyncio
import contextlib
import contextvars
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from server import eventually

import dq_client


def acked(app, count=1):
    """Waits until so many messages are acknowledged."""
    eventually("it is acked", lambda: (app.queue("q").info_sync() or {}).get("acked") == count)


def test_a_handler_that_a_decorator_hides_is_awaited(app, working):
    seen = []

    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    class Called:
        async def __call__(self, payload):
            await asyncio.sleep(0)
            seen.append(payload)

    async def later(payload):
        await asyncio.sleep(0)
        seen.append(payload)

    async def forgets_to_await(payload):
        return later(payload)

    app.consumer("q")(decorated(later))
    app.consumer("r")(Called())
    app.consumer("s")(lambda payload: later(payload))
    app.consumer("t")(functools.partial(later))
    app.consumer("u")(forgets_to_await)
    app.consumer("v")(lambda payload: forgets_to_await(payload))
    working(app)
    for queue in "qrstuv":
        app.queue(queue).push_sync(queue)
    eventually("all have run", lambda: sorted(seen) == [b"q", b"r", b"s", b"t", b"u", b"v"])
    acked(app)


def test_an_error_behind_a_decorator_fails(app, working):
    async def fail(payload):
        await asyncio.sleep(0)
        raise dq_client.Reject("no")

    app.consumer("q")(lambda payload: fail(payload))
    working(app)
    id = app.queue("q").push_sync("x")
    eventually("it is dead", lambda: app.queue("q").get_sync(id)["state"] == "dead")


def test_what_a_hidden_coroutine_awaits_is_cancelled_with_its_message(app, working):
    seen = []

    async def wait(payload):
        seen.append("begun")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    app.consumer("q")(lambda payload: wait(payload))
    working(app)
    id = app.queue("q").push_sync("x")
    eventually("it runs", lambda: seen)
    app.queue("q").cancel_sync(id)
    eventually("it is told", lambda: seen == ["begun", "cancelled"])


def test_a_generator_is_no_handler(app, working):
    def generator(payload):
        yield payload

    async def asynchronous(payload):
        yield payload

    for handler in (generator, asynchronous, functools.partial(generator)):
        with pytest.raises(TypeError, match="generator"):
            app.consumer("q")(handler)
        with pytest.raises(TypeError, match="generator"):
            app.task(name="t")(handler)

    async def returns_one(payload):
        return generator(payload)

    app.consumer("q")(lambda payload: generator(payload))
    app.consumer("r")(returns_one)
    app.consumer("s")(lambda payload: returns_one(payload))
    working(app)
    for queue in map(app.queue, "qrs"):
        id = queue.push_sync("x")
        eventually("it failed", lambda: "generator" in (queue.get_sync(id) or {}).get("error", ""))  # noqa: B023


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_a_middleware_that_swallows_errors_strands_nothing(app, working, kind):
    class Swallows(dq_client.Middleware):
        def handle(self, ctx):
            return contextlib.suppress(KeyError)

    app.middleware.append(Swallows())
    if kind == "function":

        @app.consumer("q")
        def handle(payload):
            raise KeyError
    else:

        @app.consumer("q")
        async def handle(payload):
            raise KeyError

    working(app, concurrency=1)
    for count in (1, 2):
        app.queue("q").push_sync("x")
        acked(app, count)


def test_a_middleware_that_fails_leaves_those_before_it(app, working):
    left = []

    class Outer(dq_client.Middleware):
        @contextlib.contextmanager
        def handle(self, ctx):
            try:
                yield
            finally:
                left.append("outer")

    class Fails(dq_client.Middleware):
        def handle(self, ctx):
            raise RuntimeError("no")

    app.middleware += [Outer(), Fails()]
    app.consumer("q")(lambda payload: None)
    working(app)
    id = app.queue("q").push_sync("x")
    eventually("it failed", lambda: "no" in (app.queue("q").get_sync(id) or {}).get("error", ""))
    assert left


@pytest.mark.parametrize("kind", ["function", "coroutine", "hidden coroutine"])
def test_each_handler_has_a_context_of_its_own(app, working, kind):
    language = contextvars.ContextVar("language", default="en")
    seen = []

    def function(payload):
        seen.append(language.get())
        language.set(payload.decode())

    async def coroutine(payload):
        function(payload)

    handlers = {"function": function, "coroutine": coroutine, "hidden coroutine": lambda payload: coroutine(payload)}
    app.consumer("q")(handlers[kind])
    working(app, concurrency=1)
    for word in ("de", "fr", "it"):
        app.queue("q").push_sync(word)
    acked(app, 3)
    assert seen == ["en"] * 3


@pytest.mark.parametrize("trouble", ["raises", "exits", "blocks"])
def test_a_hook_harms_nothing(app, working, trouble):
    blocked = threading.Event()

    def hook(event):
        if event.kind == "ready":
            return
        if trouble == "raises":
            raise RuntimeError("no")
        if trouble == "exits":
            raise SystemExit
        blocked.wait(20)

    app.consumer("q")(lambda payload: time.sleep(4 if payload == b"long" else 0))
    working(app, hook=hook, concurrency=2, lease=1.5)
    app.queue("q").push_sync("long")
    for _ in range(10):
        app.queue("q").push_sync("x")
    acked(app, 11)
    assert app.queue("q").info_sync()["delivered"] == 11
    blocked.set()


def test_a_handler_of_the_log_that_raises_harms_nothing(app, working):
    class Raises(logging.Handler):
        def emit(self, record):
            raise RuntimeError("no")

    handler = Raises()
    logging.getLogger("dq_client").addHandler(handler)
    try:

        @app.consumer("q")
        def fail(payload):
            raise ValueError

        working(app, concurrency=1)
        ids = [app.queue("q").push_sync("x", retries=0) for _ in range(3)]
        eventually("all are dead", lambda: all(app.queue("q").get_sync(id)["state"] == "dead" for id in ids))
    finally:
        logging.getLogger("dq_client").removeHandler(handler)


def test_a_number_that_json_does_not_have_is_refused(app):
    @app.task(queue="q")
    def add(number): ...

    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            add.push_sync(number)


def test_a_result_that_json_does_not_have_is_not_kept(app, working):
    app.consumer("q")(lambda payload: float("nan"))
    working(app)
    id = app.queue("q").push_sync("x", retain=60)
    eventually("it is done", lambda: (app.queue("q").get_sync(id) or {}).get("state") == "done")
    assert app.queue("q").get_sync(id)["result"] is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
@pytest.mark.parametrize("error, state", [(dq_client.Reject("no"), "dead"), (dq_client.Retry(after=60), "delayed")])
def test_what_a_group_of_exceptions_has_decides(app, working, error, state):
    @app.consumer("q")
    async def handle(payload):
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [ValueError("x"), error])])  # noqa: F821

    working(app)
    id = app.queue("q").push_sync("x")
    eventually("it ended", lambda: (app.queue("q").get_sync(id) or {}).get("state") == state)


def test_a_checkpoint_waits_until_the_server_can_store_it(server, app, working):
    saved = threading.Event()

    @app.consumer("q")
    def handle(payload, ctx):
        server.admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        ctx.save(b"half")
        saved.set()
        ctx.lost.wait(60)

    working(app, grace=0.1)
    id = app.queue("q").push_sync("x")
    assert saved.wait(10)
    eventually("it was refused", lambda: "READONLY" in str(server.admin.info("errorstats")))
    server.admin.execute_command("REPLICAOF", "NO", "ONE")
    eventually("it is stored", lambda: app.queue("q").get_sync(id).get("checkpoint") == b"half")


def test_a_worker_whose_handlers_hang_is_not_healthy(app, working):
    goes_on = threading.Event()
    app.consumer("q")(lambda payload: goes_on.wait(60))
    worker = working(app, concurrency=1, time_limit=0.1)
    app.queue("q").push_sync("x", retries=0)
    eventually("it is told", lambda: worker.lanes[0].told)
    assert worker.is_healthy()
    worker.lanes[0].told = {delivery: since - 100 for delivery, since in worker.lanes[0].told.items()}
    assert not worker.is_healthy()
    goes_on.set()
    eventually("its place is free", worker.is_healthy)


def test_a_worker_whose_pops_are_refused_is_not_healthy(server, app, working):
    app.consumer("q")(lambda payload: None)
    worker = working(app)
    server.admin.delete("q")
    server.admin.set("q", "text")
    server.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    eventually("it is refused", lambda: worker.lanes[0].refused_since)
    assert worker.is_healthy()
    worker.lanes[0].refused_since -= 100
    worker.lanes[0].last_answer = time.monotonic()
    assert not worker.is_healthy()


PROGRAM = """
import sys, time
import dq_client

app = dq_client.App(sys.argv[1])

@app.task(queue="q")
def send():
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
    child.start()
    time.sleep(0.2)
    child.terminate()
    child.join(10)
    assert child.exitcode == -15, child.exitcode

if __name__ == "__main__":
    print(send.name, flush=True)
    dq_client.Worker(app).run()
"""


def test_a_program_that_is_run_has_the_names_of_its_module(server, app, tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    started = [sys.executable, str(tmp_path / "shop.py"), server.url]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=path)) as worker:
        try:
            assert worker.stdout.readline() == "shop.send\n"
            # Its handler forks, and ends its child as a pool of processes does.
            app.queue("q").push_sync('{"task": "shop.send"}')
            acked(app)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(10) == 0
        finally:
            worker.kill()
