"""A proxy between a client and a server that loses what a network can lose."""

import re
import socket
import threading
import time

# The beginning of a command. No argument of the tests has it.
_COMMAND = re.compile(rb"(?:(?<=\r\n)|^)\*\d+(?=\r\n\$)")


class Proxy:
    """Passes bytes on, until it is told to be a network that fails."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs = []
        self._lose_replies_to = None
        self._kept_bytes = 0
        self._lost_request = None
        self._answers = {}
        self._delays = {}
        self._is_silent = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        """Returns where it is."""
        return f"redis://127.0.0.1:{self.port}"

    def lead_to(self, port):
        """Changes the port of the server."""
        self._target = port

    def lose(self, word):
        """The next connection that sends this word is cut instead, so that the server never gets it."""
        self._lost_request = word

    def lose_the_reply_to(self, word):
        """The next connection that sends this word is cut when its reply comes."""
        self._lose_replies_to, self._kept_bytes = word, 0

    def cut_the_reply_to(self, word, kept):
        """The next connection that sends this word gets so many bytes of its reply, and is cut then."""
        self._lose_replies_to, self._kept_bytes = word, kept

    def answer(self, word, error, alone=False):
        """The next command that has this word is not carried out, nor, unless it is to be ``alone``, what is sent with
        it, but answered with an error."""
        self._answers[word] = error, alone

    def has_answers(self):
        """Returns whether there are errors that no command was answered with yet."""
        return bool(self._answers)

    def delay_the_reply_to(self, word, seconds):
        """The next connection that sends this word gets replies so much later."""
        self._delays[word] = seconds

    def fall_silent(self, for_all=False):
        """The connections that are open stay open, but nothing passes any more. New ones work, or, ``for_all``, do
        not."""
        self._is_silent = for_all
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
            pair = {"ends": (client, server), "silent": self._is_silent, "losing": False, "delay": 0.0}
            self._pairs.append(pair)
            threading.Thread(target=self._pass, args=(pair, client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(pair, server, client, False), daemon=True).start()

    def _pass(self, pair, source, target, from_client):
        try:
            while data := source.recv(65536):
                if pair["silent"]:
                    continue
                if from_client and self._lost_request and self._lost_request in data:
                    self._lost_request = None
                    break
                if from_client:
                    target.sendall(self._passed_on(pair, data))
                else:
                    time.sleep(pair["delay"])
                    if pair["silent"]:
                        continue
                    target.sendall(data[: self._kept_bytes] if pair["losing"] else data)
                    if pair["losing"]:
                        break
        except OSError:
            pass
        if not pair["silent"]:
            for end in pair["ends"]:
                _cut(end)

    def _passed_on(self, pair, data):
        """Looks at what a client sends. Returns what the server is to get."""
        for word in list(self._answers):
            # Another connection may take it meanwhile.
            if word in data and (answer := self._answers.pop(word, None)):
                # The server says it, as a client may have sent this before it had the replies to earlier commands.
                error, alone = answer
                begins = [begin.start() for begin in _COMMAND.finditer(data)]
                commands = [data[begin:end] for begin, end in zip(begins, [*begins[1:], len(data)])]
                return b"".join(
                    command if alone and word not in command else _script_that_fails(error) for command in commands
                )
        for word, seconds in list(self._delays.items()):
            if word in data:
                del self._delays[word]
                pair["delay"] = seconds
        if self._lose_replies_to and self._lose_replies_to in data:
            self._lose_replies_to, pair["losing"] = None, True
        return data


def _script_that_fails(error):
    words = [b"EVAL", b"return redis.error_reply(ARGV[1])", b"0", error]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def _cut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
