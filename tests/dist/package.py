"""The Debian package: unpacked and used with each server; installed, upgraded and removed with dpkg on this machine."""
import os
import shutil
import subprocess
import tempfile

import files
from shell import Shell, ask, blocks, free_port, run

NAME = "redis-module-dq"
HEADING = "The Debian package"


def obstacle():
    """Why packages cannot be installed here, or nothing."""
    if not shutil.which("dpkg"):
        return "dpkg is missing"
    if os.geteuid() != 0:
        return "it is installed with dpkg, which needs root"
    status = subprocess.run(["dpkg-query", "--show", "--showformat=${db:Status-Status}", NAME], capture_output=True,
                            text=True).stdout
    if status not in ("", "not-installed"):
        return f"{NAME} is {status} on this machine"
    return None


def install(deb):
    return run("dpkg", "--install", deb)


def remove():
    subprocess.run(["dpkg", "--purge", NAME], capture_output=True, check=False)


def contents(deb):
    """The files and links of a package."""
    names = run("bash", "-o", "pipefail", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar --list', "bash", deb)
    return [name.removeprefix(".") for name in names.splitlines() if not name.endswith("/")]


def configure(shell, root=""):
    """A configuration that loads dq, as the command of the page makes it of that of a running server, and the line that
    starts a server with it. `root` is the directory into which the package is unpacked, if it is not installed."""
    config = plain(shell)
    shell.start(f"redis-server {config}", shell.dir)
    shell.run(enable(config, root), shell.dir)
    shell.stop()
    load_from(config, root)
    return f"redis-server {config}"


def load_from(config, root):
    """Makes a configuration load the module of a package that is unpacked into a directory."""
    if root:
        text = read(config)
        assert "\nloadmodule /usr/lib/" in text, text
        write(config, text.replace("\nloadmodule /usr/lib/", f"\nloadmodule {root}/usr/lib/"))


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def plain(shell):
    """A configuration without dq and without an AOF."""
    config = os.path.join(shell.dir, "redis.conf")
    write(config, f"bind 127.0.0.1\nport {shell.port}\ndir {shell.dir}\nappendonly no\n")
    return config


def enable(config, root=""):
    """The command of the page that changes a configuration, for this one."""
    line = next(line for block in blocks(HEADING, "sh") for line in block.splitlines() if "dq-enable" in line)
    return f"{line.replace('dq-enable', root + '/usr/sbin/dq-enable')} {config}"


def fails(shell, line):
    """What a command that fails says."""
    return shell.run(f"{line} 2>&1", shell.dir, ends=(1,))


def unpacked(dist, shell):
    """The directory into which the package is unpacked."""
    root = os.path.join(shell.dir, "unpacked")
    run("dpkg-deb", "--extract", files.only(dist, "*.deb"), root)
    return root


def data_of_a_server_survives_the_restart_with_dq(dist, server):
    """Redis begins empty if it is restarted with an AOF that it has never written."""
    with Shell(server) as shell:
        root = unpacked(dist, shell)
        config = os.path.join(shell.dir, "redis.conf")
        # The server is reached at another port, and its directory is where it was started.
        write(config, f"port {free_port()}\r\ndir ./\r\nsave 3600 1\r\n")
        data = os.path.join(shell.dir, "data")
        os.mkdir(data)
        shell.start(f"redis-server {config} --enable-protected-configs yes", data)
        # The next start looks where the file says.
        data = os.path.join(shell.dir, "moved data")
        os.mkdir(data)
        assert ask(shell.port, "CONFIG", "SET", "dir", data) == "+OK"
        assert ask(shell.port, "SET", "kept", "x") == "+OK"
        assert "no server answers" in fails(shell, enable(config, root))
        other = os.path.join(shell.dir, "other.conf")
        shutil.copy(config, other)
        assert f"and not {other}" in fails(shell, f"{enable(other, root)} -p {shell.port}")
        assert ask(shell.port, "CONFIG", "GET", "appendonly") and "libdq" not in read(config) + read(other)
        said = shell.run(f"{enable(config, root)} -p {shell.port}", "/")
        assert "appendonly yes" in said and "restart" in said, said
        assert "already" in fails(shell, enable(config, root))
        shell.stop()
        load_from(config, root)
        shell.start(f"redis-server {config}", shell.dir)
        assert ask(shell.port, "EXISTS", "kept") == ":1"
        assert ask(shell.port, "DQ.PUSH", "q", "x", "ID", "m") == "$1"


def the_configuration_of_a_stopped_server_is_left_alone(dist, server):
    """Nothing says where its data is, however its configuration is written."""
    with Shell(server) as shell:
        root = unpacked(dist, shell)
        write(os.path.join(shell.dir, "more.conf"), f"dir {shell.dir}\n")
        included = f"include {shell.dir}/more.conf"
        for line in ["dir ./", f"dir '{shell.dir}'", included, f"dir {shell.dir}\r", "", "port 0"]:
            config = os.path.join(shell.dir, "redis.conf")
            text = f"port {shell.port}\n{line}\n"
            write(config, text)
            shell.start(f"redis-server {config} --save 3600 1", shell.dir)
            assert ask(shell.port, "SET", "kept", "x") == "+OK"
            shell.stop()
            assert os.path.exists(os.path.join(shell.dir, "dump.rdb")), line
            said = shell.run(f"{enable(config, root)} 2>&1", "/", ends=(1,))
            assert "no server answers" in said and read(config) == text, (line, said)


def the_session_of_the_page_survives_a_restart(shell, root=""):
    line = configure(shell, root)
    shell.start(line, shell.dir)
    for text in blocks(HEADING, "text"):
        shell.play(text, shell.dir)
    # Sentinel does this to every server. The module must not be in the file twice then.
    assert ask(shell.port, "CONFIG", "REWRITE") == "+OK"
    shell.run("dqctl push later 1 --id one --in 1h", shell.dir)
    shell.stop()
    shell.start(line, shell.dir)
    assert ask(shell.port, "DQ.LEN", "later") == ":1"


def the_unpacked_package_works_with_the_lines_that_it_has(dist, server):
    """Tests that need no root, and also run if another package of that name is installed."""
    with Shell(server) as shell:
        root = unpacked(dist, shell)
        shell.environment["PATH"] = os.path.join(root, "usr/bin") + os.pathsep + shell.environment["PATH"]
        the_session_of_the_page_survives_a_restart(shell, root)


def an_older_one(deb, directory):
    """The same package as version 0.1.0, with a different module: a note is added to it, since strip left nothing to
    remove."""
    tree = os.path.join(directory, "older")
    run("dpkg-deb", "--raw-extract", deb, tree)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    version = next(line for line in text.splitlines() if line.startswith("Version: "))
    with open(control, "w", encoding="utf-8") as file:
        file.write(text.replace(version, "Version: 0.1.0-1").replace("(= " + version.split()[1], "(= 0.1.0-1"))
    with open(os.path.join(tree, "usr/share/doc", NAME, "only-in-0.1.0"), "w", encoding="utf-8") as file:
        file.write("a file that the next version does not have\n")
    older = os.path.join(directory, "older.deb")
    run("dpkg-deb", "--root-owner-group", "--build", tree, older)
    return older


def the_package_installs_works_and_leaves_nothing(dist, server):
    deb = files.only(dist, "*.deb")
    paths = contents(deb)
    present = [path for path in paths if os.path.lexists(path)]
    assert not present, f"these files are here already: {present}"
    try:
        assert "run dq-enable" in install(deb)
        run("dpkg", "--verify", NAME)
        assert os.path.isdir("/etc/dqctl")
        with Shell(server) as shell:
            the_session_of_the_page_survives_a_restart(shell)
            assert "dqctl-push - Push a message" in shell.run("MANWIDTH=80 man dqctl-push | col -b", shell.dir)
            for subject in ("dqctl", "dqctl-work", "dqctl-export"):
                assert os.path.exists(shell.run(f"man -w {subject}", shell.dir).strip()), subject
            completed = shell.run("source /usr/share/bash-completion/completions/dqctl; complete -p dqctl", shell.dir)
            assert "dqctl" in completed
            if shutil.which("systemd-analyze"):
                units = [path for path in paths if path.endswith(".service")]
                assert units, "the package has no units"
                for unit in units:
                    shell.run(f"systemd-analyze verify --man=no {unit.replace('@.', '@mail.')}", shell.dir)
        removal = subprocess.run(["dpkg", "--remove", NAME], capture_output=True, text=True, check=True)
        assert not removal.stderr, removal.stderr
        assert not os.path.exists("/etc/dqctl")
        left = [path for path in paths if os.path.lexists(path)]
        assert not left, f"left behind: {left}"
    finally:
        remove()
    assert not os.path.exists("/usr/share/redis-module-dq") and not os.path.exists(f"/usr/share/doc/{NAME}")


def removing_the_package_names_the_servers_that_still_load_it(dist, server):
    config = "/etc/redis/dq-dist-test.conf"
    made = not os.path.isdir("/etc/redis")
    install(files.only(dist, "*.deb"))
    try:
        os.makedirs("/etc/redis", exist_ok=True)
        with open(config, "w", encoding="utf-8") as file:
            file.write("loadmodule /usr/lib/redis/modules/libdq.so\n")
        os.makedirs("/etc/dqctl", exist_ok=True)
        with open("/etc/dqctl/dq-dist-test.env", "w", encoding="utf-8") as file:
            file.write("DQ_WORK=-q q -- true\n")
        with Shell(server) as shell:
            shell.start(configure(shell), shell.dir)
            done = subprocess.run(["dpkg", "--remove", NAME], capture_output=True, text=True, check=True)
            pid = shell.process.pid
        assert f"{config} still loads dq" in done.stderr, done.stderr
        assert f"process id {pid} runs with dq" in done.stderr, done.stderr
        assert "dpkg: warning" not in done.stderr, done.stderr
        assert os.path.exists("/etc/dqctl/dq-dist-test.env")
    finally:
        os.remove(config)
        if os.path.exists("/etc/dqctl/dq-dist-test.env"):
            os.remove("/etc/dqctl/dq-dist-test.env")
        if made:
            os.rmdir("/etc/redis")
        remove()


def an_upgrade_keeps_the_data_and_the_running_server(dist, server):
    deb = files.only(dist, "*.deb")
    with tempfile.TemporaryDirectory(prefix="dq-dist-") as directory:
        older = an_older_one(deb, directory)
        try:
            install(older)
            with Shell(server) as shell:
                line = configure(shell)
                shell.start(line, shell.dir)
                shell.run("dqctl push later 1 --id one --in 1h; dqctl push now 2 --id two", shell.dir)
                assert "keeps the version" in install(deb)
                assert not os.path.exists(f"/usr/share/doc/{NAME}/only-in-0.1.0")
                assert ask(shell.port, "DQ.LEN", "later") == ":1", "the running server goes on"
                shell.stop()
                shell.start(line, shell.dir)
                assert ask(shell.port, "DQ.LEN", "later") == ":1"
                assert ask(shell.port, "DQ.GET", "now", "two").startswith("*")
        finally:
            remove()


# The tests that run with each server and need only dpkg-deb.
UNPACKED = [
    the_unpacked_package_works_with_the_lines_that_it_has,
    data_of_a_server_survives_the_restart_with_dq,
    the_configuration_of_a_stopped_server_is_left_alone,
]
TESTS = [
    the_package_installs_works_and_leaves_nothing,
    removing_the_package_names_the_servers_that_still_load_it,
    an_upgrade_keeps_the_data_and_the_running_server,
]
