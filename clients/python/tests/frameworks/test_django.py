"""The tasks of Django on dq: the example as a project, with ``manage.py dq_worker``."""

import json
import os

import pytest
from conftest import EXAMPLES, survive, wait

QUEUE = "django:default"
HEAD = """
import datetime, django, os, time
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
django.setup()
from django.db import transaction
from django.utils import timezone
from shop.tasks import *

def finished(result):
    while not result.is_finished:
        time.sleep(0.05)
        result.refresh()
    return result
"""


def worker(start, *words):
    program = start("django", "python", "manage.py", "dq_worker", "--concurrency", "4", *words)
    return program.ready(" works on ")


def in_shop(produce, lines):
    return produce("django", HEAD + lines)


def test_a_task_runs_at_once(server, start, produce, done):
    worker(start)
    in_shop(produce, "confirm.enqueue(1)")
    wait("it ran", lambda: done() == ["confirm 1"])
    wait("it is completed", lambda: server.do("DQ.LEN", QUEUE) == 0)


def test_no_worker_holds_a_task_that_is_delayed(server, clock, start, produce, done):
    worker(start)
    said = in_shop(
        produce,
        "at = timezone.now() + datetime.timedelta(days=1000)\n"
        "result = confirm.using(run_after=at).enqueue(1)\n"
        "result.refresh()\n"
        "print(result.status, result.task.run_after == at, result.enqueued_at < at, result.started_at)\n"
        "confirm.enqueue(2)",
    )
    assert said == "READY True True None"
    wait("another one is completed", lambda: done() == ["confirm 2"] and server.do("DQ.LEN", QUEUE, "inflight") == 0)
    assert server.do("DQ.LEN", QUEUE, "delayed") == 1
    clock.set(hours=23_999)
    in_shop(produce, "confirm.enqueue(3)")
    wait(
        "another one is completed",
        lambda: done() == ["confirm 2", "confirm 3"] and server.do("DQ.LEN", QUEUE, "inflight") == 0,
    )
    clock.set(hours=24_000)
    wait("it ran", lambda: done() == ["confirm 2", "confirm 3", "confirm 1"])


def test_a_task_with_a_higher_priority_is_first(server, produce):
    in_shop(produce, "confirm.enqueue(1)\nconfirm.using(priority=100).enqueue(2)")
    assert [message[b"priority"] for message in server.do("DQ.PEEK", QUEUE, "ready", "COUNT", 2)] == [100, 0]


def test_a_result_tells_all(clock, start, produce):
    clock.set(hours=-1)
    worker(start)
    said = in_shop(
        produce,
        "r = finished(total.enqueue(1, 2, 3))\n"
        "print(r.status, r.return_value, r.args, r.kwargs, r.attempts, r.worker_ids[0].endswith(':django'), r.errors)\n"
        "print(r.enqueued_at <= r.started_at, r.started_at == r.last_attempted_at, r.started_at <= r.finished_at)\n"
        "print(total.get_result(r.id) == r)",
    )
    first, second, same = said.splitlines()
    assert first == "SUCCESSFUL 6 [1, 2, 3] {} 1 True []"
    assert second == "True True True" and same == "True"


def test_a_result_equals_what_was_enqueued(produce):
    assert in_shop(produce, "r = total.enqueue(1, 2)\nprint(r == total.get_result(r.id))") == "True"


def test_an_error_is_retried_with_the_backoff_of_the_queue(server, start, produce, done):
    server.do("DQ.CREATE", QUEUE, "BACKOFF", 50, 200)
    worker(start)
    said = in_shop(
        produce, "r = finished(charge.enqueue(1))\nprint(r.status, r.attempts, [e.exception_class for e in r.errors])"
    )
    assert said == "SUCCESSFUL 3 [<class 'RuntimeError'>, <class 'RuntimeError'>]"
    assert done() == ["charge 1 at attempt 3"]


def test_a_task_that_failed_for_good_is_dead_with_its_error(server, start, produce):
    worker(start, "--backend", "strict")
    said = in_shop(
        produce,
        "r = finished(refund.enqueue(7))\nprint(r.status, r.errors[0].exception_class, r.errors[0].traceback[-40:])",
    )
    assert said.endswith("order 7 was not paid") and said.startswith("FAILED <class 'ValueError'>")
    [message] = server.do("DQ.PEEK", "strict:default", "dead")
    assert message[b"error"] == b"ValueError: order 7 was not paid"


def test_what_is_no_task_is_not_run(server, start):
    worker(start)
    server.do("DQ.PUSH", QUEUE, '{"task": "os.system", "args": ["true"]}', "ID", "m")
    server.do("DQ.PUSH", QUEUE, "no JSON", "ID", "n")
    for id, said in [
        ("m", b"UnknownTask: 'os.system' is not a task"),
        ("n", b"UnknownTask: the payload is not JSON of"),
    ]:
        wait("it is delayed", lambda id=id: server.message(QUEUE, id)["state"] == b"delayed")
        assert server.message(QUEUE, id)["error"].startswith(said)


ODD = """
import asyncio, functools
from django.utils import translation
from shop.tasks import confirm, db, task

def hidden(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@hidden
async def later():
    await asyncio.sleep(0)
    db.rpush("done", "later")

def cancelled():
    raise asyncio.CancelledError

async def cancelled_while_it_waits():
    raise asyncio.CancelledError

def generator():
    yield db.rpush("done", "generator")

def speaks(language):
    db.rpush("done", translation.get_language())
    translation.activate(language)

later, cancelled, cancelled_while_it_waits, generator, speaks = map(
    task, [later, cancelled, cancelled_while_it_waits, generator, speaks]
)
"""


@pytest.fixture
def odd(server, start, tmp_path):
    """A worker that also has odd tasks, one at a time. Returns a function that pushes a call of one of them."""
    (tmp_path / "odd.py").write_text(ODD)
    path = os.pathsep.join([str(EXAMPLES / "django"), str(tmp_path)])
    start("django", "python", "manage.py", "dq_worker", "--concurrency", "1", PYTHONPATH=path).ready(" works on ")

    def push(name, *args):
        return server.do("DQ.PUSH", QUEUE, json.dumps({"task": f"odd.{name}", "args": args}), "RETAIN", 60_000).decode()

    return push


def test_a_task_that_a_decorator_hides_is_awaited(server, odd, done):
    id = odd("later")
    wait("it is done", lambda: server.message(QUEUE, id)["state"] == b"done")
    assert done() == ["later"]


@pytest.mark.parametrize("name", ["cancelled", "cancelled_while_it_waits"])
def test_a_task_that_is_cancelled_from_within_has_failed(server, odd, name):
    id = odd(name)
    wait("it failed", lambda: (server.message(QUEUE, id).get("error") or b"").startswith(b"CancelledError"))
    wait("it is recorded", lambda: b'["asyncio.exceptions.CancelledError"' in server.message(QUEUE, id)["checkpoint"])


def test_a_generator_is_no_task(server, odd, done):
    id = odd("generator")
    wait("it failed", lambda: b"returned a generator" in (server.message(QUEUE, id).get("error") or b""))
    assert done() == []


def test_each_task_begins_in_the_language_of_the_settings(odd, done):
    for language in ("de", "fr", "it"):
        odd("speaks", language)
    wait("all have spoken", lambda: len(done()) == 3)
    assert len(set(done())) == 1


def test_a_delayed_task_is_cancelled_by_its_id(server, produce):
    said = in_shop(
        produce,
        "r = confirm.using(run_after=timezone.now() + datetime.timedelta(hours=1)).enqueue(1)\n"
        "backend = confirm.get_backend()\n"
        "print(backend.cancel(r.id), backend.cancel(r.id))\n"
        "try:\n r.refresh()\nexcept Exception as error:\n print(type(error).__name__)",
    )
    assert said.split() == ["delayed", "None", "TaskResultDoesNotExist"]
    assert server.do("DQ.LEN", QUEUE) == 0


def test_a_task_is_pushed_with_the_commit(server, produce):
    said = in_shop(
        produce,
        "queue = refund.get_backend().queue()\n"
        "with transaction.atomic():\n refund.enqueue(1)\n print(queue.len_sync())\n"
        "print(queue.len_sync())\n"
        "try:\n with transaction.atomic():\n  refund.enqueue(2)\n  raise KeyError\n"
        "except KeyError:\n print(queue.len_sync())",
    )
    assert said.split() == ["0", "1", "1"]


def test_a_push_to_a_server_that_is_away_fails_with_its_cause(produce):
    said = in_shop(
        produce,
        "from dq_client import ConnectionLost\n"
        "from dq_client.django import DqBackend\n"
        "backend = DqBackend('default', {'OPTIONS': {'url': 'redis://127.0.0.1:1', 'push_timeout': 0.2}})\n"
        "try:\n backend.enqueue(confirm, [1], {})\nexcept ConnectionLost as error:\n print(error)\n"
        "print(DqBackend('default', {})._app._push_timeout)",
    )
    assert said == "127.0.0.1:1: Error 111 connecting to 127.0.0.1:1. Connection refused.\n10.0"


def test_options_of_another_kind_are_refused_by_name(produce):
    wrong = [
        {"retries": "5"},
        {"enqueue_on_commit": "no"},
        {"keep": "1 d"},
        {"push_timeout": "1"},
        {"url": "redis://h/a"},
    ]
    wrong.append({"url": "redis://h", "client": None})
    said = in_shop(
        produce,
        "from dq_client.django import DqBackend\n"
        "from django.core.exceptions import ImproperlyConfigured\n"
        f"for options in {wrong!r}:\n"
        " try:\n  DqBackend('default', {'OPTIONS': options})\n"
        " except ImproperlyConfigured as error:\n  print(error)",
    ).splitlines()
    words = ["retries", "enqueue_on_commit", "keep", "push_timeout", "database", "not both"]
    assert len(said) == len(words) and all(word in line for word, line in zip(words, said))


def test_work_whose_result_cannot_be_kept_is_successful(produce):
    said = in_shop(
        produce,
        "import json, shop.tasks\n"
        "from types import SimpleNamespace\n"
        "ctx = SimpleNamespace(id='default:m', consumer='w', checkpoint=None, meta={'created': 0})\n"
        "for value in (3 + 4j, 'x' * 70_000):\n"
        " shop.tasks.work = shop.tasks.task(lambda: value)\n"
        " ctx.save = lambda checkpoint: None\n"
        ' kept = json.loads(confirm.get_backend()._work(b\'{"task": "shop.tasks.work"}\', ctx))\n'
        " print(kept['call']['value'], kept['failures'], [path for path, _ in kept['errors']])",
    )
    assert said.splitlines() == ["None 0 ['dq_client.errors.NotKept']"] * 2


def test_a_client_that_exists_is_taken(server, produce):
    said = in_shop(
        produce,
        "import redis\n"
        "from dq_client.django import DqBackend\n"
        f"options = {{'client': redis.Redis(port={server.port})}}\n"
        "backend = DqBackend('default', {'OPTIONS': options})\n"
        "backend.enqueue(confirm, [1], {})\n"
        "print(backend.queue().len_sync())\n"
        "try:\n DqBackend('default', {'OPTIONS': {'retention': 1}})\nexcept Exception as error:\n print(error)",
    )
    assert said == "1\nTASKS['default']: DqBackend has no option retention"


def test_nothing_is_lost_if_workers_and_server_are_killed(server, start, produce, done):
    server.do("DQ.CREATE", QUEUE, "LEASE", 1000, "RETRIES", -1, "BACKOFF", 50, 200)

    def push(orders):
        in_shop(produce, f"for order in {orders}: charge.enqueue(order)")

    survive(server, lambda: worker(start), push, done)
    wait("nothing is left", lambda: server.do("DQ.LEN", QUEUE) == 0)
    assert server.do("DQ.LEN", QUEUE, "dead") == 0
