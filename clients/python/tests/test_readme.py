"""The five minutes of the README, as they stand."""

import pathlib
import re
import signal
import subprocess
import sys

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
