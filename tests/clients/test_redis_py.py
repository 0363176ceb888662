"""What a Python programmer relies on, shown with redis-py and nothing else.

usage: test_redis_py.py PORT PROTOCOL

Each function that is called test_... is a promise and starts with an empty server.
"""

import asyncio
import sys
import threading

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])


def connect(**options):
    return redis.Redis(port=PORT, protocol=PROTOCOL, **options)


def as_map(reply):
    """Returns a map as a dict: it is a map in RESP3 and a flat list in RESP2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def raises(kind, start, call, *words):
    try:
        call(*words)
    except kind as error:
        assert str(error).startswith(start), error
    else:
        raise AssertionError(f"{words} raised nothing")


def test_a_job_is_pushed_popped_and_acked(r):
    job = r.execute_command("DQ.PUSH", "jobs", b"\x00binary\xff", "ID", "order:17")
    assert job == b"order:17"
    [[ident, payload, attempt, receipt]] = r.execute_command("DQ.POP", "jobs", "LEASE", 60000)
    assert (ident, payload, attempt) == (b"order:17", b"\x00binary\xff", 1)
    assert r.execute_command("DQ.ACK", "jobs", receipt) == 1
    assert r.execute_command("DQ.ACK", "jobs", receipt) == 0


def test_nothing_is_none(r):
    assert r.execute_command("DQ.POP", "jobs") is None
    assert r.execute_command("DQ.GET", "jobs", "nobody") is None
    assert r.execute_command("DQ.NACK", "jobs", "nobody") is None
    assert r.execute_command("DQ.PUSH", "jobs", "x", "ID", "once") == b"once"
    assert r.execute_command("DQ.PUSH", "jobs", "x", "ID", "once") is None
    [[_, _, _, receipt]] = r.execute_command("DQ.POP", "jobs", "NOACK")
    assert receipt is None


def test_maps_read_as_maps(r):
    r.execute_command("DQ.PUSH", "jobs", "x", "ID", "m", "DELAY", 600000, "PRIORITY", -3)
    message = as_map(r.execute_command("DQ.GET", "jobs", "m"))
    assert (message[b"state"], message[b"priority"]) == (b"delayed", -3)
    about = as_map(r.execute_command("DQ.INFO", "jobs"))
    assert about[b"delayed"] == 1 and about[b"next-due"] == message[b"due"]
    assert about[b"oldest-ready"] is None


def test_errors_are_response_errors(r):
    raises(redis.ResponseError, "DELAY must be a whole number", r.execute_command, "DQ.PUSH", "jobs", "x", "DELAY", -1)
    raises(redis.ResponseError, "syntax error", r.execute_command, "DQ.PUSH", "jobs", "x", "SOON")
    r.set("text", "x")
    raises(redis.ResponseError, "WRONGTYPE", r.execute_command, "DQ.LEN", "text")
    r.config_set("dq.default-maxlen", 1)
    r.execute_command("DQ.PUSH", "small", "x")
    raises(redis.ResponseError, "QUEUEFULL queue holds 1 message (MAXLEN)", r.execute_command, "DQ.PUSH", "small", "x")
    r.config_set("dq.default-maxlen", 0)


def test_text_comes_as_text_where_it_is_asked_for(_):
    r = connect(decode_responses=True)
    r.execute_command("DQ.PUSH", "jobs", "ключ", "ID", "m")
    [[ident, payload, _, receipt]] = r.execute_command("DQ.POP", "jobs")
    assert (ident, payload) == ("m", "ключ") and receipt.startswith("m#")


def test_pipelines_and_transactions(r):
    for transaction in (False, True):
        r.flushall()
        with r.pipeline(transaction=transaction) as pipe:
            for n in range(100):
                pipe.execute_command("DQ.PUSH", "jobs", f"job {n}")
            pipe.execute_command("DQ.POP", "jobs", "COUNT", 100, "BLOCK", 0)
            pipe.execute_command("DQ.POP", "jobs", "BLOCK", 0 if transaction else 1)
            *ids, messages, nothing = pipe.execute()
        assert [message[0] for message in messages] == ids
        assert nothing is None


def test_a_waiting_worker_gets_the_job_when_it_is_due(r):
    got = []
    worker = threading.Thread(target=lambda: got.extend(connect().execute_command("DQ.POP", "jobs", "BLOCK", 20000)))
    worker.start()
    r.execute_command("DQ.PUSH", "jobs", "x", "ID", "m", "DELAY", 50)
    worker.join(30)
    assert [message[0] for message in got] == [b"m"]


def test_a_worker_gives_up_when_its_time_is_over(r):
    assert r.execute_command("DQ.POP", "jobs", "BLOCK", 20) is None


def test_a_worker_without_retries_hears_of_a_timeout_at_once(r):
    waiting = connect(socket_timeout=0.2, retry=Retry(NoBackoff(), 0))
    raises(redis.TimeoutError, "Timeout", waiting.execute_command, "DQ.POP", "jobs", "BLOCK", 0)


def test_a_failed_job_comes_back_and_dies_in_the_end(r):
    r.execute_command("DQ.PUSH", "jobs", "x", "ID", "m", "RETRIES", 1)
    r.execute_command("DQ.POP", "jobs")
    assert r.execute_command("DQ.NACK", "jobs", "m", "DELAY", 0, "ERROR", "boom") == b"ready"
    [[_, _, attempt, _]] = r.execute_command("DQ.POP", "jobs")
    assert attempt == 2
    assert r.execute_command("DQ.NACK", "jobs", "m", "ERROR", "boom again") == b"dead"
    message = as_map(r.execute_command("DQ.GET", "jobs", "m"))
    assert (message[b"reason"], message[b"error"]) == (b"retries", b"boom again")


def test_asyncio_workers_share_the_work(_):
    async def work(client, seen):
        while messages := await client.execute_command("DQ.POP", "jobs", "COUNT", 5, "BLOCK", 500):
            for ident, _, _, receipt in messages:
                seen.append(ident)
                assert await client.execute_command("DQ.ACK", "jobs", receipt) == 1

    async def main():
        clients = [redis.asyncio.Redis(port=PORT, protocol=PROTOCOL) for _ in range(5)]
        seen = []
        workers = [asyncio.create_task(work(client, seen)) for client in clients[1:]]
        for n in range(200):
            await clients[0].execute_command("DQ.PUSH", "jobs", n, "DELAY", n % 20)
        await asyncio.gather(*workers)
        assert len(seen) == len(set(seen)) == 200
        for client in clients:
            await client.aclose()

    asyncio.run(main())


def main():
    r = connect()
    promises = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in promises:
        r.flushall()
        print(name, flush=True)
        test(r)


if __name__ == "__main__":
    main()
