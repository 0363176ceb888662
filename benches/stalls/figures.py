"""What is read from the servers after a case, its limits, and the table."""
from tables import Table, number

LIMIT_MS = 2
LOGGED_US = 100  # the slow log has only what took longer
US_A_MESSAGE = 1.5  # that a command was asked to touch


# The figures in the order of the columns.
HEADINGS = {"command_ms": "longest command", "turn_ms": "turn of a blocked client", "timer_ms": "timer run",
            "ping_ms": "PING", "effect_ms": "replica: effect", "replica_timer_ms": "replica: timer run",
            "replica_ping_ms": "replica: PING"}


def limit_ms(asked):
    """The limit of a command that was asked to touch this many messages."""
    return LIMIT_MS + asked * US_A_MESSAGE / 1000


def judge(figures, limit):
    """The figures that miss their limit, which is `limit` for a command. A PING may come behind one of each: a command,
    a turn and a run of the timer."""
    behind = 2 * LIMIT_MS
    limits = {"command_ms": limit, "turn_ms": LIMIT_MS, "timer_ms": LIMIT_MS,
              "ping_ms": figures["command_ms"] + behind, "effect_ms": limit, "replica_timer_ms": LIMIT_MS,
              "replica_ping_ms": figures["effect_ms"] + behind}
    return [key for key in HEADINGS if figures[key] > limits[key]]


def longest_ms(server):
    """The longest command and the longest turn of a blocked client, from the slow log. A turn is logged as the command
    of the client that waited."""
    command = turn = 0
    for entry in server.connection.call("SLOWLOG", "GET", "-1"):
        words = [word.upper() for word in entry[3]]
        if not words[0].startswith(b"DQ."):
            continue
        if b"BLOCK" in words:
            turn = max(turn, entry[2] / 1000)
        else:
            command = max(command, entry[2] / 1000)
    return command, turn


def timer_ms(server):
    return int(server.info("dq")["dq_timer_longest_us"]) / 1000


def shown(milliseconds):
    return number(milliseconds, 2) if milliseconds else f"< {LOGGED_US / 1000:g}"


def table_of(results):
    """Milliseconds, with the limit of the command; what misses its limit is marked."""
    rows = []
    for case in results["cases"]:
        figures = [shown(case[key]) + ("!" if key in case["missed"] else "") for key in HEADINGS]
        rows.append([case["title"], str(case["priorities"]), str(case["waiting"]), *figures,
                     number(case["limit_ms"], 1), "MISSED" if case["missed"] else "REACHED"])
    return Table(f"Worst cases with {results['messages']:,} messages: the longest of each kind, ms", [
        "", "priorities", "blocked clients", *HEADINGS.values(), "limit of the command", ""],
        rows)
