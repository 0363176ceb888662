"""How the image starts its server, without a container."""
import os

import files
from shell import Shell, ask, run, wait_until


def the_image_does_not_overwrite_the_data_of_a_server_without_an_aof(dist, server):
    with Shell(server) as shell:
        run("tar", "xf", files.only(dist, "*.tar.gz"), "--strip-components=1", "--directory", shell.dir)
        data, config, more = (os.path.join(shell.dir, name) for name in ("data", "image.conf", "more.conf"))
        os.mkdir(data)
        with open(os.path.join(shell.dir, "contrib/docker/dq.conf"), encoding="utf-8") as file:
            text = file.read().replace("/usr/local/lib/", f"{shell.dir}/").replace("dir /data", f"dir {data}")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        with open(more, "w", encoding="utf-8") as file:
            file.write("DBFILENAME 'other.rdb'\r\n")
        start = f"{shell.dir}/contrib/docker/start.sh {config}"
        for options in ("", "--dbfilename other.rdb", f"--include {more}"):
            shell.start(f"{start} {options} --appendonly no --save 3600 1", shell.dir)
            assert ask(shell.port, "SET", "kept", "x") == "+OK"
            shell.stop()
            said = shell.run(f"{start} {options} 2>&1", shell.dir, ends=(1,))
            assert ".rdb is here and no AOF" in said, said
        # As the message says. Afterwards the RDB file is beside an AOF.
        shell.start(f"{start} --appendonly no", shell.dir)
        assert ask(shell.port, "CONFIG", "SET", "appendonly", "yes") == "+OK"
        wait_until("the AOF is written",
                   lambda: "aof_rewrite_in_progress:0" in run("redis-cli", "-p", str(shell.port), "INFO", "persistence"))
        shell.stop()
        shell.start(start, shell.dir)
        assert ask(shell.port, "EXISTS", "kept") == ":1"


TESTS = [the_image_does_not_overwrite_the_data_of_a_server_without_an_aof]
