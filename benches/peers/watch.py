"""Sees the pauses of the machine: a process on each core that asks nobody anything, and notes when it ran too late.

That it ran too late is a pause only if nothing else could be in its way. If it may not go first, no pauses are seen.
"""
import gc
import multiprocessing
import os
import time

from process import go_first

GAP_SECONDS = 0.002
LATE_NS = 1_000_000


class Watch:
    """`with Watch() as watch: ...`, then `watch.pauses`: start and end of each, in ns on the monotonic clock."""

    def __enter__(self):
        context = multiprocessing.get_context("fork")
        self.watchers = []
        for core in range(min(os.cpu_count(), 2)):  # those of the servers
            pipe, theirs = context.Pipe()
            process = context.Process(target=_watch, args=(core, theirs), daemon=True)
            process.start()
            pipe.recv()
            self.watchers.append((pipe, process))
        return self

    def __exit__(self, *_):
        self.pauses = []
        for pipe, process in self.watchers:
            pipe.send("stop")
            self.pauses.extend(pipe.recv())
            process.join()

    def paused_ns(self, start, end):
        """How much of this time the machine paused, on either core."""
        paused = 0
        for from_, to in sorted(self.pauses):
            from_ = max(from_, start)
            if min(to, end) > from_:
                paused += min(to, end) - from_
                start = to
        return paused

    def longest_wait_ms(self, waits, since_ns=0):
        """The longest of these waits (start and end, in ns), without pauses of the machine and the time before
        `since_ns`."""
        waits = [(max(start, since_ns), end) for start, end in waits if end > since_ns]
        return max([end - start - self.paused_ns(start, end) for start, end in waits], default=0) / 1e6


def _watch(core, pipe):
    gc.disable()
    os.sched_setaffinity(0, {core})
    is_first = go_first()
    pipe.send("ready")
    pauses = []
    last = time.monotonic_ns()
    while not pipe.poll():
        time.sleep(GAP_SECONDS)
        now = time.monotonic_ns()
        due = last + int(GAP_SECONDS * 1e9)
        if is_first and now > due + LATE_NS:
            pauses.append((due, now))
        last = now
    pipe.send(pauses)
