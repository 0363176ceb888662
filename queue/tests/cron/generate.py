#!/usr/bin/env python3
"""Writes tests/cron/2026.txt: when cron expressions fire in 2026, computed without the module.

croniter yields the times of day, zoneinfo the rules of the time zones, and the rules for clock changes are those of
docs/commands/dq.schedule.md. Run it again if an expression or a zone is added:

    python3 -m venv venv && venv/bin/pip install croniter tzdata==2026.5
    PYTHONTZPATH= venv/bin/python tests/cron/generate.py > tests/cron/2026.txt

tzdata 2026.5 is the version 2026e of the time zone data, which the module has too (INFO dq: dq_tzdata). Version 2026f
changes Morocco.
"""

from datetime import datetime, timedelta, timezone
from itertools import groupby
from zoneinfo import ZoneInfo

from croniter import croniter

ZONES = [
    "UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/Santiago",
    "America/St_Johns", "Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
    "Pacific/Chatham", "Pacific/Auckland",
]
# Whether the expression is a fixed time: minute and hour are single numbers or lists.
EXPRESSIONS = [
    ("30 2 * * *", True), ("0 0 * * *", True), ("15,45 0,1,2,3 * * *", True), ("0 9 * * mon-fri", True),
    ("0 12 1,15 * fri", True), ("10 1 * 3,4,9-11 *", True), ("45 23 31 * *", True), ("0 3 * * 0", True),
    ("*/15 * * * *", False), ("*/30 2 * * *", False), ("20-40/10 1-3 * * sun", False), ("5 */6 * * *", False),
    ("0 * 1-7 * *", False), ("*/7 0 * jan-jun 1,3", False), ("59 23 * * 7", True), ("0-30 0 29 2,3 *", False),
]
START, END = datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2027, 1, 1, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)


def shown(instant, zone):
    """What the clocks of a zone show."""
    return instant.astimezone(zone).replace(tzinfo=None)


def instants(local, zone, is_fixed):
    """The instants at which an expression fires for one time of day."""
    both = [local.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1)]
    valid = sorted({instant for instant in both if shown(instant, zone) == local})
    if not is_fixed:
        return valid
    if valid:
        return valid[:1]
    instant = both[0]
    while shown(instant - MINUTE, zone) > local:
        instant -= MINUTE
    return [instant]


def fires(expression, zone, is_fixed):
    times = croniter(expression, START.replace(tzinfo=None) - timedelta(days=2))
    found = set()
    while (local := times.get_next(datetime)) < END.replace(tzinfo=None) + timedelta(days=2):
        found.update(instants(local, zone, is_fixed))
    return sorted(int(instant.timestamp()) for instant in found if START < instant <= END)


def main():
    print("# zone | expression | first instant after 2026-01-01 00:00 UTC (Unix s) | steps in s, and how often each")
    for name in ZONES:
        for expression, is_fixed in EXPRESSIONS:
            times = fires(expression, ZoneInfo(name), is_fixed)
            steps = [later - earlier for earlier, later in zip(times, times[1:])]
            runs = " ".join(f"{step}x{len(list(same))}" for step, same in groupby(steps))
            print(f"{name} | {expression} | {times[0] if times else ''} | {runs}")


main()
