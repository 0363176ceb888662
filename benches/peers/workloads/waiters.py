"""The cost of a push while 1, 100 or 1,000 clients wait on the queue: of a message that cannot be delivered yet, and of
one that a client receives. CPU us per push; the second case includes the delivery and the next wait."""
import messages
from workloads.base import Workload
from wire import encode

ROUNDS = 3


class Waiters(Workload):
    name = "waiters"
    title = "push by waiting clients, CPU us"
    peers = ("dq",)

    def run(self, lab, contender):
        figures = {}
        for count in lab.sizes.waiters:
            one = contender(lab)
            wait = encode("DQ.POP", one.queue, "BLOCK", 0, "NOACK")
            clients = one.server.connections(count)
            for client in clients:
                client.send(wait)
            while int(one.server.info("dq")["dq_blocked_clients"]) < count:
                pass
            delayed, served = [], []
            for _ in range(ROUNDS):
                delayed.append(self.delayed_us(one, lab.sizes.waiter_pushes))
                served.append(self.served_us(one, clients, wait, lab.sizes.waiter_pushes))
            figures[str(count)] = {"delayed_us": min(delayed), "served_us": min(served)}
            one.close()
        least, most = min(lab.sizes.waiters), max(lab.sizes.waiters)
        for kind in ("delayed", "served"):
            grown = figures[str(most)][f"{kind}_us"] - figures[str(least)][f"{kind}_us"]
            figures[f"{kind}_us_a_waiter"] = grown / (most - least)
        return figures

    @staticmethod
    def delayed_us(one, pushes):
        with one.server.cost(pushes) as cost:
            one.push(messages.due_at_random(pushes), depth=1)
        return cost.us

    @staticmethod
    def served_us(one, clients, wait, pushes):
        """Clients are served in the order in which they began to wait, so each push serves the next one."""
        with one.server.cost(pushes) as cost:
            for number in range(pushes):
                one.push(messages.due_now(1, number))
                client = clients[number % len(clients)]
                body = client.reply()[0][1]
                if messages.number_of(body) != number:
                    raise messages.CheckFailed(f"waited for message {number} and got {body[:20]!r}")
                client.send(wait)
        turn = pushes % len(clients)
        clients[:] = clients[turn:] + clients[:turn]
        return cost.us
