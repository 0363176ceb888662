"""What make dist has put into its directory."""
import glob
import os
import re
import subprocess
import tarfile

from shell import run

BINARIES = ["libdq.so", "dqctl"]


def only(dist, pattern):
    found = glob.glob(os.path.join(dist, pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def every_file_has_its_checksum(dist):
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as sums:
        named = {line.split()[1] for line in sums}
    assert named == set(os.listdir(dist)) - {"SHA256SUMS", "glibc.txt"}, named


def the_binaries_need_what_glibc_txt_says(dist):
    with open(os.path.join(dist, "glibc.txt"), encoding="utf-8") as file:
        text = file.read()
    for name in BINARIES:
        symbols = run("objdump", "-T", os.path.join(dist, name))
        versions = [tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", symbols)]
        newest = ".".join(map(str, max(versions)))
        assert f"{name} needs glibc {newest} or newer\n" in text, text


def the_binaries_are_stripped_and_name_no_directory_of_the_builder(dist):
    for name in BINARIES:
        path = os.path.join(dist, name)
        assert "no symbols" in subprocess.run(["nm", path], capture_output=True, text=True).stderr, name
        with open(path, "rb") as file:
            contents = file.read()
        for directory in {os.path.expanduser("~/.cargo"), os.getcwd()}:
            assert directory.encode() + b"/" not in contents, f"{name} names {directory}"


def the_archives_have_no_owner_and_one_time(dist):
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert len({member.mtime for member in members}) == 1
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mode & 0o7777 for member in members} <= {0o644, 0o755}
    root = names[0]
    for name in ["libdq.so", "dqctl", "README.md", "LICENSE", "CHANGELOG.md", "redis.conf.example", "contrib/README.md",
                 "man/dqctl.1", "man/dqctl-push.1", "completions/dqctl.bash", "completions/_dqctl",
                 "completions/dqctl.fish", "docs/install.md"]:
        assert f"{root}/{name}" in names, name


def packing_again_gives_the_same_bytes(dist):
    """Cargo finds nothing to do, so this shows that the archives depend on nothing but their contents."""
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as sums:
        before = sums.read()
    run("scripts/dist.sh", cwd=os.path.join(os.path.dirname(__file__), "..", ".."))
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as sums:
        assert sums.read() == before


TESTS = [
    every_file_has_its_checksum,
    the_binaries_need_what_glibc_txt_says,
    the_binaries_are_stripped_and_name_no_directory_of_the_builder,
    the_archives_have_no_owner_and_one_time,
    packing_again_gives_the_same_bytes,
]
