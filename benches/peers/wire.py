"""Requests and replies over a socket: RESP2 for servers of the Redis family, and other protocols with their own parser.

Requests are encoded beforehand and sent in large writes, so that the load itself costs little compared with the
server's work."""
import socket

READ_BYTES = 1 << 18


class ServerError(Exception):
    """The server replied with an error."""


class Incomplete(Exception):
    """The bytes received so far end within a reply."""


def encode(*words):
    """Encodes a command in RESP. Words are bytes, strings or numbers."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def template(*words):
    """Returns a function that encodes a command fast. Each None among the words is a placeholder for an argument of
    bytes."""
    parts, holes = [b"*%d\r\n" % len(words)], 0
    for word in words:
        if word is None:
            parts.append(b"$%d\r\n%b\r\n")
            holes += 1
        else:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(word), word.replace(b"%", b"%%")))
    form = b"".join(parts)
    if holes == 1:
        return lambda a: form % (len(a), a)
    if holes == 2:
        return lambda a, b: form % (len(a), a, len(b), b)
    if holes == 3:
        return lambda a, b, c: form % (len(a), a, len(b), b, len(c), c)
    raise ValueError("one to three holes")


def parse_resp(data, at):
    """Returns the reply that starts at an offset, and the offset after it."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind, after = data[at], end + 2
    if kind == 36:  # $
        size = int(data[at + 1:end])
        if size < 0:
            return None, after
        if len(data) < after + size + 2:
            raise Incomplete
        return bytes(data[after:after + size]), after + size + 2
    if kind == 58:  # :
        return int(data[at + 1:end]), after
    if kind == 42:  # *
        count = int(data[at + 1:end])
        if count < 0:
            return None, after
        items = []
        for _ in range(count):
            item, after = parse_resp(data, after)
            items.append(item)
        return items, after
    if kind == 43:  # +
        return bytes(data[at + 1:end]), after
    if kind == 45:  # -
        return ServerError(data[at + 1:end].decode()), after
    raise ValueError(f"no reply starts with {bytes(data[at:at + 20])!r}")


class Connection:
    """A blocking connection. Replies come in the order of requests."""

    def __init__(self, port, parse=parse_resp):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.parse = parse
        self.data, self.at = bytearray(), 0

    def close(self):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def send(self, request):
        self.socket.sendall(request)

    def receive(self):
        received = self.socket.recv(READ_BYTES)
        if not received:
            raise ConnectionError("the server closed the connection")
        if self.at == len(self.data):
            self.data, self.at = bytearray(), 0
        self.data += received

    def reply(self):
        """Waits for the next reply and returns it."""
        while True:
            try:
                reply, self.at = self.parse(self.data, self.at)
            except Incomplete:
                self.receive()
                continue
            if isinstance(reply, ServerError):
                raise reply
            return reply

    def arrived(self):
        """Returns the replies that are complete, after a selector reported that there is something to read."""
        self.receive()
        replies = []
        while self.at < len(self.data):
            try:
                reply, self.at = self.parse(self.data, self.at)
            except Incomplete:
                break
            if isinstance(reply, ServerError):
                raise reply
            replies.append(reply)
        return replies

    def call(self, *words):
        self.send(encode(*words))
        return self.reply()

    def pipeline(self, requests, depth, replies_each=1):
        """Sends the requests with at most `depth` of them in flight. Returns all replies in order."""
        replies = []
        for first in range(0, len(requests), depth):
            some = requests[first:first + depth]
            self.send(b"".join(some))
            replies.extend([self.reply() for _ in range(len(some) * replies_each)])
        return replies


class Fan:
    """Many connections, each of which has one request in flight."""

    def __init__(self, connections):
        self.connections = connections

    def pipeline(self, requests, depth, replies_each=1):
        """The same as the method of a connection; `depth` has no meaning here."""
        replies = []
        for first in range(0, len(requests), len(self.connections)):
            pairs = list(zip(self.connections, requests[first:first + len(self.connections)]))
            for connection, request in pairs:
                connection.send(request)
            for connection, _ in pairs:
                replies.extend([connection.reply() for _ in range(replies_each)])
        return replies

    def close(self):
        for connection in self.connections:
            connection.close()
