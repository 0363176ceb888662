"""Celery on dq: ``broker_url = "dq://host:port/db"``, ``dqs://`` with TLS, ``dq+socket://path``, after
``import dq_client.celery``.

Tasks with a countdown or an ETA wait in the server and reach a worker when they are due. A task that a worker holds is
leased, and the worker extends the lease from a thread. Transport options: ``lease`` in seconds (30),
``global_keyprefix``, ``push_timeout``, how many seconds a push to a server that does not answer takes (10), and
``client``, a client of redis-py that exists.

``Celery(…, control="dq_client.celery:Control")`` has ``app.control.revoke`` remove tasks that wait. :func:`cancel` does
so without it.

The modules ``channel`` and ``transport`` name the interfaces of kombu that are not public and are used nevertheless;
``kombu.transport.TRANSPORT_ALIASES`` is one here.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import celery
import celery.app.control
from celery.app.task import Context
from celery.signals import task_received
from kombu.serialization import prepare_accept_content
from kombu.transport import TRANSPORT_ALIASES

from .channel import ETA, Channel

__all__ = ["Control", "cancel"]

TRANSPORT_ALIASES["dq"] = "dq_client.celery.transport:Transport"
TRANSPORT_ALIASES["dqs"] = "dq_client.celery.transport:SecureTransport"

_WAITING = ("delayed", "ready")


def _restore_eta(request: Any, **_: Any) -> None:
    """Gives a task its ETA, ``self.request.eta``. Its worker has looked for one before, and does not wait."""
    properties = request.request_dict["properties"]
    if ETA in properties:
        request.request_dict["eta"] = properties.pop(ETA)


task_received.connect(_restore_eta)


def cancel(
    app: celery.Celery, task_ids: Union[str, Iterable[str]], queues: Optional[Iterable[str]] = None
) -> Dict[str, str]:
    """Removes tasks from their queues. Returns the state of each that was there.

    A task that was ``delayed`` or ``ready`` never runs: its result is ``REVOKED``, and nothing is left of it. One that
    was ``inflight`` is not delivered again, but its worker may run it. ``queues`` are those of the app by default.
    """
    states: Dict[str, str] = {}
    with app.connection_or_acquire() as connection:
        channel = connection.default_channel
        if not isinstance(channel, Channel):
            raise TypeError(f"the broker is {connection.as_uri()}: tasks can be cancelled at dq:// only")
        for id in [task_ids] if isinstance(task_ids, str) else task_ids:
            for queue in list(app.amqp.queues if queues is None else queues):
                state, message = channel.cancel(queue, id)
                if state is None:
                    continue
                states[id] = state
                if state in _WAITING:
                    _mark_as_revoked(app, id, message)
    return states


def _mark_as_revoked(app: celery.Celery, id: str, message: Any) -> None:
    """Reports it to clients that wait for the result, and to the chord that the task is part of."""
    message.accept = prepare_accept_content(app.conf.accept_content)
    args, kwargs, embedded = message.payload
    request = Context(message.headers, args=args, kwargs=kwargs, **(embedded or {}))
    app.backend.mark_as_revoked(id, "cancelled", request, store_result=not request.ignore_result)


class Control(celery.app.control.Control):
    """A control whose ``revoke`` removes the tasks that wait, and informs workers only about the others."""

    def revoke(self, task_id: Union[str, List[str], Tuple[str, ...]], destination: Any = None, **options: Any) -> Any:
        """Revokes tasks. With a ``destination`` it only informs those workers, as Celery does."""
        ids = [task_id] if isinstance(task_id, str) else list(task_id or ())
        if destination is None:
            states = cancel(self.app, ids)
            ids = [id for id in ids if states.get(id) not in _WAITING]
            if not ids:
                return None
        return super().revoke(ids, destination=destination, **options)
