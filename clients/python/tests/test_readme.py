"""The five minutes of the README, as they stand."""

import json
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from server import eventually

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def blocks(language):
    """Returns the programs of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def test_the_five_minutes_work(server, tmp_path):
    task, producer = blocks("python")
    _, worker = blocks("sh")
    (tmp_path / "shop.py").write_text(task.replace("localhost:6379", f"127.0.0.1:{server.port}"))
    words = worker.split()
    words[0] = str(pathlib.Path(sys.executable).parent / words[0])
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        subprocess.run([sys.executable, "-c", producer], cwd=tmp_path, check=True)
        said = {running.stdout.readline() for _ in range(3)}
        assert said == {f"mail to {name}@example.org\n" for name in ("ann", "ben", "cid")}
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 0
    finally:
        running.kill()
    assert server.info("mail")["acked"] == 3


def test_the_rights_of_the_page_are_enough(server, tmp_path):
    [rights] = re.findall(r"^ACL SETUSER .*$", README.read_text(), re.MULTILINE)
    server.do(*rights.split())
    text = blocks("python")[0].replace("localhost:6379", f"worker:secret@127.0.0.1:{server.port}")
    (tmp_path / "shop.py").write_text(text)
    running = subprocess.Popen(
        [sys.executable, "-m", "dq_client", "shop:app"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        server.do("DQ.PUSH", "mail", '{"task": "shop.send", "args": ["nobody"]}', "ID", "m")
        eventually("it is rejected", lambda: server.message("mail", "m")["state"] == b"dead")
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 0
        assert "NOPERM" not in running.stderr.read()
    finally:
        running.kill()


WRONG = """
import dq_client
from shop import app, send

send.push_sync()  # wrong
send.push_sync(1)  # wrong
send.push_sync("ann", delay=900)  # wrong
send.options(prioritty=5)  # wrong
send.options(delay="soon").push_sync("ann")  # wrong
send.options(every=60).schedule_sync("daily", 1)  # wrong
app.task(retrys=3)  # wrong


@app.task()
def double(number: int, *, delay: int = 0) -> int:
    return 2 * number


right: int = double.options(timeout=5).call_sync(4, delay=1)
text: str = double.call_sync(4)  # wrong
if (info := app.queue("mail").info_sync()) is not None:
    size: int = info["payload-bytes"]
    info["payload"]  # wrong
for message in app.queue("mail").peek_sync("dead"):
    reason: str = message.get("reason", "")
    message["created"] = "today"  # wrong
"""


@pytest.mark.parametrize("checker", ["mypy --strict", "pyright"])
def test_type_checkers_know_arguments_options_and_results(tmp_path, checker):
    words = [str(pathlib.Path(sys.executable).parent / word) for word in checker.split()[:1]] + checker.split()[1:]
    if not pathlib.Path(words[0]).exists() or subprocess.run([words[0], "--version"], capture_output=True).returncode:
        pytest.skip(f"{words[0]} is not installed")
    for name, text in zip(("shop", "producer", "wrong"), (*blocks("python"), WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": sys.path[1:]}))
    done = subprocess.run([*words, "shop.py", "producer.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    said = {tuple(found) for found in re.findall(r"(\w+\.py):(\d+).* error:", done.stdout)}
    wrong = {("wrong.py", str(n)) for n, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}
    assert said == wrong, done.stdout
