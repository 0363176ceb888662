"""The interface of a workload: its name, the contenders for which it makes sense, and a run against one contender,
which returns figures with their units in their names."""


class Workload:
    name = ""
    title = ""
    peers = None  # names of the contenders with which the comparison makes sense; all of them

    @classmethod
    def suits(cls, contender):
        """Returns whether the comparison makes sense for this class of contender."""
        return cls.peers is None or contender.name in cls.peers

    def run(self, lab, contender):
        """Returns the figures of one contender (a class) as a dict of plain values for JSON."""
        raise NotImplementedError


def scaled(contender, count):
    """Returns how many of `count` messages this contender gets."""
    return max(int(count * contender.share), 1)


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def percentile(ordered, percent):
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]
