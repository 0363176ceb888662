"""Headers: they reach the handler."""


def test_headers_reach_the_handler(server, start, produce):
    worker = start("q=1")
    [answer] = produce({"queue": "q", "payload": '{"do": "ok"}', "headers": {"tenant": "ann", "ü": "\udcff"}})
    said = worker.wait_for("start", id=answer["id"])
    assert {"tenant": "ann", "ü": "\udcff"}.items() <= said["headers"].items()


def test_headers_stay_with_a_retry(server, start, produce):
    worker = start("q=1")
    [answer] = produce({"queue": "q", "payload": '{"do": "retry", "after": 10}', "headers": {"tenant": "ann"}})
    first, second = worker.wait_for_all(2, "start", id=answer["id"])[:2]
    assert first["headers"]["tenant"] == second["headers"]["tenant"] == "ann"
    assert second["attempt"] == 2


def test_a_message_without_headers_has_none(server, start, give):
    worker = start("q=1")
    assert worker.wait_for("start", id=give("q", "ok"))["headers"] == {}
