"""The application of compare.py. What it does is written to a file, so that no server is needed to count it."""

import json
import os
import time

import celery

import dq_client.celery  # noqa: F401, for its scheme

app = celery.Celery("tasks", broker=os.environ["BROKER_URL"])
app.conf.broker_transport_options = json.loads(os.environ["BROKER_OPTIONS"])
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="record")
def record(number, due):
    """Takes a fifth of a second, and says how late it began."""
    began = time.time()
    time.sleep(0.2)
    with open(os.environ["RECORD"], "a") as file:
        file.write(f"{number} {began - due:.3f}\n")
