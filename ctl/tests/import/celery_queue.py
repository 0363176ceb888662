"""Fills a queue of Celery, lets a worker take tasks that are due later and retry one, stops it, and prints as JSON what
was put there.

    python celery_queue.py PORT        with the packages celery and redis
"""

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

import celery
import redis

PORT = int(os.environ.get("DQ_TEST_PORT") or sys.argv[1])
LATER = datetime(2100, 1, 1, tzinfo=timezone.utc)
app = celery.Celery("celery_queue", broker=f"redis://127.0.0.1:{PORT}/0")
app.conf.broker_connection_retry_on_startup = True


@app.task(name="mail.send", bind=True)
def send(self, number):
    if number == "fails":
        raise self.retry(eta=LATER)


def main():
    connection = redis.Redis(port=PORT)
    jobs = []

    def push(number, due=None, priority=0, queue="mail"):
        eta = due and datetime.fromtimestamp(due / 1000, timezone.utc)
        task = send.apply_async([number], queue=queue, eta=eta, priority=priority)
        if queue == "mail":
            jobs.append({"id": f"celery:{task.id}", "due": due, "priority": -priority})
        return jobs[-1]

    later = int(LATER.timestamp() * 1000)
    for number in range(4):
        push(number, later + number // 2 * 1000)
    push(0, later, queue="other")
    push("fails").update(due=later, attempt=1)
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_queue", "worker", "-Q", "mail,other", "-P", "solo",
         "-l", "error"],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        env={**os.environ, "DQ_TEST_PORT": str(PORT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while sum(b'"eta": "2100' in taken for taken in connection.hvals("unacked")) < 6:
            assert time.monotonic() < deadline, "the worker takes nothing"
            time.sleep(0.05)
    finally:
        worker.terminate()
        worker.wait()
    for number in range(4):
        push(number, priority=3 * (number % 2))
    push(9, later + 9000)
    push(0, queue="other")
    print(json.dumps({"library": f"celery {celery.__version__}", "source": "mail", "left": 2, "jobs": jobs}))


if __name__ == "__main__":
    main()
