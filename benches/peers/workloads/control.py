"""The server's own commands, in the same process as a contender and close in time: what figures are divided by."""
import messages
import wire

SET, GET, DEL = wire.template("SET", None, None), wire.template("GET", None), wire.template("DEL", None)
ZADD = wire.template("ZADD", "control", None, None)


def three_commands_us(server, count, depth=64):
    """CPU us of SET + GET + DEL of a 100-byte value."""
    keys = [b"control:%d" % number for number in range(count)]
    body = messages.payload(0, 100)
    total = 0.0
    for requests in ([SET(key, body) for key in keys], [GET(key) for key in keys], [DEL(key) for key in keys]):
        with server.cost(count) as cost:
            server.connection.pipeline(requests, depth)
        total += cost.us
    return total


def zadd_us(server, some, depth=64):
    """CPU us of a ZADD of a 12-byte member, scored by the due times of messages."""
    requests = [ZADD(b"%d" % due, b"%012d" % number) for number, due, _ in some]
    with server.cost(len(requests)) as cost:
        server.connection.pipeline(requests, depth)
    return cost.us
