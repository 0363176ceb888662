"""Asks a server something trivial from a process and connection of its own, and remembers the longest wait."""
import gc
import multiprocessing
import time

from process import go_first

GAP_SECONDS = 0.001


class Prober:
    """`with Prober(server, request) as prober: ...`, then `prober.p99_ms`, and `prober.waits`: the start and the end of
    each request, in ns on the monotonic clock."""

    def __init__(self, server, request):
        context = multiprocessing.get_context("fork")
        self.pipe, self.theirs = context.Pipe()
        self.process = context.Process(target=_probe, args=(server, request, self.theirs), daemon=True)

    def __enter__(self):
        self.process.start()
        self.theirs.close()
        self.pipe.recv()  # it is connected
        return self

    def __exit__(self, *_):
        self.pipe.send("stop")
        self.waits = self.pipe.recv()
        waits = sorted(end - start for start, end in self.waits)
        self.process.join()
        self.p99_ms = waits[len(waits) * 99 // 100] / 1e6


def _probe(server, request, pipe):
    gc.disable()
    go_first()
    connection = server.connect()
    pipe.send("ready")
    waits = []
    while not pipe.poll() or not waits:
        start = time.monotonic_ns()
        connection.send(request)
        connection.reply()
        waits.append((start, time.monotonic_ns()))
        time.sleep(GAP_SECONDS)
    pipe.send(waits)
