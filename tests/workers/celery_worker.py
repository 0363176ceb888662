"""An unchanged Celery worker runs tasks that dq forwards to its queue.

    python celery_worker.py PORT        with the packages celery and redis
"""

import base64
import json
import os
import subprocess
import sys
import time
import uuid

import redis
from celery import Celery

PORT = int(os.environ.get("DQ_TEST_PORT") or sys.argv[1])
URL = f"redis://127.0.0.1:{PORT}/0"
app = Celery("celery_worker", broker=URL, backend=URL)
app.conf.worker_hijack_root_logger = False


@app.task(name="add")
def add(one, other):
    return one + other


def message(task, args, queue="celery"):
    """The message of a task as Celery's own producer writes it to the list of a queue."""
    task_id = str(uuid.uuid4())
    body = json.dumps([args, {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}])
    envelope = {
        "body": base64.b64encode(body.encode()).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"lang": "py", "task": task, "id": task_id, "root_id": task_id, "parent_id": None, "group": None},
        "properties": {
            "correlation_id": task_id,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "delivery_tag": str(uuid.uuid4()),
            "body_encoding": "base64",
            "priority": 0,
        },
    }
    return task_id, json.dumps(envelope)


def main():
    connection = redis.Redis(port=PORT)
    connection.execute_command("DQ.CREATE", "celery:later", "FORWARD", "LIST", "celery", "LEFT")
    tasks = []
    for number in range(3):
        task_id, text = message("add", [number, 10])
        connection.execute_command("DQ.PUSH", "celery:later", text, "ID", task_id, "DELAY", 200 * (number + 1))
        tasks.append(task_id)
    cancelled = tasks.pop(1)
    assert connection.execute_command("DQ.CANCEL", "celery:later", cancelled) == [b"delayed"]
    assert connection.llen("celery") == 0
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_worker", "worker", "--pool", "solo", "--loglevel", "ERROR"]
        + ["--without-gossip", "--without-mingle", "--without-heartbeat"],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        env={**os.environ, "DQ_TEST_PORT": str(PORT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        assert [app.AsyncResult(task).get(timeout=90) for task in tasks] == [10, 12]
        assert app.AsyncResult(cancelled).state == "PENDING"
    finally:
        worker.terminate()
        worker.wait()
    print("ok")


if __name__ == "__main__":
    main()
