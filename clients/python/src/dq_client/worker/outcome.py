"""The outcomes of handlers as the server receives them: an ack, a completion, or a nack."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any, List, NamedTuple

from ..errors import DqError, Reject, Retry
from ..wire import RESULT_BYTES, Word, milliseconds, raw

# The server keeps this much of an error.
_ERROR_BYTES = 1024
_SUMMARY_BYTES = 512
# The longest delay that the server takes.
_LONGEST_MS = 4_398_046_511_103
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class TimeLimit(DqError):
    """A handler took longer than its time limit."""


class Outcome(NamedTuple):
    """How a delivery ended: its name and a text for the hook, the command, and what follows the receipt in it.

    ``trace`` is the traceback for the log, with those of the causes.
    """

    kind: str
    command: str
    words: List[Word]
    error: str = ""
    trace: str = ""


ACK = Outcome("done", "DQ.ACK", [])
GIVEN_BACK = Outcome("returned", "DQ.NACK", ["NOCOUNT"])


def of_result(result: Any, as_json: bool = False) -> Outcome:
    """Returns the outcome of a handler that returned. A text or bytes are stored as they are, anything else as JSON.

    With ``as_json`` so is a text, or nothing at all. What cannot be stored is left out: the work is done all the same.
    """
    if result is None and not as_json:
        return ACK
    try:
        is_text = isinstance(result, bytes) or (isinstance(result, str) and not as_json)
        stored = raw(result) if is_text else json.dumps(result, allow_nan=False).encode()
    except Exception as error:
        return ACK._replace(error=f"the result is no JSON and is not kept: {_text(error)}")
    if len(stored) > RESULT_BYTES:
        return ACK._replace(error=f"the result has {len(stored)} bytes and is not kept: the most are {RESULT_BYTES}")
    return Outcome("done", "DQ.COMPLETE", ["RESULT", stored])


def of_error(error: BaseException) -> Outcome:
    """Returns the outcome of a handler that raised."""
    error = decisive(error)
    if isinstance(error, Reject):
        text = _text(error)
        return Outcome("rejected", "DQ.NACK", ["DEAD", "ERROR", cut(_bytes(text), _ERROR_BYTES)], text)
    if isinstance(error, Retry):
        text = _text(error)
        try:
            words: List[Word] = [] if error.after is None else ["DELAY", _delay(error.after)]
        except (TypeError, ValueError) as wrong:
            return of_error(type(wrong)(f"Retry(after={error.after!r}): {wrong}").with_traceback(error.__traceback__))
        words += ["ERROR", cut(_bytes(text), _ERROR_BYTES)] if text else []
        return Outcome("retried", "DQ.NACK", words, text)
    summary = f"{type(error).__name__}: {_text(error)}"
    return Outcome("failed", "DQ.NACK", ["ERROR", _with_traceback(summary, error)], summary, _whole_traceback(error))


def decisive(error: BaseException) -> BaseException:
    """Returns the exception of a group, such as that of a ``TaskGroup``, which decides: a Reject, else a Retry."""
    found = [leaf for leaf in _leaves(error) if isinstance(leaf, (Reject, Retry))]
    return min(found, key=lambda leaf: not isinstance(leaf, Reject), default=error)


def _leaves(error: BaseException) -> List[BaseException]:
    parts = getattr(error, "exceptions", None)
    if not isinstance(parts, (tuple, list)) or not type(error).__name__.endswith("ExceptionGroup"):
        return [error]
    return [leaf for part in parts if isinstance(part, BaseException) for leaf in _leaves(part)]


def cut(text: bytes, most: int) -> bytes:
    """Returns the first bytes of a text, up to the end of a character."""
    end = min(len(text), most)
    while 0 < end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def _cut_front(text: bytes, most: int) -> bytes:
    """Returns the last bytes of a text, from the beginning of a character on."""
    begin = max(0, len(text) - most)
    while begin < len(text) and text[begin] & 0xC0 == 0x80:
        begin += 1
    return text[begin:]


def _delay(after: Any) -> int:
    delay = milliseconds(after)
    if not 0 <= delay <= _LONGEST_MS:
        raise ValueError(f"a delay is 0 to {_LONGEST_MS // 1000} seconds")
    return delay


def _with_traceback(summary: str, error: BaseException) -> bytes:
    """Returns the type and text of an error, and behind it the end of its traceback, within what the server keeps."""
    head = cut(_bytes(summary), _SUMMARY_BYTES)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    trace = _bytes("".join(traceback.format_list(frames)).rstrip())
    room = _ERROR_BYTES - len(head) - 1
    if not trace:
        return head
    return head + b"\n" + (trace if len(trace) <= room else "…".encode() + _cut_front(trace, room - 3))


def _whole_traceback(error: BaseException) -> str:
    """Returns the traceback of an error with those of its causes, from the code of the user on."""
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        begin = begin.tb_next
    if begin is None:
        return ""  # It comes from this package, and its text says all.
    try:
        return "".join(traceback.format_exception(type(error), error, begin)).rstrip()
    except Exception:
        return ""  # A cause whose text cannot be read.


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
