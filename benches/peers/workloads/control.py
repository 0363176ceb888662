"""The cost of the server's own commands, by which figures are divided. It is measured in the same process as the
contender and at nearly the same time."""
import messages
import wire

SET, GET, DEL = wire.template("SET", None, None), wire.template("GET", None), wire.template("DEL", None)
ZADD = wire.template("ZADD", "control", None, None)


def three_commands_us(server, count, depth=64):
    """Returns the CPU time of SET + GET + DEL of a 100-byte value, in us."""
    keys = [b"control:%d" % number for number in range(count)]
    body = messages.payload(0, 100)
    total = 0.0
    for requests in ([SET(key, body) for key in keys], [GET(key) for key in keys], [DEL(key) for key in keys]):
        with server.cost(count) as cost:
            server.connection.pipeline(requests, depth)
        total += cost.us
    return total


def zadd_us(server, some, depth=64):
    """Returns the CPU time of a ZADD of a 12-byte member with the due time of a message as score, in us."""
    requests = [ZADD(b"%d" % due, b"%012d" % number) for number, due, _ in some]
    with server.cost(len(requests)) as cost:
        server.connection.pipeline(requests, depth)
    return cost.us
