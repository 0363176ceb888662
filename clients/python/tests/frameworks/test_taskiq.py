"""Taskiq on dq: the example as an application, with Taskiq's own workers."""

import asyncio
import gc
import inspect
import pathlib

import pytest
import taskiq
from conftest import survive, wait
from server import PATIENCE, free_port
from taskiq.api import run_receiver_task

import dq_client
from dq_client.taskiq import DqBroker, DqResultBackend, NackMiddleware

HOUR = 3600
HEAD = "import asyncio\nfrom shop import *\nasync def main():\n await broker.startup()\n "
TAIL = "\n await broker.shutdown()\nasyncio.run(main())"


def worker(start):
    program = start("taskiq", "taskiq", "worker", "shop:broker", "--workers", "1", "--max-async-tasks", "10")
    return program.ready("Listening started.")


def in_shop(produce, *lines):
    return produce("taskiq", HEAD + "\n ".join(lines) + TAIL)


def test_a_task_runs_at_once(server, start, produce, done):
    worker(start)
    in_shop(produce, "await confirm.kiq(1)")
    wait("it ran", lambda: done() == ["confirm 1"])
    wait("it is acked", lambda: server.do("DQ.LEN", "taskiq") == 0)


def test_no_worker_holds_a_task_that_is_delayed(server, clock, start, produce, done):
    worker(start)
    in_shop(produce, f"await confirm.kicker().with_labels(delay={1000 * HOUR}).kiq(1)", "await confirm.kiq(2)")
    wait("another one is completed", lambda: done() == ["confirm 2"] and server.do("DQ.LEN", "taskiq", "inflight") == 0)
    [message] = server.do("DQ.PEEK", "taskiq", "delayed")
    assert message[b"due"] - message[b"created"] >= 1_000_000 * HOUR
    clock.set(hours=999)
    in_shop(produce, "await confirm.kiq(3)")
    wait(
        "another one is completed",
        lambda: done() == ["confirm 2", "confirm 3"] and server.do("DQ.LEN", "taskiq", "inflight") == 0,
    )
    clock.set(hours=1000)
    wait("it ran", lambda: done() == ["confirm 2", "confirm 3", "confirm 1"])


def test_priorities_are_those_of_the_queue(server, start, produce, done):
    in_shop(produce, "await confirm.kiq(1)", "await confirm.kicker().with_labels(priority=9).kiq(2)")
    assert [message[b"priority"] for message in server.do("DQ.PEEK", "taskiq", "ready", "COUNT", 2)] == [9, 0]


def test_an_error_is_retried_with_the_backoff_of_the_queue(server, start, produce, done):
    server.do("DQ.CREATE", "taskiq", "BACKOFF", 50, 200)
    worker(start)
    said = in_shop(produce, "task = await charge.kiq(1)", "print((await task.wait_result(timeout=60)).is_err)")
    assert done() == ["charge 1 at attempt 3"]
    assert said == "False"


def test_a_task_that_failed_for_good_is_dead_with_its_error(server, start, produce):
    worker(start)
    said = in_shop(
        produce,
        "task = await refund.kiq(7)",
        "result = await task.wait_result(timeout=60)",
        "print(result.is_err, repr(result.error))",
    )
    assert said == "True ValueError('order 7 was not paid')"
    [message] = server.do("DQ.PEEK", "taskiq", "dead")
    assert message[b"error"].startswith(b"ValueError: order 7 was not paid\n")


def test_a_delayed_task_is_cancelled_by_its_id(server, produce):
    said = in_shop(
        produce,
        f"task = await confirm.kicker().with_labels(delay={HOUR}).kiq(1)",
        "print(await broker.cancel(task.task_id), await broker.cancel(task.task_id))",
    )
    assert said == "delayed None"
    assert server.do("DQ.LEN", "taskiq") == 0


def test_a_result_is_kept_with_its_message(server, start, produce):
    worker(start)
    said = in_shop(
        produce,
        "task = await total.kiq([1, 2, 3])",
        "print((await task.wait_result(timeout=60)).return_value, task.task_id)",
    ).split()
    assert said[0] == "6"
    assert server.message("taskiq", said[1])["state"] == b"done"


def test_nothing_is_lost_if_workers_and_server_are_killed(server, start, produce, done):
    server.do("DQ.CREATE", "taskiq", "LEASE", 1000, "BACKOFF", 50, 200)

    def push(orders):
        in_shop(produce, f"for order in {orders}: await charge.kiq(order)")

    survive(server, lambda: worker(start), push, done)
    wait("nothing is left", lambda: server.do("DQ.LEN", "taskiq") == 0)
    assert server.do("DQ.LEN", "taskiq", "dead") == 0


def test_a_client_that_exists_is_taken(server, produce):
    said = produce(
        "taskiq",
        "import asyncio, redis.asyncio as redis, shop\n"
        "from dq_client.taskiq import DqBroker\n"
        "async def main():\n"
        f" broker = DqBroker(redis.Redis(port={server.port}), 'other')\n"
        " await shop.confirm.kicker().with_broker(broker).kiq(1)\n"
        " print(await broker.queue.len())\n"
        "asyncio.run(main())",
    )
    assert said == "1"


def test_taskiqs_own_retries_take_the_place_of_their_task(server, start, produce, done):
    here = {"PYTHONPATH": str(pathlib.Path(__file__).parent)}
    start("taskiq", "taskiq", "worker", "retrying:broker", "--workers", "1", **here)
    produce("taskiq", "import asyncio, retrying; asyncio.run(retrying.insist.kiq(1))", **here)
    wait("the third attempt succeeds", lambda: done() == ["insist 1 at attempt 3"])
    wait("nothing is left", lambda: server.do("DQ.LEN", "retrying") == 0)


def test_a_task_that_the_worker_does_not_know_is_not_lost(server, start, produce):
    worker(start)
    server.do("DQ.PUSH", "taskiq", '{"card": "4711"}', "ID", "m")
    unknown = '{"task_id":"n","task_name":"shop:gone","labels":{},"labels_types":{},"args":[],"kwargs":{}}'
    server.do("DQ.PUSH", "taskiq", unknown, "ID", "n")
    for id, said in [("m", b"the payload is no message of Taskiq"), ("n", b"this worker has no task 'shop:gone'")]:
        wait("it is delayed", lambda id=id: server.message("taskiq", id)["state"] == b"delayed")
        error = server.message("taskiq", id)["error"]
        assert said in error and b"4711" not in error


# --- the broker, as Taskiq's worker uses it ---


def anything() -> None:
    """A task."""


def test_leases_are_kept_while_a_task_blocks_the_event_loop(server):
    async def listen():
        broker = DqBroker(server.url, lease=10)
        await broker.task(anything).kicker().with_task_id("t").kiq()
        listener = broker.listen()
        task = await listener.__anext__()
        first = server.message("taskiq", "t")["deadline"]
        wait("the lease is extended", lambda: server.message("taskiq", "t").get("deadline", 0) > first)
        task.ack()
        await listener.aclose()
        await broker.shutdown()

    asyncio.run(listen())
    assert server.info("taskiq")["acked"] == 1


def test_what_was_not_begun_is_given_back_without_counting(server):
    async def listen():
        broker = DqBroker(server.url, prefetch=3)
        task = broker.task(anything)
        for _ in range(3):
            await task.kiq()
        listener = broker.listen()
        task = await listener.__anext__()
        wait("all are delivered", lambda: server.do("DQ.LEN", "taskiq", "inflight") == 3)
        await listener.aclose()
        task.ack()
        await broker.shutdown()

    asyncio.run(listen())
    wait("two are ready", lambda: server.do("DQ.LEN", "taskiq", "ready") == 2)
    assert [message[b"attempt"] for message in server.do("DQ.PEEK", "taskiq", "ready", "COUNT", 2)] == [0, 0]
    assert server.info("taskiq")["acked"] == 1


def test_a_task_that_taskiq_drops_without_an_ack_is_retried(server, caplog):
    caplog.set_level("CRITICAL", logger="asyncio")  # What pytest keeps of a log refers to the task.

    class Broken(taskiq.TaskiqMiddleware):
        def post_execute(self, message, result):
            if attempts[0] == 1:
                raise RuntimeError("a middleware of the user fails")

    async def work():
        broker = DqBroker(server.url).with_middlewares(Broken())

        @broker.task
        def count() -> None:
            attempts[0] += 1

        receiver = asyncio.create_task(run_receiver_task(broker))
        for _ in range(2):  # Taskiq refers to a message until it takes the next one.
            await count.kiq()
        while server.info("taskiq").get("acked") != 2:
            gc.collect()  # It would come by itself at some time.
            await asyncio.sleep(0.01)
        receiver.cancel()
        await broker.shutdown()

    attempts = [0]
    server.do("DQ.CREATE", "taskiq", "BACKOFF", 50, 200)
    asyncio.run(asyncio.wait_for(work(), 60 * PATIENCE))
    assert attempts == [3]


def test_a_task_that_waits_in_a_cancelled_receiver_goes_back(server):
    async def work():
        broker = DqBroker(server.url)

        @broker.task
        async def hang() -> None:
            await asyncio.sleep(600)

        receiver = asyncio.create_task(run_receiver_task(broker, max_async_tasks=1, max_prefetch=1))
        for _ in range(2):
            await hang.kiq()
        while server.do("DQ.LEN", "taskiq", "inflight") < 2:
            await asyncio.sleep(0.01)
        receiver.cancel()
        await asyncio.gather(receiver, return_exceptions=True)
        while server.do("DQ.LEN", "taskiq", "inflight") == 2:  # One runs on, as Taskiq does not cancel it.
            gc.collect()
            await asyncio.sleep(0.01)
        assert server.do("DQ.LEN", "taskiq") == 2
        await broker.shutdown()

    asyncio.run(asyncio.wait_for(work(), 60 * PATIENCE))


def test_the_label_of_smart_retries_does_not_delay_the_first_run(server):
    async def kick():
        broker = DqBroker(server.url).with_middlewares(taskiq.SmartRetryMiddleware())
        task = broker.task(retry_on_error=True, delay=3600)(anything)
        for id, labels in [("first", {}), ("later", {"dq_delay": 3600}), ("retry", {"_retries": 1})]:
            await task.kicker().with_task_id(id).with_labels(**labels).kiq()
        await broker.shutdown()

    asyncio.run(kick())
    states = [server.message("taskiq", id)["state"] for id in ("first", "later", "retry")]
    assert states == [b"ready", b"delayed", b"delayed"]


def test_a_push_to_a_server_that_is_away_fails_with_its_cause():
    async def kick():
        broker = DqBroker(f"redis://127.0.0.1:{port}", push_timeout=0.2)
        with pytest.raises(taskiq.SendTaskError) as raised:
            await broker.task(anything).kiq()
        assert isinstance(raised.value.__cause__, dq_client.ConnectionLost)
        assert f"127.0.0.1:{port}: " in str(raised.value.__cause__)

    assert inspect.signature(DqBroker).parameters["push_timeout"].default == 10
    with pytest.raises(TypeError, match="push_timeout"):
        DqBroker(push_timeout="10")
    port = free_port()
    asyncio.run(kick())


def test_a_label_that_is_no_number_is_refused_by_name(server):
    async def kick():
        with pytest.raises(taskiq.SendTaskError) as raised:
            await DqBroker(server.url).task(anything).kicker().with_labels(priority=0.5).kiq()
        assert "'priority'" in str(raised.value.__cause__)

    asyncio.run(kick())


def test_what_cannot_be_kept_or_is_no_time_holds_no_place(server):
    async def work():
        broker = DqBroker(server.url, prefetch=1).with_result_backend(DqResultBackend(server.url))
        broker.add_middlewares(NackMiddleware())

        @broker.task
        def wrong() -> None:
            raise dq_client.Retry(after="30")

        @broker.task
        def large() -> str:
            return "x" * 70_000

        receiver = asyncio.create_task(run_receiver_task(broker, max_async_tasks=1))
        failed = await wrong.kicker().with_task_id("failed").kiq()
        done = await large.kicker().with_task_id("done").kiq()
        while not await done.is_ready():
            await asyncio.sleep(0.01)
        with pytest.raises(taskiq.ResultGetError) as raised:
            await done.get_result()
        assert isinstance(raised.value.__cause__, dq_client.NotKept)
        assert server.message("taskiq", "done")["attempt"] == 1
        assert b"Retry(after='30')" in server.message("taskiq", failed.task_id)["error"]
        receiver.cancel()
        await broker.shutdown()

    asyncio.run(asyncio.wait_for(work(), 60 * PATIENCE))
