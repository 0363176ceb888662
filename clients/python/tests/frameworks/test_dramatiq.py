"""Dramatiq on dq: the example as an application, with Dramatiq's own workers."""

import dramatiq
import pytest
import redis
from conftest import survive, wait
from dramatiq.middleware import SkipMessage

from dq_client.dramatiq import DqBroker

QUEUE = "dramatiq:default"
HOUR = 3600_000


def worker(start, **environment):
    program = start("dramatiq", "dramatiq", "shop", "--processes", "1", "--threads", "2", **environment)
    return program.ready("Worker process is ready for action.")


def test_a_message_runs_at_once(server, start, produce, done):
    worker(start)
    produce("dramatiq", "import shop; shop.confirm.send(1)")
    wait("it ran", lambda: done() == ["confirm 1"])
    wait("it is acked", lambda: server.do("DQ.LEN", QUEUE) == 0)


def test_no_worker_holds_a_message_that_is_delayed(server, clock, start, produce, done):
    worker(start)
    produce(
        "dramatiq", f"import shop; shop.remind.send_with_options(args=(1,), delay={1000 * HOUR}); shop.confirm.send(2)"
    )
    wait("another one is completed", lambda: done() == ["confirm 2"] and server.do("DQ.LEN", QUEUE, "inflight") == 0)
    [message] = server.do("DQ.PEEK", QUEUE, "delayed")
    assert message[b"due"] - message[b"created"] >= 1000 * HOUR
    clock.set(hours=999)
    produce("dramatiq", "import shop; shop.confirm.send(3)")
    wait(
        "another one is completed",
        lambda: done() == ["confirm 2", "confirm 3"] and server.do("DQ.LEN", QUEUE, "inflight") == 0,
    )
    clock.set(hours=1000)
    wait("it ran", lambda: done() == ["confirm 2", "confirm 3", "remind 1"])


def test_a_failure_is_retried_with_the_same_id(server, start, produce, done):
    id = produce("dramatiq", "import shop; print(shop.charge.send(1).message_id)")
    worker(start)
    wait("the third attempt succeeds", lambda: done() == ["charge 1 at attempt 3"])
    wait("nothing is left", lambda: server.do("DQ.LEN", QUEUE) == 0)
    assert server.message(QUEUE, id) == {}
    assert server.do("KEYS", "*.DQ") == []


def test_a_message_that_failed_for_good_is_dead_with_its_error(server, start, produce):
    produce("dramatiq", "import shop; shop.refund.send(7)")
    worker(start)
    wait("it is dead", lambda: server.do("DQ.LEN", QUEUE, "dead"))
    [message] = server.do("DQ.PEEK", QUEUE, "dead")
    assert message[b"error"].startswith(b"ValueError: order 7 was not paid\n")
    assert message[b"reason"] == b"rejected"


def test_a_delayed_message_is_cancelled_by_its_id(server, start, produce, done):
    said = produce(
        "dramatiq",
        f"import shop; m = shop.remind.send_with_options(args=(1,), delay={HOUR})\n"
        "print(shop.broker.cancel(m.message_id), shop.broker.cancel(m.message_id))",
    )
    assert said == "delayed None"
    assert server.do("DQ.LEN", QUEUE) == 0


def test_results_are_kept_by_the_backend_of_dramatiq(start, produce):
    worker(start)
    said = produce("dramatiq", "import shop; print(shop.total.send(1, 2, 3).get_result(block=True, timeout=60000))")
    assert said == "6"


def test_a_message_that_the_worker_does_not_know_is_not_lost(server, start):
    worker(start)
    server.do("DQ.PUSH", QUEUE, "no JSON: 4711", "ID", "m")
    server.do(
        "DQ.PUSH", QUEUE, '{"queue_name":"default","actor_name":"gone","args":[],"kwargs":{},"options":{}}', "ID", "n"
    )
    for id, said in [
        ("m", b"the payload is no message of Dramatiq"),
        ("n", b"this worker has no actor 'gone'; it has"),
    ]:
        wait("it is delayed", lambda id=id: server.message(QUEUE, id)["state"] == b"delayed")
        error = server.message(QUEUE, id)["error"]
        assert said in error and b"4711" not in error


def test_nothing_is_lost_if_workers_and_server_are_killed(server, start, produce, done):
    server.do("DQ.CREATE", QUEUE, "LEASE", 1000, "RETRIES", -1)

    def push(orders):
        produce("dramatiq", f"import shop\nfor order in {orders}: shop.charge.send(order)")

    survive(server, lambda: worker(start), push, done)
    wait("nothing is left", lambda: server.do("DQ.LEN", QUEUE) == 0)
    assert server.do("DQ.LEN", QUEUE, "dead") == 0


# --- consumers, as Dramatiq's worker uses them ---


@pytest.fixture
def broker(server):
    """A broker with a client that exists."""
    broker = DqBroker(client=redis.Redis(port=server.port), lease=10)
    broker.declare_queue("default")
    return broker


@pytest.fixture
def consume(broker):
    """Makes consumers; they are closed at the end."""
    consumers = []

    def consume(prefetch):
        consumers.append(broker.consume("default", prefetch=prefetch, timeout=100))
        return consumers[-1]

    yield consume
    for consumer in consumers:
        consumer.close()


def send(broker, number):
    for _ in range(number):
        broker.enqueue(dramatiq.Message("default", "any", (), {}, {}))


def take(consumer):
    return wait("a message", lambda: next(consumer))


def test_a_consumer_holds_no_more_than_its_prefetch(server, broker, consume):
    send(broker, 3)
    consumer = consume(2)
    messages = [take(consumer), take(consumer)]
    assert next(consumer) is None
    assert server.do("DQ.LEN", QUEUE, "inflight") == 2
    consumer.ack(messages[0])
    take(consumer)


def test_leases_are_kept_while_a_message_is_worked_on(server, broker, consume):
    send(broker, 1)
    message = take(consume(1))
    first = server.message(QUEUE, message.message_id)["deadline"]
    wait("the lease is extended", lambda: server.message(QUEUE, message.message_id).get("deadline", 0) > first)
    assert server.message(QUEUE, message.message_id)["attempt"] == 1


def test_what_was_not_begun_is_given_back_without_counting(server, broker, consume):
    send(broker, 3)
    consumer = consume(3)
    message = take(consumer)
    wait("all are delivered", lambda: server.do("DQ.LEN", QUEUE, "inflight") == 3)
    consumer.requeue([message])
    consumer.close()
    wait("all are ready", lambda: server.do("DQ.LEN", QUEUE, "ready") == 3)
    assert [message[b"attempt"] for message in server.do("DQ.PEEK", QUEUE, "ready", "COUNT", 3)] == [0, 0, 0]


def test_what_is_cancelled_before_it_begins_is_skipped(broker, consume):
    send(broker, 1)
    message = take(consume(1))
    assert broker.cancel(message.message_id) == "inflight"

    def skipped():
        try:
            broker.emit_before("process_message", message)
        except SkipMessage:
            return True

    wait("it is skipped", skipped)


def test_a_flush_removes_all_messages(server, broker):
    send(broker, 2)
    broker.enqueue(dramatiq.Message("default", "any", (), {}, {}), delay=HOUR)
    broker.flush_all()
    broker.join("default", timeout=1)
    assert server.do("DQ.LEN", QUEUE) == 0
    broker.enqueue(dramatiq.Message("default", "any", (), {}, {}), delay=HOUR)
    with pytest.raises(dramatiq.QueueJoinTimeout):
        broker.join("default", timeout=1)


def test_a_priority_orders_the_queue(server, broker):
    @dramatiq.actor(broker=broker, broker_priority=5)
    def important():
        pass

    send(broker, 1)
    important.send()
    important.send_with_options(broker_priority=9)
    assert [message[b"priority"] for message in server.do("DQ.PEEK", QUEUE, "ready", "COUNT", 3)] == [9, 5, 0]


def test_a_retry_that_cannot_be_pushed_is_not_lost(server):
    broker = DqBroker(url=server.url, push_timeout=0.2)
    consumer = broker.consume("default")
    for wrong in ("a delay", "the server"):
        pushed = broker.enqueue(dramatiq.Message("default", "shop.confirm", (), {}, {}))
        message = next(consumer)
        if wrong == "the server":
            server.kill9()
        with pytest.raises((TypeError, dramatiq.errors.ConnectionClosed)) as raised:
            broker.enqueue(message, delay="30" if wrong == "a delay" else 30)
        consumer.ack(message)  # As Dramatiq's worker does, which only logs the error.
        if wrong == "the server":
            assert f"127.0.0.1:{server.port}: " in str(raised.value)
            server.boot()
        wait("it is given back", lambda id=pushed.message_id: b"error" in str(server.message(QUEUE, id)).encode())
        assert server.message(QUEUE, pushed.message_id)["state"] in (b"delayed", b"ready")
    consumer.close()
