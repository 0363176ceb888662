"""The app that brings ``manage.py dq_worker``."""

from __future__ import annotations

from django.apps import AppConfig


class DqConfig(AppConfig):
    """The app of the package, under a label that no other app has."""

    name = "dq_client.django"
    label = "dq_client"
