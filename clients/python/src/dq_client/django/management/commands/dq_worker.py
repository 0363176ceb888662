"""``manage.py dq_worker``: a worker for the tasks of Django."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ....cli import add_options, queue_sizes
from ...backend import DqBackend

try:
    from django.tasks import task_backends
except ImportError:
    from django_tasks import task_backends


class Command(BaseCommand):
    """Works until SIGTERM or SIGINT, then lets the running tasks end."""

    help = "Works on the tasks of a DqBackend."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the options, which are those of ``dq-worker``."""
        parser.add_argument("--backend", default="default", help="the name of the backend in TASKS (default)")
        add_options(parser, "tasks", "django")

    def handle(self, *_: Any, **given: Any) -> None:
        """Runs the worker."""
        if given["verbosity"] > 0:
            _log_to_console(logging.getLogger("dq_client"))
        backend = task_backends[given["backend"]]
        if not isinstance(backend, DqBackend):
            raise CommandError(f"TASKS[{given['backend']!r}] is not a DqBackend")
        sizes = queue_sizes(given["queue"] or sorted(backend.queues), given["concurrency"])
        if not sizes:
            raise CommandError("name the queues with --queue, since the backend allows all")
        try:
            worker = backend.worker(sizes, lease=given["lease"], grace=given["grace"], name=given["name"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        code = worker.run()
        if code:
            sys.exit(code)


def _log_to_console(logger: logging.Logger) -> None:
    """Logs to the console, unless the LOGGING of the project has handlers."""
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel("INFO")
