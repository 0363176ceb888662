"""The settings that matter for tasks."""

import os

import django

URL = os.environ.get("REDIS_URL", "redis://localhost:6379")

SECRET_KEY = "an example has no secrets"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["dq_client.django"] + (["django_tasks"] if django.VERSION < (6, 0) else [])

TASKS = {
    "default": {"BACKEND": "dq_client.django.DqBackend", "OPTIONS": {"url": URL, "retries": 50}},
    "strict": {
        "BACKEND": "dq_client.django.DqBackend",
        "OPTIONS": {"url": URL, "namespace": "strict", "enqueue_on_commit": True},
    },
}
