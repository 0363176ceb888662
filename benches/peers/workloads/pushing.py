"""Pushes with random delays, at several depths of pipeline and over 50 connections at once. CPU us per push."""
import messages
import wire
from workloads.base import Workload, scaled

CONNECTIONS = 50


class Pushing(Workload):
    name = "pushing"
    title = "push with a random delay, CPU us a push"

    def run(self, lab, contender):
        one = contender(lab)
        figures, first = {}, 0
        for depth in (1, 16, 64):
            count = scaled(contender, lab.sizes.pushes_alone if depth == 1 else lab.sizes.pushes)
            some = messages.due_at_random(count, first)
            first += count
            with one.server.cost(count) as cost:
                one.push(some, depth=depth)
            figures[f"pipeline_{depth}_us"] = cost.us
        if one.own_client:  # BullMQ's client has one connection
            return figures
        count = lab.sizes.pushes_alone
        some = messages.due_at_random(count, first)
        fan = wire.Fan(one.server.connections(CONNECTIONS))
        with one.server.cost(count) as cost:
            one.push(some, wire=fan)
        figures[f"connections_{CONNECTIONS}_us"] = cost.us
        fan.close()
        return figures
