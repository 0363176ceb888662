"""A proxy between a client and a server that loses what a network can lose."""

import socket
import threading


class Proxy:
    """Passes bytes on, until it is told to be a network that fails."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs = []
        self._lose_replies_to = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        """Returns where it is."""
        return f"redis://127.0.0.1:{self.port}"

    def lose_the_reply_to(self, word):
        """The next connection that sends this word is cut when its reply comes."""
        self._lose_replies_to = word

    def fall_silent(self):
        """The connections that are open stay open, but nothing passes any more. New ones work."""
        for pair in self._pairs:
            pair["silent"] = True

    def close(self):
        """Ends it."""
        self._listener.close()
        for pair in self._pairs:
            for end in pair["ends"]:
                _cut(end)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            pair = {"ends": (client, server), "silent": False, "losing": False}
            self._pairs.append(pair)
            threading.Thread(target=self._pass, args=(pair, client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(pair, server, client, False), daemon=True).start()

    def _pass(self, pair, source, target, from_client):
        try:
            while data := source.recv(65536):
                if pair["silent"]:
                    continue
                if not from_client and pair["losing"]:
                    break
                if from_client and self._lose_replies_to and self._lose_replies_to in data:
                    self._lose_replies_to, pair["losing"] = None, True
                target.sendall(data)
        except OSError:
            pass
        if not pair["silent"]:
            for end in pair["ends"]:
                _cut(end)


def _cut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
