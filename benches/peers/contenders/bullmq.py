"""BullMQ with its own client for Node (bullmq.mjs). It uses addBulk of 1,000 if a workload has batches, otherwise
single adds, and one worker with a concurrency of 100, which takes and completes jobs. The worker waits, and promotes
delayed jobs."""
import json
import os
import shutil
import subprocess

from contenders.base import Contender, Missing
from messages import CheckFailed
from process import running, stopped

VERSION = "6.7.0"
CLIENT_VERSION = "5.11.1"  # of ioredis, which BullMQ requires
WORK_SECONDS = 600


def install(directory):
    """Installs the packages into a directory of the build, unless they are there already."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("node and npm are not installed: scripts/install-deps.sh bench")
    stamp = os.path.join(directory, f"bullmq-{VERSION}-ioredis-{CLIENT_VERSION}")
    if os.path.exists(stamp):
        return
    os.makedirs(directory, exist_ok=True)
    done = subprocess.run(["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--ignore-scripts",
                           f"bullmq@{VERSION}", f"ioredis@{CLIENT_VERSION}"], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise Missing(f"npm could not install bullmq {VERSION}: {lines[-1]}")
    open(stamp, "w").close()


class Driver:
    """The Node process, which takes requests as lines of JSON."""

    def __init__(self, directory, port):
        script = os.path.join(os.path.dirname(__file__), "bullmq.mjs")
        self.process = subprocess.Popen(["node", script, directory, str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        running(self)
        self.answer()

    def ask(self, command, **options):
        self.process.stdin.write(json.dumps({"command": command, **options}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        answer = json.loads(self.process.stdout.readline() or '{"error": "the driver died"}')
        if "error" in answer:
            raise CheckFailed(f"BullMQ: {answer['error']}")
        return answer

    def call(self, command, **options):
        self.ask(command, **options)
        return self.answer()

    def stop(self):
        stopped(self)
        self.process.kill()
        self.process.wait()


class BullMQ(Contender):
    name = "bullmq"
    title = f"BullMQ {VERSION}"
    polled = False
    acks_with_take = True
    share = 0.1
    bulk = 1_000
    own_client = True

    @classmethod
    def start(cls, lab, arguments, directory):
        install(lab.node_packages)
        return super().start(lab, arguments, directory)

    def prepare(self):
        self.driver = self.another_driver()

    def another_driver(self):
        return Driver(self.lab.node_packages, self.server.port)

    def name_queue(self, queue):
        """Does nothing, because the driver has one queue."""

    def close(self, keep_files=False):
        self.driver.stop()
        super().close(keep_files)

    def push(self, some, batch=1, depth=64, wire=None):
        self.driver.call("push", messages=[[number, due] for number, due, _ in some], size=self.size,
                         bulk=batch > 1, depth=depth)

    def collect(self, count, batch=1, depth=64, ack=False):
        done = self.driver.call("work", count=count, seconds=WORK_SECONDS)
        return [(body.encode(), None) for body in done["bodies"]]

    def leftovers(self):
        return self.driver.call("left")["left"]
