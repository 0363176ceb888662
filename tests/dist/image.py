"""How the image starts its server, without a container."""
import os
import subprocess
import tempfile

import files
from shell import Shell, ask, free_port, run, wait_until

START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "docker", "start.sh")


def data_without_an_aof_is_found_however_the_configuration_says_where(_dist, _server):
    """The server is only named: it is started where nothing is to be refused."""
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "my data")
        os.mkdir(data)
        for name, text in [("bin/valkey-server", "#!/bin/sh\necho started\n"), ("my data/dump.rdb", "REDIS"),
                           ("my more.conf", f'dir "{data}"'), ("parts/1.conf", f"DIR '{data}'\r\nAppendOnly YES\r\n")]:
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            os.chmod(path, 0o755)
        environment = {**os.environ, "PATH": os.path.join(directory, "bin") + os.pathsep + os.environ["PATH"]}
        config = os.path.join(directory, "server.conf")

        def says(text, *options):
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run(["sh", START, config, *options], cwd=directory, env=environment, capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL)
            assert (done.returncode == 0) == (done.stdout == "started\n"), done
            return done.stdout + done.stderr

        found = "dump.rdb is here and no AOF"
        for text, *options in [
            (f'dir "{data}"\nappendonly yes\n',),
            (f"dir '{data}'\nappendonly Yes",),
            (f"\"dir\" '{data}'\nappendonly \"YES\"\r\n",),
            ("appendonly yes\n", "--dir", data),
            ("", "--dir", data, "--save", "3600", "1", "--APPENDONLY", "YES"),
            ("", f'--dir "{data}"', "--appendonly yes"),
            (f'requirepass "a\\cb"\ndir "{data}"\nappendonly yes\n',),
            ('include "my more.conf"\nappendonly yes\n',),
            (f"include {directory}/my more.conf\nappendonly yes\n",),
            (f"include {directory}/none/*.conf\ninclude {directory}/parts/*.conf\n",),
        ]:
            assert found in says(text, *options), (text, options)
        for text, *options in [
            (f'dir "{data}"\nappendonly yes\n', "--appendonly", "NO"),
            (f"include {directory}/none/*.conf\ninclude missing.conf\nrequirepass 'a\\'b'\nappendonly yes\n",),
            ("",),
        ]:
            assert says(text, *options) == "started\n", (text, options)
        for text in ['dir "/x\\x20y"', "include parts/\\*.conf", "dir /x\"y"]:
            assert "quote or a backslash" in says(text), text
        assert "standard input" in says("", "-")


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
                   lambda: "aof_rewrite_in_progress:0" in
                   run("redis-cli", "-p", str(shell.port), "INFO", "persistence"))
        shell.stop()
        shell.start(start, shell.dir)
        assert ask(shell.port, "EXISTS", "kept") == ":1"


def the_password_of_the_image_is_no_argument_of_a_process(_dist, server):
    password = 'a "b" \\c $d\'e`f'
    with tempfile.TemporaryDirectory() as directory:
        config, log = os.path.join(directory, "server.conf"), os.path.join(directory, "server.log")
        os.symlink(server, os.path.join(directory, "valkey-server"))
        port = free_port()
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"port {port}\ndir {directory}\nrequirepass other\n")
        environment = {**os.environ, "PATH": directory + os.pathsep + os.environ["PATH"], "DQ_PASSWORD": password}
        with open(log, "wb") as output:
            process = subprocess.Popen(["sh", START, config, "--save", ""], env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output)
        try:
            wait_until("the server answers", lambda: reaches(port, "PING").startswith("-NOAUTH"))
            assert ask(port, "AUTH", password) == "+OK"
            with open(f"/proc/{process.pid}/cmdline", "rb") as arguments:
                assert b"$d" not in arguments.read()
        finally:
            process.kill()
            process.wait()


def reaches(port, *words):
    try:
        return ask(port, *words)
    except OSError:
        return ""


TESTS = [
    the_password_of_the_image_is_no_argument_of_a_process,
    data_without_an_aof_is_found_however_the_configuration_says_where,
    the_image_does_not_overwrite_the_data_of_a_server_without_an_aof,
]
