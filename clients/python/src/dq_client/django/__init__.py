"""A backend for the tasks of Django: Django 6.0 and newer, and ``django-tasks``, the same for older ones.

In the settings, ``TASKS = {"default": {"BACKEND": "dq_client.django.DqBackend", "OPTIONS": {"url":
"redis://localhost"}}}``, and ``"dq_client.django"`` in ``INSTALLED_APPS`` for ``manage.py
dq_worker``. It uses no private interface of Django, but sets ``TaskResult._return_value`` and calls ``normalize_json``
as Django's own backends do: there is no other way.
"""

from .backend import DqBackend

__all__ = ["DqBackend"]
