"""An application with Taskiq on dq. It needs a server with the module, at REDIS_URL.

pip install '../../clients/python[taskiq]'
taskiq worker shop:broker --max-async-tasks 10
python -c 'import asyncio, shop; asyncio.run(shop.confirm.kiq(1001))'
"""

import os

import redis.asyncio as redis

from dq_client.taskiq import DqBroker, DqResultBackend, NackMiddleware

URL = os.environ.get("REDIS_URL", "redis://localhost:6379")
db = redis.Redis.from_url(URL)
broker = DqBroker(URL, prefetch=10).with_result_backend(DqResultBackend(URL)).with_middlewares(NackMiddleware())


@broker.task
async def confirm(order: int) -> None:
    """Runs at once, or when its label ``delay`` says: no worker holds it until it is due."""
    await db.rpush("done", f"confirm {order}")


@broker.task(retries=50)
async def charge(order: int) -> None:
    """Fails twice, and is retried with the backoff of the queue."""
    attempt = await db.incr(f"attempts:{order}")
    if attempt < 3:
        raise RuntimeError("the bank does not answer")
    await db.rpush("done", f"charge {order} at attempt {attempt}")


@broker.task(retries=0)
def refund(order: int) -> None:
    """Always fails: a dead message, and an error as its result."""
    raise ValueError(f"order {order} was not paid")


@broker.task
async def total(prices: list[int]) -> int:
    """Returns something, which is kept with the message."""
    return sum(prices)
