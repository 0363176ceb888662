"""The tarball, as docs/install.md says."""
import os
import shutil

import files
from shell import Shell, ask, blocks

HEADING = "From a release"


def the_first_minutes_from_the_tarball_go_as_the_page_says(dist, server):
    unpack, install = (block.splitlines() for block in blocks(HEADING, "sh"))
    assert unpack[-1] == "redis-server redis.conf.example", unpack
    assert unpack[-2].startswith("cd "), unpack
    with Shell(server) as shell:
        for name in ["SHA256SUMS", os.path.basename(files.only(dist, "*.tar.gz"))]:
            shutil.copy(os.path.join(dist, name), shell.dir)
        for line in unpack[:-2]:
            shell.run(line, shell.dir)
        tree = os.path.join(shell.dir, unpack[-2].removeprefix("cd "))
        shell.start(unpack[-1], tree)
        for text in blocks(HEADING, "text"):
            shell.play(text, tree)
        # The configuration writes an AOF, so the restarted server has what it was given.
        shell.run("./dqctl push later 1 --id one --in 1h", tree)
        shell.stop()
        shell.start(unpack[-1], tree)
        assert ask(shell.port, "DQ.LEN", "later") == ":1"
        for line in install:
            for name in line.removeprefix("sudo install ").split():
                if not name.startswith(("/", "-")) and not name.isdigit() and "*" not in name:
                    assert os.path.exists(os.path.join(tree, name)), line


TESTS = [the_first_minutes_from_the_tarball_go_as_the_page_says]
