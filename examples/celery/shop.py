"""An application with Celery on dq. It needs a server with the module, at REDIS_URL.

pip install '../../clients/python[celery]'
celery -A shop worker
python -c 'import shop; shop.confirm.apply_async((1001,), countdown=900)'
"""

import os
import signal
import time

import celery
import redis

import dq_client.celery  # Makes dq:// known to Celery.

URL = os.environ.get("REDIS_URL", "redis://localhost:6379")
db = redis.Redis.from_url(URL)
app = celery.Celery(
    "shop",
    broker=os.environ.get("BROKER_URL", URL.replace("redis", "dq", 1)),
    backend=URL,
    control=dq_client.celery.Control,
)
# The message of a worker that died waits for this long. A worker that lives extends its leases.
app.conf.broker_transport_options = {"lease": float(os.environ.get("LEASE", "30"))}
app.conf.worker_prefetch_multiplier = 1


@app.task
def confirm(order):
    """Runs at once."""
    db.rpush("done", f"confirm {order}")


@app.task
def remind(order):
    """Sent with a countdown: no worker holds it until it is due."""
    db.rpush("done", f"remind {order}")


@app.task(
    acks_late=True,
    autoretry_for=(RuntimeError, redis.RedisError),
    retry_backoff=1,
    retry_backoff_max=2,
    max_retries=9,
)
def charge(order):
    """Fails twice, and is retried with Celery's backoff, under the same id."""
    attempt = db.incr(f"attempts:{order}")
    if attempt < 3:
        raise RuntimeError("the bank does not answer")
    db.rpush("done", f"charge {order} at attempt {attempt}")


@app.task(acks_late=True)
def convert(order, seconds):
    """Takes a while: the worker extends its lease, and if the worker dies, another one runs it again."""
    db.rpush("begun", order)
    time.sleep(seconds)
    db.rpush("done", f"convert {order}")


@app.task(acks_late=True, reject_on_worker_lost=True)
def render(order):
    """Kills the process that runs it, at the first attempt."""
    if db.incr(f"attempts:{order}") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    db.rpush("done", f"render {order}")


@app.task
def price(order):
    """Returns something, which Celery's own backend for Redis keeps."""
    return order * 10


@app.task
def total(prices):
    """The end of a chord."""
    return sum(prices)
