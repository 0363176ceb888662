"""How much of everything: the full run (about half an hour), and the quick one (about three)."""


class Sizes:
    """Counts of messages unless a name says otherwise."""

    def __init__(self, quick):
        self.quick = quick
        full = not quick
        self.pushes = 100_000 if full else 5_000  # a depth of pipeline
        self.pushes_alone = 30_000 if full else 2_000  # without a pipeline
        self.life = 40_000 if full else 20_000  # a round
        self.life_large = 1_000_000 if full else 100_000  # at once
        self.rounds = 5 if full else 3
        self.durable_rounds = 3 if full else 1
        self.memory = 1_000_000 if full else 30_000
        self.files = 1_000_000 if full else 30_000
        self.burst = 1_000_000 if full else 30_000
        self.falling_due = 1_000_000 if full else 20_000
        self.growth = [10_000, 100_000, 1_000_000, 5_000_000] if full else [10_000, 50_000, 200_000]
        self.growth_sample = 10_000 if full else 3_000
        self.deleted = 1_000_000 if full else 50_000
        self.queues = 100_000 if full else 10_000
        self.waiters = [1, 100, 1_000]  # clients
        self.waiter_pushes = 2_000 if full else 500
        self.limit_seconds = 5 if full else 1
        self.schedules = 100_000 if full else 10_000
        self.schedule_seconds = 20 if full else 3
        self.known_ids = 1_000_000 if full else 50_000
        self.grouped = 1_000_000 if full else 50_000
        self.groups = 100_000 if full else 5_000
        self.forwarded = 1_000_000 if full else 50_000
        self.rates = [2_000, 10_000] if full else [2_000]  # messages a second
        self.punctual_seconds = 6.0 if full else 1.5
        self.polls = [1.0, 0.010] if full else [1.0]  # seconds
        self.payload_bytes = [10, 100, 1 << 10, 64 << 10, 8 << 20]
        self.payload_total_bytes = (256 << 20) if full else (16 << 20)  # of all messages of one size
        self.payload_most = 20_000 if full else 1_000
