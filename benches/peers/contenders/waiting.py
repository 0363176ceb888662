"""Consumers that wait on the server: several connections in the loop of one selector."""
import selectors

CONNECTIONS = 8
LOOK_SECONDS = 0.05  # how often the loop asks whether it should go on while nothing comes


def serve(connections, start, on_reply, going_on):
    """`start` is the first request of each connection; `on_reply(reply)` returns its next request, or None."""
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)
        connection.send(start)
    while going_on():
        for key, _ in selector.select(LOOK_SECONDS):
            for reply in key.fileobj.arrived():
                request = on_reply(reply)
                if request is not None:
                    key.fileobj.send(request)
    selector.close()
    for connection in connections:
        connection.close()
