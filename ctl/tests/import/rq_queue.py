"""Fills a queue of RQ, lets a worker fail so that jobs are dead or wait for a retry, and prints as JSON what was put
there.

    python rq_queue.py PORT        with the package rq
"""

import json
import sys
from datetime import datetime, timedelta, timezone

import redis
import rq

LATER = datetime(2100, 1, 1, tzinfo=timezone.utc)
connection = redis.Redis(port=int(sys.argv[1]))
queue, other = rq.Queue("mail", connection=connection), rq.Queue("other", connection=connection)
jobs = []
failing = []
for retry in [None, rq.Retry(max=1), rq.Retry(max=3, interval=10**9)]:
    failing.append(queue.enqueue("operator.truediv", 1, 0, retry=retry, failure_ttl=10**9, result_ttl=10**9))
# Tracebacks would name the folders of this machine.
sys.tracebacklimit = 0
rq.SimpleWorker([queue], connection=connection).work(burst=True, logging_level="CRITICAL")
for job, attempt, retries, dead in zip(failing, [1, 1, 1], [None, 0, 3], [True, True, False]):
    job.refresh()
    expected = {"id": f"rq:{job.id}", "due": None, "job": job.id, "description": job.description}
    if dead:
        error = "ZeroDivisionError: division by zero"
        jobs.append(expected | {"attempt": attempt, "retries": retries, "dead": "retries", "error": error})
    else:
        at = connection.zscore("rq:scheduled:mail", job.id)
        jobs.append(expected | {"attempt": attempt, "retries": retries, "due": int(at * 1000)})
for number in range(5):
    job = queue.enqueue("operator.add", number, 1, description=f"wait {number}")
    jobs.append({"id": f"rq:{job.id}", "due": None, "job": job.id, "description": job.description})
for number in range(5):
    # Two of them at the same time.
    at = LATER + timedelta(seconds=number // 2)
    job = queue.enqueue_at(at, "operator.mul", number, b"\xff\x00", description=f"later {number}")
    due = int(at.timestamp() * 1000)
    jobs.append({"id": f"rq:{job.id}", "due": due, "job": job.id, "description": job.description})
other.enqueue("operator.add", 0, 0)
other.enqueue_at(LATER, "operator.add", 0, 0)
print(json.dumps({"library": f"rq {rq.VERSION}", "source": "mail", "left": 2, "jobs": jobs}))
