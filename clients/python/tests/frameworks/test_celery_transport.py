"""The transport dq:// as kombu uses it, without workers."""

import contextlib
import functools
import logging
import socket

import pytest

pytest.importorskip("celery")

import kombu
import places
import redis
import redis.sentinel
from celery_worker import wait
from proxy import Proxy
from server import NOT_NOW, OUT_OF_MEMORY, Server, free_port

import dq_client.celery


@pytest.fixture
def server():
    """A server that runs."""
    server = Server()
    try:
        yield server.boot()
    finally:
        server.close()


@pytest.fixture
def connect(server):
    """Makes connections to the server."""
    connections = []

    def connect(port=server.port, **options):
        connections.append(kombu.Connection(f"dq://127.0.0.1:{port}/0", transport_options=options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.release()


QUEUE = kombu.Queue("q", routing_key="q")


def push(connection, body, **options):
    connection.Producer().publish(body, routing_key="q", retry=True, **options)


def test_options_without_a_meaning_are_refused(connect):
    for option in ("visibility_timeout", "priority_steps", "unacked_key", "master_name", "fanout_prefix"):
        with pytest.raises(ValueError, match=f"'{option}' does not exist for dq://: there are client, "):
            connect(**{option: 1}).connect()
    with pytest.raises(ValueError, match="'leese' does not exist for dq://: there are client, .*lease"):
        connect(leese=1).connect()


def test_a_lease_is_a_time(connect):
    with pytest.raises(ValueError, match="'lease' is in seconds and more than 0, not 0"):
        connect(lease=0).connect()


def test_a_name_for_a_database_is_refused():
    with pytest.raises(ValueError, match="the database is a number"):
        kombu.Connection("dq://localhost/shop").connect()


def test_settings_of_redis_py_are_applied(server, connect):
    connection = connect(client_name="shop", socket_timeout=7)
    assert connection.transport.source.client().client_getname() == "shop"
    assert connection.transport.source.client().connection_pool.connection_kwargs["socket_timeout"] == 7


def test_a_push_to_a_server_that_is_away_says_where(connect):
    with pytest.raises(TypeError, match="'push_timeout': .*'10'"):
        connect(push_timeout="10").connect()
    settings = connect(push_timeout=50).transport.source.client().connection_pool.connection_kwargs
    assert (settings["socket_timeout"], settings["socket_connect_timeout"]) == (10, 5)
    port = free_port()
    away = connect(port)
    assert away.transport.source.client().connection_pool.connection_kwargs["socket_timeout"] == 2
    with pytest.raises(kombu.exceptions.OperationalError, match=f"127.0.0.1:{port}: .*refused"):
        push(away, "x", retry_policy={"max_retries": 1})


def test_without_the_module_a_sentence_says_so(connect):
    with contextlib.closing(Server(module=False)) as server:
        port = server.boot().port
        said = f"^127.0.0.1:{port}: the server has not loaded the module dq: "
        with pytest.raises(kombu.exceptions.OperationalError, match=said):
            push(connect(port), "x", retry_policy={"max_retries": 1})


def test_a_channel_that_closes_while_writes_are_paused_harms_nobody(server, connect):
    connection = connect()
    consumer = connection.Consumer(QUEUE, callbacks=[lambda body, message: message.ack()])
    consumer.consume()
    server.do("CLIENT", "PAUSE", 600_000, "WRITE")
    with pytest.raises(socket.timeout):
        connection.drain_events(timeout=0.1)

    def waits(flag):
        return any(it["cmd"].lower() == "dq.mpop" and flag in it["flags"] for it in server.admin.client_list())

    wait("the pop is put off", lambda: waits("b"))
    connection.default_channel.close()
    assert server.admin.ping()
    wait("its pop is gone", lambda: not waits(""))
    server.do("CLIENT", "UNPAUSE")


def test_an_address_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"dq://, dqs:// or dq\+socket://, not dq\+http://"):
        kombu.Connection("dq+http://localhost").connect()


def test_the_database_of_a_unix_socket_is_given_as_ever(tmp_path):
    with places.unix_socket(tmp_path) as place:
        connection = kombu.Connection(f"dq+socket://{tmp_path}/socket?virtual_host=3")
        push(connection, 1)
        connection.release()
        assert place.server.info("q") == {}
        assert place.server.admin.info("keyspace")["db3"]["keys"] == 1


def test_a_cluster_needs_a_prefix_for_one_slot(tmp_path):
    with places.cluster(tmp_path) as place:
        client = eval(place.client)
        with pytest.raises(ValueError, match="set the transport option 'global_keyprefix' to a name in braces"):
            kombu.Connection("dq://", transport_options={"client": client}).connect()


def test_a_consumer_finds_the_new_master_of_a_sentinel(tmp_path):
    with places.sentinel(tmp_path) as place:
        options, heard = {"client": eval(place.client)}, []
        connection = kombu.Connection("dq://", transport_options=options)
        news = kombu.Queue("reader", kombu.Exchange("news", type="fanout"), auto_delete=True)

        def take(body, message):
            heard.append(body)
            message.ack()

        def heard_after(body, **where):
            try:
                kombu.Connection("dq://", transport_options=options).Producer().publish(body, **where)
                connection.drain_events(timeout=1)
            except (socket.timeout, *connection.connection_errors):
                pass
            return body in heard

        with connection.Consumer([QUEUE, news], callbacks=[take]):
            for n in range(2):
                task, broadcast = f"task {n}", f"news {n}"
                wait("a task comes", functools.partial(heard_after, task, routing_key="q"))
                wait(
                    "a broadcast comes",
                    functools.partial(heard_after, broadcast, exchange=news.exchange, declare=[news]),
                )
                place.server.kill9()
        connection.release()


def test_a_key_of_another_type_is_explained(server, connect):
    server.do("LPUSH", "q", "a task of the Redis transport")
    with pytest.raises(ValueError, match="the key 'q' is not a queue of dq; .*global_keyprefix"):
        QUEUE(connect().channel()).declare()


def test_a_prefix_names_all_keys(server, connect):
    with connect(global_keyprefix="shop:") as connection, connection.channel() as channel:
        kombu.Queue("q", kombu.Exchange("e"), routing_key="r")(channel).declare()
        kombu.Producer(channel).publish(1, exchange="e", routing_key="r")
    assert sorted(server.do("KEYS", "*")) == [b"shop:dq.bindings.e", b"shop:q"]


def test_a_client_that_exists_is_used(server, connect):
    client = redis.Redis(port=server.port, decode_responses=True, protocol=3)
    connection = connect(port=1, client=client)
    push(connection, {"a": 1})
    assert QUEUE(connection.channel()).get().payload == {"a": 1}
    connection.release()
    assert client.ping()


def test_tls_has_a_scheme_of_its_own():
    connection = kombu.Connection("dqs://host:6390/3?ssl_cert_reqs=required&ssl_ca_certs=/ca.pem")
    pool = connection.transport.source.client().connection_pool
    settings = pool.connection_kwargs
    assert pool.connection_class is redis.SSLConnection
    assert (settings["host"], settings["port"], settings["db"]) == ("host", 6390, 3)
    assert settings["ssl_ca_certs"] == "/ca.pem"
    connection = kombu.Connection("dq://host", ssl={"ca_certs": "/ca.pem"})  # broker_use_ssl
    assert connection.transport.source.client().connection_pool.connection_kwargs["ssl_ca_certs"] == "/ca.pem"


def test_a_password_is_used_and_not_logged(server, caplog):
    server.do("CONFIG", "SET", "requirepass", "s3cret")
    caplog.set_level(logging.DEBUG)
    connection = kombu.Connection(f"dq://:s3cret@127.0.0.1:{server.port}/0")
    push(connection, 1)
    assert connection.as_uri() == f"dq://:**@127.0.0.1:{server.port}/0"
    server.kill9()
    with pytest.raises(redis.ConnectionError) as error:
        connection.default_channel.queue_purge("q")
    assert "s3cret" not in caplog.text + repr(connection) + repr(connection.transport) + repr(error.value)
    server.admin = redis.Redis(port=server.port, password="s3cret")


def test_purge_and_size_count_what_waits(server, connect):
    connection = connect()
    for n in range(3):
        push(connection, n)
    push(connection, 3, headers={"eta": "2100-01-01T00:00:00+00:00"})
    bound = QUEUE(connection.channel())
    message = bound.get()
    assert bound.queue_declare(passive=True).message_count == 4
    assert bound.purge() == 3
    message.ack()
    assert bound.queue_declare(passive=True).message_count == 0


def test_what_is_rejected_is_dead_and_kept(server, connect):
    connection = connect()
    push(connection, "x")
    QUEUE(connection.channel()).get().reject()
    [message] = server.do("DQ.PEEK", "q", "dead")
    assert message[b"reason"] == b"rejected"


def test_what_is_requeued_is_redelivered(connect):
    connection = connect()
    push(connection, "x")
    bound = QUEUE(connection.channel())
    first = bound.get()
    assert first.delivery_info["redelivered"] is False
    first.requeue()
    assert bound.get().delivery_info["redelivered"] is True


def test_what_cannot_be_read_is_delivered_again(server, connect):
    for payload in ("no JSON", "[]", "{}"):
        server.do("DQ.PUSH", "q", payload)
    connection = connect()
    push(connection, "x")
    assert QUEUE(connection.channel()).get().payload == "x"
    waiting = server.do("DQ.PEEK", "q", "delayed", "COUNT", 9)
    assert [fields[b"error"] for fields in waiting] == [b"the payload is no message of kombu, which is JSON"] * 3


def test_the_server_alone_decides_when_a_task_is_due(server, connect):
    connection = connect()
    push(connection, "x", headers={"id": "t", "eta": "2100-01-01T00:00:00"})
    bound = QUEUE(connection.channel())
    assert server.message("q", "t")["due"] == 4102444800000
    assert bound.get() is None
    server.do("DQ.PROMOTE", "q")
    assert "eta" not in bound.get().headers


def test_a_task_id_that_no_message_can_have_is_mapped(server, connect):
    for id in ("a#b", "123456789012-1", "x" * 300):
        push(connect(), 1, headers={"id": id})
        state, message = connect().default_channel.cancel("q", id)
        assert (state, message.headers["id"]) == ("ready", id)
    assert server.do("DQ.LEN", "q") == 0


def test_a_retry_that_is_pushed_before_the_ack_is_kept(server, connect):
    connection = connect()
    push(connection, "first", headers={"id": "t"})
    bound = QUEUE(connection.channel())
    first = bound.get()
    push(connection, "again", headers={"id": "t", "retries": 1})
    assert bound.get() is None
    first.ack()
    assert bound.get().payload == "again"


def test_a_push_whose_reply_is_lost_is_made_once(server, connect):
    proxy = Proxy(server.port)
    try:
        connection = connect(port=proxy.port)
        connection.connect()
        proxy.lose_the_reply_to(b"DQ.PUSH")
        push(connection, "x")
        proxy.lose_the_reply_to(b"DQ.PUSH")
        push(connection, "y", headers={"id": "t"})
        assert server.calls("dq.push") == 2
        assert server.do("DQ.LEN", "q") == 2
    finally:
        proxy.close()


@pytest.mark.parametrize("error", [*NOT_NOW, OUT_OF_MEMORY], ids=lambda error: error.split()[0].decode())
def test_a_push_that_the_server_cannot_take_now_is_repeated(server, connect, error):
    proxy = Proxy(server.port)
    try:
        connection = connect(port=proxy.port)
        connection.connect()
        proxy.answer(b"DQ.PUSH", error)
        push(connection, "x", headers={"id": "t"})
        assert server.message("q", "t")["state"] == b"ready"
    finally:
        proxy.close()


def test_an_ack_while_the_server_is_away_is_repeated(server, connect):
    connection = connect(lease=600)
    push(connection, "x")
    message = QUEUE(connection.channel()).get()
    server.kill9()
    message.ack()
    server.boot()
    wait("it is acked", lambda: server.info("q")["acked"] == 1)


def test_a_consumer_consumes_again_after_a_restart(server, connect):
    connection, bodies = connect(), []
    with connection.Consumer(QUEUE, callbacks=[lambda body, message: (bodies.append(body), message.ack())]):
        for restart in range(2):
            push(connect(), restart)
            connection.drain_events(timeout=60)
            server.kill9()
            server.boot()
    assert bodies == [0, 1]


def test_a_broadcast_reaches_all_and_again_after_a_restart(server, connect):
    exchange = kombu.Exchange("news", type="fanout")
    connections, heard = [connect(), connect()], []
    queues = [kombu.Queue(f"reader{n}", exchange, auto_delete=True) for n in range(2)]
    consumers = [c.Consumer(q, callbacks=[lambda body, m: heard.append(body)]) for c, q in zip(connections, queues)]
    for consumer in consumers:
        consumer.consume(no_ack=True)

    def all_heard(body):
        connect().Producer(exchange=exchange).publish(body)
        for connection in connections:
            try:
                connection.drain_events(timeout=0.2)
            except socket.timeout:
                pass
        return heard.count(body) >= 2

    wait("both hear it", lambda: all_heard("one"))
    server.kill9()
    server.boot()
    wait("both hear it", lambda: all_heard("two"))
    assert server.do("KEYS", "*") == []


def test_a_queue_that_is_made_again_hears_a_broadcast_once(connect):
    exchange, connection, heard = kombu.Exchange("news", type="fanout"), connect(), []
    queue = kombu.Queue("reader", exchange, auto_delete=True)
    producer = connect().Producer(exchange=exchange)
    for _ in range(2):
        with connection.Consumer(queue, callbacks=[lambda body, message: heard.append(body)], no_ack=True):
            for body in range(3):
                producer.publish(body)
                while body not in heard:
                    connection.drain_events(timeout=60)
        said, heard[:] = list(heard), []
        assert said == [0, 1, 2]


def test_cancel_needs_a_broker_of_dq():
    app = dq_client.celery.celery.Celery(broker="memory://")
    with pytest.raises(TypeError, match="memory://.*dq://"):
        dq_client.celery.cancel(app, "t")
