"""Pushes: each is made once, also if its connection breaks."""

import threading
import time

import pytest

from server import NOT_NOW, OUT_OF_MEMORY, PATIENCE, eventually, free_port


def test_a_push_whose_reply_was_lost_is_made_once(server, proxy, produce):
    proxy.lose_the_reply_to(b"DQ.PUSH")
    [answer] = produce({"queue": "q", "payload": "x"}, url=proxy.url)
    assert server.info("q")["pushed"] == 1
    assert server.info("q")["duplicates"] == 1
    assert server.message("q", answer["id"])["payload"] == b"x"


@pytest.mark.parametrize("kept", [1, 3, 20])
def test_a_push_whose_reply_was_cut_is_made_once(server, proxy, produce, kept):
    proxy.cut_the_reply_to(b"DQ.PUSH", kept)
    [answer] = produce({"queue": "q", "payload": "x"}, url=proxy.url)
    assert server.info("q")["pushed"] == 1
    assert server.message("q", answer["id"])["payload"] == b"x"


@pytest.mark.parametrize("error", [*NOT_NOW, OUT_OF_MEMORY], ids=lambda error: error.split()[0].decode())
def test_a_push_that_the_server_cannot_make_now_is_repeated(server, proxy, produce, error):
    server.do("DQ.PUSH", "q", "x", "ID", "there")
    proxy.answer(b"DQ.PUSH", error)
    assert produce({"queue": "q", "payload": "x", "id": "new"}, url=proxy.url) == [{"id": "new"}]
    proxy.answer(b"DQ.PUSH", error)
    assert produce({"queue": "q", "payload": "x", "id": "there"}, url=proxy.url) == [{"id": None}]


@pytest.mark.parametrize("away", ["refused", "too many clients"])
def test_a_duplicate_is_null_after_attempts_that_were_not_sent(server, produce, away):
    server.do("DQ.PUSH", "q", "x", "ID", "there")
    if away == "refused":
        server.kill9()
        threading.Timer(6.0, server.launch).start()
    else:
        server.do("CONFIG", "SET", "maxclients", 1)
        threading.Timer(6.0, server.do, ["CONFIG", "SET", "maxclients", 1000]).start()
    assert produce({"queue": "q", "payload": "x", "id": "there"}) == [{"id": None}]


def test_a_connection_that_was_closed_while_idle_is_opened_again(server, producer):
    assert producer.push(queue="q", payload="x", id="one") == {"id": "one"}
    server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    eventually("it is closed", lambda: len(server.admin.client_list()) == 1)
    time.sleep(0.3)  # It is the producer that has to notice it.
    # A push whose connection broke when it was sent may be there, so that the client could not know a duplicate.
    assert producer.push(queue="q", payload="x", id="one") == {"id": None}


def test_a_push_waits_for_a_server_that_restarts(server, produce):
    server.kill9()
    server.launch()
    [answer] = produce({"queue": "q", "payload": "x"})
    assert server.message("q", answer["id"])["payload"] == b"x"


def test_a_push_ends_after_ten_seconds_without_a_server(produce):
    begun = time.monotonic()
    assert produce({"queue": "q", "payload": "x"}, url=f"redis://127.0.0.1:{free_port()}") == [
        {"error": "ConnectionLost"}
    ]
    # A pause of up to two seconds that would outlast the ten is not begun.
    assert 8 < time.monotonic() - begun < 12 * PATIENCE


def test_a_duplicate_is_null(server, produce):
    once = {"queue": "q", "payload": "x", "id": "order-1"}
    assert produce(once, once) == [{"id": "order-1"}, {"id": None}]


def test_options_arrive(server, produce):
    [answer] = produce(
        {"queue": "q", "payload": "x", "delay": 60_000, "priority": -3, "group": "g", "headers": {"a": "1", "b": "ü"}}
    )
    fields = server.message("q", answer["id"])
    assert (fields["state"], fields["priority"], fields["group"]) == (b"delayed", -3, b"g")
    assert fields["headers"] == {b"a": b"1", b"b": "ü".encode()}


def test_errors_have_classes(server, produce):
    server.do("DQ.CREATE", "full", "MAXLEN", 1)
    server.do("DQ.PUSH", "full", "x")
    server.do("DQ.CREATE", "small", "MAXPAYLOAD", 1)
    server.do("DQ.PUSH", "dead", "x", "ID", "m")
    server.do("DQ.BURY", "dead", "m")
    assert produce(
        {"queue": "full", "payload": "x"},
        {"queue": "small", "payload": "xy"},
        {"queue": "dead", "payload": "x", "id": "m"},
    ) == [{"error": "QueueFull"}, {"error": "TooLarge"}, {"error": "DeadId"}]
    server.do("CONFIG", "SET", "maxmemory", 1)
    assert produce({"queue": "q", "payload": "x"}) == [{"error": "OutOfMemory"}]
