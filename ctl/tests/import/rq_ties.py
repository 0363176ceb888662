"""Fills a queue of RQ with a job that was taken and not begun, one on which another depends, and one that repeats
itself.

    python rq_ties.py PORT        with the package rq
"""

import json
import sys

import redis
import rq

connection = redis.Redis(port=int(sys.argv[1]))
queue = rq.Queue("mail", connection=connection)
queue.enqueue("operator.add", 1, 1, job_id="taken")
# A worker does this first, and takes the job out of there when it begins.
connection.lmove("rq:queue:mail", "rq:queue:mail:intermediate", "LEFT", "RIGHT")
first = queue.enqueue("operator.add", 1, 2, job_id="first")
queue.enqueue("operator.add", 1, 3, job_id="second", depends_on=first)
queue.enqueue("operator.add", 1, 4, job_id="repeats", repeat=rq.Repeat(times=3, interval=60))
queue.enqueue("operator.add", 1, 5, job_id="waits")
print(json.dumps({"library": f"rq {rq.VERSION}", "source": "mail"}))
