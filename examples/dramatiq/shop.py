"""An application with Dramatiq on dq. It needs a server with the module, at REDIS_URL.

pip install '../../clients/python[dramatiq]'
dramatiq shop
python -c 'import shop; shop.confirm.send(1001)'
"""

import os

import dramatiq
import redis
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from dq_client.dramatiq import DqBroker

URL = os.environ.get("REDIS_URL", "redis://localhost:6379")
db = redis.Redis.from_url(URL)
broker = DqBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(client=db)))
dramatiq.set_broker(broker)


@dramatiq.actor
def confirm(order):
    """Runs at once."""
    db.rpush("done", f"confirm {order}")


@dramatiq.actor
def remind(order):
    """Sent with a delay: no worker holds it until it is due."""
    db.rpush("done", f"remind {order}")


@dramatiq.actor(max_retries=50, min_backoff=50, max_backoff=200)
def charge(order):
    """Fails twice, and is retried with Dramatiq's backoff."""
    attempt = db.incr(f"attempts:{order}")
    if attempt < 3:
        raise RuntimeError("the bank does not answer")
    db.rpush("done", f"charge {order} at attempt {attempt}")


@dramatiq.actor(max_retries=0)
def refund(order):
    """Always fails: a dead message."""
    raise ValueError(f"order {order} was not paid")


@dramatiq.actor(store_results=True)
def total(*prices):
    """Returns something, which Dramatiq's own backend for Redis keeps."""
    return sum(prices)
