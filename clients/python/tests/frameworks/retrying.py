"""Tasks that are retried by Taskiq's own middleware."""

import os

import redis.asyncio as redis
from taskiq import SimpleRetryMiddleware

from dq_client.taskiq import DqBroker

db = redis.Redis.from_url(os.environ["REDIS_URL"])
broker = DqBroker(os.environ["REDIS_URL"], "retrying").with_middlewares(SimpleRetryMiddleware())


@broker.task(retry_on_error=True, max_retries=5)
async def insist(order: int) -> None:
    """Fails twice."""
    attempt = await db.incr(f"attempts:{order}")
    if attempt < 3:
        raise RuntimeError("no")
    await db.rpush("done", f"insist {order} at attempt {attempt}")
