"""The adapters on servers of every kind: a unix socket, TLS with a password, a cluster, Sentinel."""

import sys

import places
import pytest
from conftest import PATIENT
from server import PATIENCE

# For each framework: a program that has a task run by a worker. `origin` is a URL or a client.
PROGRAMS = {
    "celery": """
import celery, dq_client.celery
from celery.contrib.testing.worker import start_worker

url, options = "dq://nowhere", {"global_keyprefix": "{shop}:", "client": origin}
if isinstance(origin, str):
    url = origin.replace("rediss://", "dqs://").replace("unix://", "dq+socket://")
    del options["client"]
app = celery.Celery("shop", broker=url, broker_transport_options=options, control=dq_client.celery.Control)

@app.task(name="total")
def total(*prices):
    ran.append(sum(prices))

with start_worker(app, pool="solo", perform_ping_check=False, loglevel="WARNING"):
    waiting = total.apply_async((9,), countdown=3600)
    total.delay(1, 2)
    wait(lambda: ran == [3])
    wait(lambda: app.control.inspect(timeout=5).ping())
    assert dq_client.celery.cancel(app, waiting.id) == {waiting.id: "delayed"}
""",
    "dramatiq": """
import dramatiq
from dq_client.dramatiq import DqBroker

broker = DqBroker(url=origin) if isinstance(origin, str) else DqBroker(client=origin)
dramatiq.set_broker(broker)

@dramatiq.actor
def total(*prices):
    ran.append(sum(prices))

worker = dramatiq.Worker(broker)
worker.start()
waiting = total.send_with_options(args=(9,), delay=3600_000)
total.send(1, 2)
wait(lambda: ran == [3])
assert broker.cancel(waiting.message_id) == "delayed"
broker.join("default")
worker.stop()
""",
    "taskiq": """
import asyncio
from taskiq.api import run_receiver_task
from dq_client.taskiq import DqBroker, DqResultBackend

broker = DqBroker(origin).with_result_backend(DqResultBackend(origin))

@broker.task
async def total(prices: list) -> int:
    return sum(prices)

async def main():
    await broker.startup()
    receiver = asyncio.create_task(run_receiver_task(broker))
    waiting = await total.kicker().with_labels(delay=3600).kiq([9])
    result = await (await total.kiq([1, 2])).wait_result(timeout=60)
    assert result.return_value == 3
    assert await broker.cancel(waiting.task_id) == "delayed"
    receiver.cancel()
    await asyncio.gather(receiver, return_exceptions=True)
    await broker.shutdown()

asyncio.run(main())
""",
    "django": """
import datetime, django, os
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
django.setup()
from django.utils import timezone
from dq_client.django import DqBackend
from shop.tasks import total

backend = DqBackend("default", {"OPTIONS": {"url" if isinstance(origin, str) else "client": origin}})
worker = backend.worker({"default": 2}, grace=1)
worker.start()
tomorrow = timezone.now() + datetime.timedelta(days=1)
waiting = backend.enqueue(total.using(run_after=tomorrow), [9], {})
result = backend.enqueue(total, [1, 2], {})
wait(lambda: backend.get_result(result.id).is_finished)
assert backend.get_result(result.id).return_value == 3
assert backend.cancel(waiting.id) == "delayed"
worker.stop()
""",
}
HEAD = """
import time, redis, redis.sentinel
ran = []

def wait(condition):
    end = time.monotonic() + {seconds}
    while not condition():
        assert time.monotonic() < end, ran
        time.sleep(0.05)

origin = {origin}
"""


@pytest.fixture(params=list(PROGRAMS))
def framework(request):
    """The name of a framework, if it is installed."""
    pytest.importorskip("django_tasks" if request.param == "django" and sys.version_info < (3, 12) else request.param)
    return request.param


@pytest.mark.parametrize("given", ["client", "url"])
@pytest.mark.parametrize("kind", list(places.ALL))
def test_tasks_run_wherever_the_server_is(tmp_path, produce, framework, kind, given):
    with places.ALL[kind](tmp_path) as place:
        if given == "url" and place.url is None:
            pytest.skip("redis-py has no such URL")
        origin = place.client if given == "client" else repr(place.url)
        if kind == "tls" and given == "url" and framework != "celery":  # kombu passes no such setting by a URL.
            origin = repr(f"{place.url}&socket_connect_timeout=30")
        head = HEAD.format(origin=origin, seconds=PATIENT * PATIENCE)
        produce("django" if framework == "django" else "", head + PROGRAMS[framework])
