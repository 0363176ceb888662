"""Consumers that wait on the server: several connections in one selector's loop."""
import selectors

CONNECTIONS = 8
LOOK_SECONDS = 0.05  # how often the loop asks whether it should go on while nothing comes


def serve(connections, start, on_reply, going_on):
    """`start` is what each connection asks first; `on_reply(reply)` returns what it asks next, or None."""
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
