"""Celery on dq: the example as an application, with Celery's own workers."""

import contextlib
import time
from datetime import datetime, timedelta, timezone

import pytest

pytest.importorskip("celery")

import celery
from celery.exceptions import TaskRevokedError
from celery_worker import PATIENT, ROOT, Server, Shop, wait

import dq_client.celery

HOUR = 3600
RECIPE = ROOT / "docs" / "recipes" / "celery.md"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The example with one worker, for tests that disturb nobody."""
    shop = Shop(tmp_path_factory.mktemp("celery"))
    try:
        shop.worker = shop.work("-c", "2").ready()
        yield shop
    finally:
        shop.close()


@pytest.fixture
def own(tmp_path):
    """Makes the example on a server of the test's own."""
    shops = []

    def own(**options):
        shops.append(Shop(tmp_path, **options))
        return shops[-1]

    yield own
    for shop in shops:
        shop.close()


def result(promise):
    return promise.get(timeout=PATIENT)


# --- what applications do ---


def test_a_task_runs_at_once_and_has_a_result(shop):
    assert result(shop.tasks.price.delay(7)) == 70


def test_no_worker_holds_a_delayed_task(shop):
    id = shop.tasks.remind.apply_async((1,), countdown=100 * HOUR).id
    assert result(shop.tasks.price.delay(1)) == 10
    message = shop.server.message("celery", id)
    assert message["state"] == b"delayed"
    assert 99 * HOUR * 1000 < message["due"] - message["created"] <= 100 * HOUR * 1000
    assert id not in shop.worker.text()
    assert shop.server.do("DQ.RESCHEDULE", "celery", id, "DELAY", 0) == 1
    wait("it ran", lambda: "remind 1" in shop.said())
    wait("nothing is left", lambda: shop.server.message("celery", id) == {})


def test_a_delayed_task_runs_when_its_hours_have_passed(own):
    shop = own()
    shop.work("-c", "1")
    shop.tasks.remind.apply_async((1,), countdown=100 * HOUR)
    shop.clock.set(hours=99)
    shop.tasks.confirm.delay(2)
    wait("another one is completed", lambda: shop.said() == ["confirm 2"] and shop.number("inflight") == 0)
    shop.clock.set(hours=100)
    wait("it ran", lambda: shop.said() == ["confirm 2", "remind 1"])


def test_an_eta_is_the_due_time_to_the_millisecond(shop):
    eta = datetime(2100, 1, 2, 3, 4, 5, 678900, tzinfo=timezone(timedelta(hours=2)))
    id = shop.tasks.remind.apply_async((2,), eta=eta).id
    assert shop.server.message("celery", id)["due"] == 4102535045679
    assert dq_client.celery.cancel(shop.app, id) == {id: "delayed"}


def test_a_task_knows_its_eta(own, tmp_path):
    shop = own()
    (tmp_path / "etas.py").write_text(
        "import celery\n@celery.shared_task(bind=True)\ndef eta(self): return self.request.eta"
    )
    shop.work("-c", "1", "-I", "etas", PYTHONPATH=str(tmp_path))
    eta = datetime.now(timezone.utc) + timedelta(seconds=1)
    assert result(shop.app.send_task("etas.eta", eta=eta)) == eta.isoformat()
    assert result(shop.app.send_task("etas.eta")) is None


def test_a_retry_with_backoff_has_the_same_id(shop):
    promise = shop.tasks.charge.delay(3)
    result(promise)
    assert "charge 3 at attempt 3" in shop.said()
    wait("nothing is left", lambda: shop.server.message("celery", promise.id) == {})


def test_a_task_that_a_worker_does_not_know_is_delivered_again(shop):
    id = shop.app.send_task("shop.dance").id
    message = wait("it failed", lambda: "error" in (found := shop.server.message("celery", id)) and found)
    assert message["state"] == b"delayed" and message["attempt"] == 1
    assert message["error"] == b"this worker has no task 'shop.dance'"
    assert dq_client.celery.cancel(shop.app, id) == {id: "delayed"}


def test_a_revoked_task_leaves_nothing_behind(shop):
    promise = shop.tasks.remind.apply_async((4,), countdown=HOUR)
    shop.app.control.revoke(promise.id)
    assert shop.server.message("celery", promise.id) == {}
    with pytest.raises(TaskRevokedError):
        result(promise)
    assert promise.id not in str(shop.app.control.inspect(timeout=5).revoked())


def test_revoking_part_of_a_chord_fails_its_end(shop):
    parts = [shop.tasks.price.s(1), shop.tasks.price.s(2).set(countdown=HOUR)]
    end = celery.chord(parts)(shop.tasks.total.s())
    shop.app.control.revoke(end.parent.results[1].id)
    with pytest.raises(celery.exceptions.ChordError):
        result(shop.app.AsyncResult(end.id))


def test_groups_and_chords_come_to_their_end(shop):
    group = celery.group(shop.tasks.price.s(n) for n in range(5))
    assert result(group.delay()) == [0, 10, 20, 30, 40]
    assert result(celery.chord(group, shop.tasks.total.s()).delay()) == 100


def test_workers_answer_inspect_and_control(shop):
    [(name, answer)] = wait("it answers", lambda: shop.app.control.inspect(timeout=5).ping()).items()
    assert name.startswith("worker0@") and answer == {"ok": "pong"}
    assert shop.app.control.broadcast("pool_grow", arguments={"n": 0}, reply=True, timeout=5, limit=1)
    assert shop.server.do("KEYS", "*pidbox*") == []


def test_events_of_tasks_are_heard(shop):
    heard = []
    shop.app.control.enable_events(reply=True, timeout=5, limit=1)
    with shop.app.connection() as connection:
        handlers = {"task-succeeded": lambda event: heard.append(event["uuid"])}
        with shop.app.events.Receiver(connection, handlers=handlers).consumer_context() as (connection, *_):
            id = shop.tasks.price.delay(1).id
            while id not in heard:
                connection.drain_events(timeout=PATIENT)


def test_a_worker_consumes_a_queue_that_is_added(shop):
    shop.app.control.add_consumer("second", reply=True, timeout=5, limit=1)
    assert result(shop.tasks.price.apply_async((8,), queue="second")) == 80


def test_the_rights_of_the_recipe_are_enough(own):
    shop = own()
    [line] = [line for line in RECIPE.read_text().splitlines() if "ACL SETUSER" in line]
    shop.server.do(*line.split())
    port = shop.server.port
    broker = f"dq://celery:secret@127.0.0.1:{port}/0"
    worker = shop.work("-c", "1", BROKER_URL=broker).ready()
    with celery.Celery(broker=broker, backend=f"redis://127.0.0.1:{port}/0") as app:
        assert result(app.send_task("shop.price", (1,))) == 10
        assert app.control.inspect(timeout=5).ping()
        assert dq_client.celery.cancel(app, app.send_task("shop.price", (1,), countdown=HOUR).id)
        assert app.control.purge() == 0
    assert worker.stop() == 0
    assert "secret" not in worker.text() and "dq://celery:**@" in worker.text()


# --- order, prefetch and priorities ---


def test_higher_priorities_are_delivered_first(own):
    shop = own()
    shop.app.control.purge()
    for priority in (0, 5, 9, 3):
        shop.tasks.confirm.apply_async((priority,), priority=priority)
    shop.work("-P", "solo")
    wait("all ran", lambda: len(shop.said()) == 4)
    assert shop.said() == ["confirm 9", "confirm 5", "confirm 3", "confirm 0"]


@pytest.mark.parametrize("pool", ["prefork", "threads", "gevent"])
def test_a_worker_holds_no_more_than_it_prefetches(own, pool):
    if pool == "gevent":
        pytest.importorskip("gevent")
    shop = own()
    for order in range(9):
        shop.tasks.convert.delay(order, 0.05 if order < 6 else 600)
    shop.work("-c", "3", "-P", pool)
    largest = 0

    def all_are_held():
        nonlocal largest
        largest = max(largest, shop.number("inflight"))
        return len(shop.said("begun")) == 9

    wait("the last ones run", all_are_held)
    assert largest == shop.number("inflight") == 3


def test_what_has_not_begun_goes_back_when_a_worker_stops(own):
    shop = own()
    shop.app.control.purge()
    ids = [shop.tasks.convert.delay(order, 5).id for order in range(4)]
    worker = shop.work("-c", "1", "--prefetch-multiplier", "4").ready()
    wait("it holds all and works on one", lambda: shop.number("inflight") == 4 and shop.said("begun"))
    assert worker.stop() == 0
    begun = shop.said("begun")
    waiting = [shop.server.message("celery", id) for id in ids if shop.server.message("celery", id)]
    assert shop.said() == [f"convert {order}" for order in begun]
    assert len(waiting) == 4 - len(begun) > 0
    assert all(message["state"] == b"ready" and message["attempt"] == 0 for message in waiting)


# --- what dies ---


def test_a_worker_that_lives_keeps_its_lease(own):
    shop = own(lease=5)
    shop.tasks.convert.delay(1, 11)
    shop.work("-c", "1")
    shop.work("-c", "1")
    wait("it is done", lambda: shop.said() == ["convert 1"])
    assert shop.said("begun") == ["1"]
    wait("it is acked", lambda: shop.number() == 0)


def test_the_task_of_a_killed_worker_runs_again(own):
    shop = own(lease=3)
    id = shop.tasks.convert.delay(1, 600).id
    worker = shop.work("-c", "1")
    wait("it runs", lambda: shop.said("begun") == ["1"])
    worker.kill9()
    shop.work("-c", "1")
    wait("it runs again", lambda: len(shop.said("begun")) > 1)
    assert shop.server.message("celery", id)["attempt"] > 1


def test_a_task_whose_process_is_lost_runs_again(own):
    shop = own()
    shop.work("-c", "1")
    promise = shop.tasks.render.delay(1)
    result(promise)
    assert shop.said() == ["render 1"]
    wait("it is acked", lambda: shop.number() == 0)


def test_nothing_is_lost_if_workers_and_server_are_killed(own):
    shop = own(lease=2)
    number = 60

    def charged():
        return {int(line.split()[1]) for line in shop.said()}

    for order in range(number):
        shop.tasks.charge.apply_async((order,), countdown=order / 20)
    workers = [shop.work("-c", "2"), shop.work("-c", "2")]
    wait("some are done", lambda: len(charged()) >= number // 5)
    workers[0].kill9()
    workers[0] = shop.work("-c", "2")
    wait("more are done", lambda: len(charged()) >= number * 2 // 5)
    shop.server.kill9()
    shop.server.boot()
    wait("still more are done", lambda: len(charged()) >= number * 3 // 5)
    for i, worker in enumerate(workers):
        assert worker.ready().stop() == 0
        workers[i] = shop.work("-c", "2")
    wait("all are done", lambda: charged() == set(range(number)))
    wait("nothing is left", lambda: shop.number() == 0)
    assert shop.number("dead") == 0


def test_a_running_task_survives_a_restart_of_the_server(own):
    shop = own(lease=30)
    id = shop.tasks.convert.delay(1, 600).id
    shop.work("-c", "1")
    wait("it runs", lambda: shop.said("begun") == ["1"])
    shop.server.kill9()
    deadline = shop.server.boot().message("celery", id)["deadline"]
    wait("its lease is extended", lambda: shop.server.message("celery", id)["deadline"] > deadline)
    assert shop.said("begun") == ["1"]


def test_a_worker_ends_while_its_server_is_away(own):
    shop = own()
    worker = shop.work("-c", "1", "-E").ready()
    shop.server.kill9()
    end = time.monotonic() + 6  # Its heartbeats are due every two seconds.
    wait("heartbeats have failed", lambda: time.monotonic() > end)
    assert worker.stop() == 0


def test_a_worker_waits_for_the_module_with_a_sentence(own):
    shop = own()
    with contextlib.closing(Server(module=False)) as bare:
        worker = shop.work("-c", "1", REDIS_URL=f"{bare.boot().url}/0")
        said = "the server has not loaded the module dq: unknown command 'DQ.LEN'. Trying again in"
        wait("it says what it waits for", lambda: said in " ".join(worker.text().split()))
        assert "Traceback" not in worker.text()
        assert worker.stop() == 0
