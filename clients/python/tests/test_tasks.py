"""Tasks and consumers: what a program writes."""

import asyncio
import functools
import sys
import threading
from datetime import datetime, timedelta, timezone

import pytest
import redis
from server import eventually

import dq_client
from dq_client.errors import translated


def test_a_coroutine_is_pushed_and_run(app, working):
    seen = []

    @app.task(queue="mail", retries=5, lease=30)
    async def send(ctx: dq_client.Context, to: str):
        seen.append((to, ctx.attempt, ctx.queue, threading.current_thread().name))

    working(app)
    assert asyncio.run(send.options(id="order-1").push("ann@example.org")) == "order-1"
    eventually("it ran", lambda: seen)
    assert seen[0][:3] == ("ann@example.org", 1, "mail")
    eventually("it is acked", lambda: app.queue("mail").len_sync() == 0)


def test_a_function_runs_in_a_thread(app, working):
    seen = []

    @app.task(queue="mail")
    def send(to, *, subject="none"):
        seen.append((to, subject, threading.current_thread().name))

    working(app)
    send.push_sync("ann", subject="hello")
    eventually("it ran", lambda: seen)
    assert seen == [("ann", "hello", "dq-handler")]


def test_functions_run_at_the_same_time(app, working):
    meeting = threading.Barrier(4)

    @app.task(queue="q")
    def meet():
        meeting.wait(10)

    working(app, concurrency=4)
    for _ in range(4):
        meet.push_sync()
    eventually("all have met", lambda: app.queue("q").info_sync()["acked"] == 4)


def test_a_task_can_still_be_called(app):
    @app.task()
    def double(number):
        return 2 * number

    assert double(4) == 8


def test_options_of_tasks_and_pushes_arrive(app):
    @app.task(queue="q", retries=5, lease=30)
    async def send(to): ...

    at = (datetime.now(timezone.utc) + timedelta(hours=1)).replace(microsecond=5000)
    send.options(id="delayed", delay=timedelta(minutes=15), retries=1).push_sync("a")
    dated = send.options(id="dated", at=at, priority=3, group="g")
    dated.options(ttl=7200, headers={"tenant": "x"}).push_sync("a")
    delayed, dated = (app.queue("q").get_sync(id) for id in ("delayed", "dated"))
    assert (delayed["retries"], delayed["lease"], delayed["state"]) == (1, 30_000, "delayed")
    assert (dated["retries"], dated["priority"], dated["group"], dated["ttl"]) == (5, 3, "g", 7_200_000)
    assert dated["due"] == round(at.timestamp() * 1000)
    assert dated["headers"] == {"tenant": "x"}
    with pytest.raises(ValueError, match="no time zone"):
        send.options(at=datetime(2030, 1, 1))
    with pytest.raises(TypeError, match="there is no option 'retrys'"):
        app.queue("q").push_sync(b"x", retrys=3)


@pytest.mark.parametrize(
    "option, value",
    [
        ("retrys", 3),
        ("retries", "3"),
        ("retries", 0.5),
        ("priority", True),
        ("lease", "30"),
        ("delay", float("nan")),
        ("delay", False),
        ("replace", "no"),
        ("id", 5),
        ("headers", {"n": 1}),
        ("at", 1_900_000_000),
    ],
)
def test_options_that_are_not_understood_are_refused_by_name(app, option, value):
    with pytest.raises((TypeError, ValueError), match=f"option '{option}'"):
        app.task(**{option: value})(lambda: None)
    with pytest.raises((TypeError, ValueError), match=f"option '{option}'"):
        app.task()(lambda: None).options(**{option: value})
    with pytest.raises((TypeError, ValueError), match=f"option '{option}'"):
        app.queue("q").push_sync(b"x", **{option: value})


def test_numbers_of_a_worker_are_numbers(app):
    app.consumer("q")(lambda payload: None)
    with pytest.raises(TypeError, match="push_timeout: .*'10'"):
        dq_client.App(push_timeout="10")
    with pytest.raises(ValueError, match="time_limit: .*-1"):
        app.task(time_limit=-1)(lambda: None)
    with pytest.raises(TypeError, match="grace: .*'30'"):
        dq_client.Worker(app, grace="30")
    with pytest.raises(ValueError, match="concurrency .*2.5"):
        dq_client.Worker(app, concurrency=2.5)


def test_arguments_that_a_handler_does_not_take_are_refused(app):
    @app.task(queue="q")
    def send(ctx, to): ...

    for args, kwargs in [((), {}), (("ann", "ben"), {}), (("ann",), {"retries": 3})]:
        for method in (send.push_sync, send.call_sync, functools.partial(send.schedule_sync, "s"), send.payload):
            with pytest.raises(TypeError, match=r"send takes \(to\), and its options"):
                method(*args, **kwargs)
    assert send.options(retries=3).push_sync(to="ann")
    with pytest.raises(TypeError, match="there is no option 'every'"):
        send.options(every=60).push_sync("ann")


@pytest.mark.parametrize(
    "handler",
    [
        lambda ctx, a, b: [ctx.attempt, a, b],
        lambda a, ctx, b: [ctx.attempt, a, b],
        lambda a, b, *, ctx: [ctx.attempt, a, b],
        lambda a, b: [1, a, b],
    ],
)
def test_a_handler_gets_its_context_wherever_it_has_it(app, working, handler):
    task = app.task(queue="q", name="work")(handler)
    working(app)
    assert task.call_sync(2, 3) == task.call_sync(2, b=3) == task.call_sync(b=3, a=2) == [1, 2, 3]


def test_annotations_may_be_imported_for_type_checkers_only(app, working):
    quote = "" if sys.version_info >= (3, 14) else "'"
    program = f"""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from dq_client import Context
    from shop import Order

def echo(it: {quote}Context{quote}, order: {quote}Order{quote}):
    return [it.attempt, order]
"""
    names = {"__name__": "shop"}
    exec(program, names)
    task = app.task(queue="q")(names["echo"])
    working(app)
    assert task.call_sync(7) == [1, 7]


def test_arguments_may_be_named_like_options(app, working):
    @app.task(queue="q", delay=0)
    def echo(self, id, *, delay, timeout):
        return [self, id, delay, timeout]

    working(app)
    assert echo.options(timeout=30).call_sync(self=1, id=2, delay=3, timeout=4) == [1, 2, 3, 4]
    assert asyncio.run(echo.options(id="m", delay=60).push(1, 2, delay=3, timeout=4)) == "m"
    assert app.queue("q").get_sync("m")["state"] == "delayed"


def test_a_task_is_scheduled_with_its_options(app):
    @app.task(queue="q", retries=5, retain=60)
    def send(to): ...

    assert send.options(every=3600, priority=1).schedule_sync("tick", "ann") == "created"
    assert asyncio.run(send.options(every=3600, priority=1).schedule("tick", "ann")) == "unchanged"
    fields = app.queue("q").get_sync("tick")
    assert (fields["every"], fields["retries"], fields["priority"]) == (3_600_000, 5, 1)


def test_times_long_ago_have_passed(app):
    for year in (1, 1969, 1972, 1974):
        assert app.queue("q").push_sync(b"x", at=datetime(year, 1, 1, tzinfo=timezone.utc))
    assert app.queue("q").len_sync("ready") == 4


def test_a_task_that_nobody_knows_is_given_back_with_an_error(app, server, working):
    @app.task(queue="q")
    def known(): ...

    working(app)
    app.queue("q").push_sync(b'{"task": "shop.unknown", "args": []}', id="m")
    fields = eventually("it failed", lambda: (said := app.queue("q").get_sync("m")).get("error") and said)
    assert "no task 'shop.unknown'; it has" in fields["error"] and fields["state"] == "delayed"


def test_an_error_is_kept_with_the_end_of_its_traceback(app, working):
    @app.task(queue="q")
    def fail():
        raise ValueError("no address")

    working(app)
    id = fail.push_sync()
    fields = eventually("it failed", lambda: (said := app.queue("q").get_sync(id)).get("error") and said)
    assert fields["error"].startswith("ValueError: no address\n")
    assert fields["error"].endswith('raise ValueError("no address")')
    assert "dq_client/worker" not in fields["error"]


@pytest.mark.parametrize("after", ["30", float("nan"), float("inf"), -1, 1e12, object()])
def test_a_delay_that_is_no_time_is_a_failure(app, working, after):
    seen = []

    @app.task(queue="q")
    def work(wrong):
        if wrong:
            raise dq_client.Retry("busy", after=after)
        seen.append(wrong)

    working(app, concurrency=1)
    id = work.push_sync(True)
    fields = eventually("it failed", lambda: (said := app.queue("q").get_sync(id)).get("error") and said)
    assert "Retry(after=" in fields["error"] and fields["error"].endswith('raise dq_client.Retry("busy", after=after)')
    assert fields["state"] == "delayed"
    work.push_sync(False)
    eventually("the next one runs", lambda: seen == [False])


def test_a_thread_learns_that_it_has_lost_its_message(app, working):
    begun, reasons = threading.Event(), []

    @app.task(queue="q")
    def wait(ctx):
        begun.set()
        assert ctx.lost.wait(10)
        reasons.append(ctx.reason)

    working(app)
    id = wait.push_sync()
    assert begun.wait(10)
    app.queue("q").cancel_sync(id)
    eventually("it is told", lambda: reasons == ["cancelled"])


def test_a_checkpoint_reaches_the_next_attempt(app, working):
    seen = []

    @app.task(queue="q")
    def work(ctx):
        seen.append(ctx.checkpoint)
        if ctx.attempt == 1:
            ctx.save("page 7")
            raise dq_client.Retry(after=0)

    working(app)
    work.push_sync()
    eventually("it ran twice", lambda: len(seen) == 2)
    assert seen == [None, b"page 7"]


def test_a_checkpoint_that_is_too_long_is_reported(app, working):
    events = []
    app.task(queue="q", name="work")(lambda ctx: ctx.save("x" * 70_000))
    working(app, hook=events.append)
    app.tasks["work"].push_sync()
    [refused] = eventually("it is told", lambda: [event for event in events if event.kind == "refused"])
    assert "65536" in refused.text


def test_a_caller_waits_for_a_result(app, working):
    @app.task(queue="q")
    async def add(a, b):
        if b == 0:
            raise dq_client.Reject("no zero")
        return a + b

    working(app)
    assert add.call_sync(2, 3) == 5
    assert asyncio.run(add.options(timeout=timedelta(seconds=30)).call(2, b=4)) == 6
    with pytest.raises(dq_client.Failed, match="no zero"):
        add.call_sync(2, 0)
    with pytest.raises(TimeoutError):
        app.task(queue="nobody")(lambda: None).options(timeout=0.1).call_sync()


@pytest.mark.parametrize("result", ["123", "null", '"', "gr\u00fc\u00df", None, 7, {"a": [1, None]}, ""])
def test_a_caller_gets_what_the_handler_returned(app, working, result):
    app.task(queue="q", name="work")(lambda: result)
    working(app)
    got = app.tasks["work"].call_sync()
    assert (got, type(got)) == (result, type(result))


@pytest.mark.parametrize("result", [{1}, "x" * 70_000], ids=["a set", "a long text"])
def test_work_whose_result_cannot_be_kept_is_done(app, working, caplog, result):
    events = []
    work = app.task(queue="q", name="work")(lambda: result)
    working(app, hook=events.append)
    ids = [work.options(retain=60).push_sync() for _ in range(2)]
    for id in ids:
        fields = eventually(
            "it is done", lambda id=id: (said := app.queue("q").get_sync(id))["state"] == "done" and said
        )
        assert (fields["result"], fields["attempt"]) == (None, 1)
    with pytest.raises(dq_client.NotKept, match="no result was kept"):
        work.call_sync()
    # A caller may know of the result before the hook does.
    eventually("the hook was called", lambda: [event.kind for event in events[1:]] == ["started", "done"] * 3)
    assert "not kept" in events[2].text
    assert len([said for said in caplog.messages if "not kept" in said]) == 1


@pytest.mark.parametrize("waiting", [True, False])
def test_a_call_goes_on_when_its_connection_breaks(server, working, waiting):
    app, begun, go = dq_client.App(f"{server.url}?socket_timeout=0.5"), threading.Event(), threading.Event()

    @app.task(queue="q")
    def work():
        begun.set()
        go.wait(30)
        return "done"

    working(app)
    calls, results = work.options(timeout=30), []
    call = calls.call_sync if waiting else lambda: asyncio.run(calls.call())
    caller = threading.Thread(target=lambda: results.append(call()))
    caller.start()
    assert begun.wait(10)

    def waits():
        return any(client["cmd"].lower() == "dq.await" for client in server.admin.client_list())

    eventually("the caller waits", waits)
    server.kill9()
    server.boot()
    eventually("it waits again", waits)
    go.set()
    caller.join(30)
    assert results == ["done"]


def test_a_worker_serves_in_the_loop_of_its_program(app):
    async def main():
        loops = []

        @app.task(queue="q")
        async def work():
            loops.append(asyncio.get_running_loop())

        worker = dq_client.Worker(app)
        serving = asyncio.create_task(worker.serve())
        await work.push()
        while not loops:
            await asyncio.sleep(0.01)
        assert worker.is_healthy()
        worker.request_stop()
        await serving
        assert loops == [asyncio.get_running_loop()]
        await app.aclose()

    asyncio.run(main())


def test_middleware_sees_headers_on_both_sides(app, working):
    from contextlib import contextmanager

    seen = []

    class Tenant(dq_client.Middleware):
        def push(self, queue, headers):
            headers["tenant"] = "ann"

        @contextmanager
        def handle(self, ctx):
            seen.append(("before", ctx.headers["tenant"]))
            try:
                yield
            except RuntimeError as error:
                seen.append(("failed", str(error)))
                raise

    app.middleware.append(Tenant())

    @app.task(queue="q", retries=0)
    async def fail():
        raise RuntimeError("boom")

    working(app)
    fail.push_sync()
    eventually("it failed", lambda: app.queue("q").len_sync("dead") == 1)
    assert seen == [("before", "ann"), ("failed", "boom")]


def test_a_hook_hears_what_happens(app, working):
    events = []

    @app.consumer("q")
    def consume(payload, ctx):
        assert payload == b"\xff"

    worker = working(app, hook=events.append)
    id = app.queue("q").push_sync(b"\xff")
    eventually("it is done", lambda: [event for event in events if event.kind == "done"])
    assert [event.kind for event in events] == ["ready", "started", "done"]
    assert (events[-1].queue, events[-1].id, events[-1].attempt) == ("q", id, 1)
    assert worker.is_healthy()


def test_tasks_have_clients_of_every_kind(server):
    asyncio.set_event_loop(asyncio.new_event_loop())  # Python 3.9 wants one for a client that is made outside of it.
    sync = redis.Redis(port=server.port)
    asynchronous = redis.asyncio.Redis(port=server.port, decode_responses=True)
    for client in (sync, asynchronous, server.url):
        queue = dq_client.App(client).queue("q")
        assert queue.push_sync(b"\xff", id="a") == "a"

        async def others(queue=queue):
            assert await queue.push(b"\xff", id="b") == "b"
            assert (await queue.get("b"))["payload"] == b"\xff"
            assert await queue.cancel("a", "b", "c") == ["ready", "ready", None]

        asyncio.run(others())
        assert queue.len_sync() == 0


def test_the_log_names_the_task_and_says_when_it_is_dead(app, working, caplog):
    @app.task(queue="q", name="bake", retries=1)
    def bake():
        raise ValueError("no oven") from OSError("no gas")

    app.queue("q").create_sync(backoff=(0.01, 0.01))
    working(app)
    id = bake.push_sync()
    eventually("it is dead", lambda: any("dead" in line for line in caplog.messages))
    logged = [line for line in caplog.messages if id in line]
    for traced in logged:
        assert "OSError: no gas" in traced and "in bake" in traced and "dq_client/worker" not in traced
    assert [line.splitlines()[0] for line in logged] == [
        f"q: bake {id} failed at attempt 1: ValueError: no oven",
        f"q: bake {id} failed at attempt 2: ValueError: no oven; now dead",
    ]


def test_a_queue_without_a_task_is_named(app, working, caplog):
    @app.task(queue="known")
    def known():
        pass

    working(app, queues={"known": 1, "mial": 1})
    text = "mial: the app has no task and no consumer for this queue"
    eventually("it is logged", lambda: [line for line in caplog.messages if line.endswith("for this queue")] == [text])


@pytest.mark.parametrize("said", ["unknown command 'DQ.PUSH', with args", "unknown command `dq.push`, with args"])
def test_without_the_module_a_sentence_says_so(said):
    answered = redis.ResponseError(f"{said} beginning with: 'q' '4711-0815'")
    error = translated(answered, "localhost:6379")
    assert "4711" not in f"{error} {answered}", "the payload"
    assert str(error).startswith("the server has not loaded the module dq: ") and isinstance(error, dq_client.Refused)
