"""The command that ``dqctl work`` runs for each message: what it asks for is in the payload, on standard input."""

import json
import os
import re
import signal
import sys
import time

ID = os.environ["DQ_ID"]
if "\\x00" in ID:  # An environment has no zero byte, so dqctl writes such an id with escapes.
    ID = os.fsdecode(re.sub(rb"\\x(..)", lambda byte: bytes.fromhex(byte[1].decode()), os.fsencode(ID)))


def say(event, **fields):
    """Writes a line to the pipe of the program, in one piece."""
    line = json.dumps(dict(fields, event=event, id=ID, at=time.time_ns() // 1_000_000))
    os.write(PIPE, line.encode() + b"\n")


def told(*_):
    """The worker ends the command; the program knows why."""
    say("told")
    os._exit(1)


PIPE = os.open(os.environ["CONFORMANCE_PIPE"], os.O_WRONLY | os.O_APPEND)
signal.signal(signal.SIGTERM, told)
say("start", queue=os.environ["DQ_QUEUE"], attempt=int(os.environ["DQ_ATTEMPT"]), headers={})
how, code, error = "fail", 75, ""
try:
    wanted = json.load(sys.stdin)
    do, seconds, text = wanted["do"], wanted.get("ms", 0) / 1000, wanted.get("text", "")
    attempt = int(os.environ["DQ_ATTEMPT"])
    if do == "fail" and attempt <= wanted.get("times", attempt):
        error = text
    elif do == "reject":
        how, code, error = "reject", 65, text
    elif do == "exit":
        os._exit(3)
    elif do in ("ok", "hang", "spin", "result", "fail"):
        how, code = "ok", 0
        end = time.monotonic() + seconds
        while do == "spin" and time.monotonic() < end:
            pass
        time.sleep(seconds if do == "hang" else 0)
        if do == "result":
            result = wanted["result"]
            sys.stdout.write(result if isinstance(result, str) else json.dumps(result))
            sys.stdout.flush()
    else:
        error = f"unknown task {do!r}"
except (ValueError, TypeError, KeyError, AttributeError) as wrong:
    error = f"the payload is no JSON of a task: {wrong!r}"
sys.stderr.write(error)
sys.stderr.flush()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say("end", how=how)
os._exit(code)
