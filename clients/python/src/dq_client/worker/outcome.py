"""What the end of a handler means to the server: an ack, a completion, or a nack."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any, List, NamedTuple

from ..errors import DqError, Reject, Retry
from ..wire import Word, milliseconds, raw

# The server keeps this much of an error, and this much of a result.
_ERROR_BYTES = 1024
_SUMMARY_BYTES = 512
_RESULT_BYTES = 65536
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class TooLargeResult(DqError):
    """A handler returned more than the server keeps."""


class TimeLimit(DqError):
    """A handler took longer than its time limit."""


class Outcome(NamedTuple):
    """How a delivery ended: its name for the hook, the command, and what follows the receipt in it."""

    kind: str
    command: str
    words: List[Word]
    error: str = ""


ACK = Outcome("done", "DQ.ACK", [])
GIVEN_BACK = Outcome("returned", "DQ.NACK", ["NOCOUNT"])


def of_result(result: Any) -> Outcome:
    """Returns the outcome of a handler that returned. A text or bytes are stored as they are, anything else as JSON."""
    if result is None:
        return ACK
    try:
        stored = raw(result) if isinstance(result, (str, bytes)) else json.dumps(result).encode()
        if len(stored) > _RESULT_BYTES:
            raise TooLargeResult(f"the result has {len(stored)} bytes, more than the {_RESULT_BYTES} that are kept")
    except Exception as error:
        return of_error(error)
    return Outcome("done", "DQ.COMPLETE", ["RESULT", stored])


def of_error(error: BaseException) -> Outcome:
    """Returns the outcome of a handler that raised."""
    if isinstance(error, Reject):
        text = _text(error)
        return Outcome("rejected", "DQ.NACK", ["DEAD", "ERROR", _bytes(text)], text)
    if isinstance(error, Retry):
        text = _text(error)
        words: List[Word] = [] if error.after is None else ["DELAY", milliseconds(error.after)]
        words += ["ERROR", _bytes(text)] if text else []
        return Outcome("retried", "DQ.NACK", words, text)
    summary = f"{type(error).__name__}: {_text(error)}"
    return Outcome("failed", "DQ.NACK", ["ERROR", _with_traceback(summary, error)], summary)


def _with_traceback(summary: str, error: BaseException) -> bytes:
    """Returns the type and text of an error, and behind it the end of its traceback, within what the server keeps."""
    head = _bytes(summary)[:_SUMMARY_BYTES]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    trace = _bytes("".join(traceback.format_list(frames)).rstrip())
    room = _ERROR_BYTES - len(head) - 1
    if not trace:
        return head
    return head + b"\n" + (trace if len(trace) <= room else "…".encode() + trace[-(room - 3) :])


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(the text of this error cannot be read)"


def _bytes(text: str) -> bytes:
    try:
        return raw(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
