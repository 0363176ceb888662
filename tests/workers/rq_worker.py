"""An unchanged RQ worker runs jobs that dq forwards to its queue.

    python rq_worker.py PORT        with the packages rq and redis
"""

import subprocess
import sys
import time

import redis
from rq.job import Job

PORT = int(sys.argv[1])
connection = redis.Redis(port=PORT)


def later(ms, function, *args):
    """Stores a job, and lets dq hand its id to the queue when it is due."""
    job = Job.create(function, args=args, connection=connection, origin="default")
    job.save()
    connection.execute_command("DQ.PUSH", "rq:later", job.id, "ID", job.id, "DELAY", ms)
    return job


def patiently(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


connection.execute_command(
    "DQ.CREATE", "rq:later", "FORWARD", "LIST", "rq:queue:default", "REGISTER", "rq:queues", "rq:queue:default"
)
first = later(200, "operator.add", 2, 3)
cancelled = later(300, "operator.add", 0, 0)
second = later(400, "operator.mul", 2, 3)
assert connection.execute_command("DQ.CANCEL", "rq:later", cancelled.id) == [b"delayed"]
assert connection.llen("rq:queue:default") == 0
worker = subprocess.Popen(
    [sys.executable, "-m", "rq.cli", "worker", "--url", f"redis://127.0.0.1:{PORT}", "--quiet", "default"]
)
try:
    patiently(lambda: second.is_finished)
    assert first.return_value() == 5 and second.return_value() == 6
    assert not cancelled.is_finished
    assert connection.smembers("rq:queues") == {b"rq:queue:default"}
finally:
    worker.terminate()
    worker.wait()
print("ok")
