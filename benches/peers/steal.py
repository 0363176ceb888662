"""Steal time: how much of the time of its processors the machine did not get, because its host gave it to others.

What was measured meanwhile says more about the neighbours than about queues. So it is printed with each table, and no
table is written for others to read if it was above the limit.
"""

LIMIT = 0.02  # of the time of all processors; on a machine of one's own it is 0


def _ticks():
    with open("/proc/stat") as stat:
        return [int(ticks) for ticks in stat.readline().split()[1:9]]  # the guests are part of the first two


class Steal:
    """Counts from its creation on."""

    def __init__(self):
        self.before = _ticks()

    def share(self):
        passed = [now - before for now, before in zip(_ticks(), self.before)]
        return passed[7] / max(sum(passed), 1)


def told(share):
    """A sentence on a share, such as 0.013."""
    return f"steal time {100 * share:.1f} %" + (f", above the limit of {100 * LIMIT:g} %" if share > LIMIT else "")
