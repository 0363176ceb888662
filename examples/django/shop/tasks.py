"""The tasks of the shop."""

import redis
from django.conf import settings

try:
    from django.tasks import task
except ImportError:  # Django 5 has them in the package django-tasks.
    from django_tasks import task

db = redis.Redis.from_url(settings.URL)


@task
def confirm(order):
    """Runs at once, or when ``using(run_after=…)`` says."""
    db.rpush("done", f"confirm {order}")


@task(takes_context=True)
def charge(context, order):
    """Fails twice, and is tried again with the backoff of the queue."""
    attempt = db.incr(f"attempts:{order}")
    if attempt < 3:
        raise RuntimeError("the bank does not answer")
    db.rpush("done", f"charge {order} at attempt {context.attempt}")


@task(backend="strict")
def refund(order):
    """Always fails, and is not tried again."""
    raise ValueError(f"order {order} was not paid")


@task
async def total(*prices):
    """Returns something."""
    return sum(prices)
