"""The scripts of contrib/kubernetes/release.yaml, with a list of pods in place of Kubernetes."""
import os
import re
import subprocess
import textwrap

import files
from shell import Shell, ask, run, wait_until


def script(text, name, directory):
    """The path of a script of the manifest, with a directory as the volume that the containers share."""
    block = re.search(rf"^  {re.escape(name)}: \|\n((?:    .*\n)+)", text, re.MULTILINE)[1]
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(block).replace("/shared/", directory + "/"))
    return path


def what_a_pod_held_that_is_gone_is_ready_at_once(dist, server):
    with Shell(server) as shell:
        run("tar", "xf", files.only(dist, "*.tar.gz"), "--strip-components=1", "--directory", shell.dir)
        with open(os.path.join(shell.dir, "contrib/kubernetes/release.yaml"), encoding="utf-8") as file:
            text = file.read()
        shell.start("redis-server --loadmodule ./libdq.so", shell.dir)
        pods, asked = os.path.join(shell.dir, "running"), os.path.join(shell.dir, "asked")
        shell.script("kubectl", f"echo >>{asked}; cat {pods}")
        for pod in ("mail-1", "mail-2"):
            ask(shell.port, "DQ.PUSH", "mail", "x", "ID", pod)
            ask(shell.port, "DQ.POP", "mail", "AS", f"{pod}:7:1", "LEASE", "600000")
        environment = {**shell.environment, "PATH": shell.dir + os.pathsep + shell.environment["PATH"], "QUEUE": "mail",
                       "SELECTOR": "app=worker", "EVERY": "0.1"}
        both = [subprocess.Popen(["sh", script(text, name, shell.dir)], env=environment, stderr=subprocess.DEVNULL)
                for name in ("release.sh", "pods.sh")]
        try:
            wait_until("the pods are asked for twice", lambda: os.path.exists(asked) and os.path.getsize(asked) > 1)
            held = ask(shell.port, "DQ.LEN", "mail", "inflight")
            assert held == ":2", "a list that cannot be read is no list of nothing"
            with open(pods, "w", encoding="utf-8") as file:
                file.write("mail-1\n")
            wait_until("the message is ready", lambda: ask(shell.port, "DQ.LEN", "mail", "ready") == ":1")
            assert ask(shell.port, "DQ.LEN", "mail", "inflight") == ":1"
        finally:
            for one in both:
                one.kill()
                one.wait()


TESTS = [what_a_pod_held_that_is_gone_is_ready_at_once]
