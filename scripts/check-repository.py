#!/usr/bin/env python3
"""Compares what surrounds the code with the code: nothing else would notice a workflow that names what is not there.

    python3 scripts/check-repository.py                  part of `make lint`; needs no network
    python3 scripts/check-repository.py --tag v0.2.0     also whether this tag may be released
    python3 scripts/check-repository.py --notes v0.2.0   prints what the changelog says of this version
"""
import glob
import json
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WORKFLOWS = ".github/workflows"
MANIFESTS = ["Cargo.toml", "queue/Cargo.toml", "clients/rust/Cargo.toml", "clients/rust/apalis/Cargo.toml",
             "ctl/Cargo.toml", "clients/python/pyproject.toml", "clients/node/package.json"]
# Where the repository keeps files that others name. What is built is not there yet.
FOLDERS = ("scripts/", "packaging/", "contrib/", "clients/", "docs/", "tests/", "benches/", "ctl/", "queue/", ".ci/",
           "./.github/")
BUILT = ("clients/node/dist", "clients/node/node_modules")
# The longest line of code, comments and templates, in all languages whose formatters do not see to that.
COLUMNS = 120
LANGUAGES = (".rs", ".py", ".ts", ".mjs", ".go", ".js", ".css", ".html", ".sh", ".lua", ".rb", ".php", ".c")
# Where lines are as long as they are: they were written by a program, or are tables of one line for each case.
LONG_LINES = ("tests/golden/",)
# The fences of Markdown whose text is code, and not what a terminal shows.
FENCES = ("rust", "python", "ts", "js", "go", "sh", "lua", "ruby", "php", "html", "css")
PATH = re.compile(r"(?<![\w/.$-])(?:\./)?[\w.-]+(?:/[\w.@-]+)+")
problems = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def code(path):
    """The lines of a file without comments, with their numbers."""
    lines = enumerate(read(path).splitlines(), 1)
    return [(number, line) for number, line in lines if not line.lstrip().startswith("#")]


def check(what, good):
    if not good:
        problems.append(what)


def targets():
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def matrix(path, key):
    """The values of a list of a matrix in a workflow."""
    found = re.findall(rf"^ +{key}: \[(.*)\]$", read(path), re.MULTILINE)
    return [value.strip() for values in found for value in values.split(",")]


def commands():
    """The targets of make, the paths and the options in workflows and in the Dockerfile exist."""
    files = [os.path.join(WORKFLOWS, name) for name in sorted(os.listdir(WORKFLOWS))]
    files += [".github/actions/rust/action.yml", "contrib/docker/Dockerfile"]
    known = targets()
    for path in files:
        for number, line in code(path):
            where = f"{path}:{number}"
            for target in re.findall(r"(?:run: |&& |^ +)(?:\w+=\S+ )?make ([a-z -]+)", line):
                for name in target.split():
                    check(f"{where}: the Makefile has no target {name}", name in known)
            for name in PATH.findall(line):
                if name.startswith(FOLDERS) and not name.startswith(BUILT):
                    check(f"{where}: {name} does not exist", os.path.exists(name))
            script = re.search(r"\b(?:scripts|packaging)/[\w-]+\.(?:sh|py)", line)
            for option in re.findall(r" (--[a-z-]+)", line[script.end():]) if script else []:
                is_known = os.path.exists(script[0]) and option in read(script[0])
                check(f"{where}: {script[0]} has no option {option}", is_known)
    for name in matrix(f"{WORKFLOWS}/ci.yml", "target"):
        check(f"ci.yml: the Makefile has no target {name}", name in known)


def parts():
    """The jobs do all that .ci/run does, on all servers."""
    jobs = read(f"{WORKFLOWS}/ci.yml")
    steps = re.findall(r"^step .* make ([a-z-]+)$", read(".ci/run"), re.MULTILINE)
    check(".ci/run has no steps", steps)
    for target in steps:
        check(f"ci.yml has no job for `make {target}` of .ci/run", re.search(rf"\bmake {target}$", jobs, re.MULTILINE))
    fetched = subprocess.run(["scripts/fetch-servers.sh", "--names"], check=True, capture_output=True, text=True)
    names = fetched.stdout.split()
    tested = matrix(f"{WORKFLOWS}/ci.yml", "server")
    check(f"ci.yml tests {tested}, and scripts/fetch-servers.sh has {names}", tested == names)


def kept_current():
    """The folders of Dependabot have something of that language."""
    ecosystems = {"cargo": ["Cargo.toml"], "gomod": ["go.mod"], "npm": ["package.json"], "pip": ["pyproject.toml"],
                  "docker": ["Dockerfile"], "docker-compose": ["compose.yml"],
                  "github-actions": [".github/workflows", "action.yml"]}
    found = re.findall(r"package-ecosystem: (\S+)\n +directories: (.+)\n", read(".github/dependabot.yml"))
    check("dependabot.yml names no ecosystem", found)
    for ecosystem, folders in found:
        for folder in re.findall(r"/[\w./*-]*", folders):
            check(f"dependabot.yml: {folder} has nothing of {ecosystem}",
                  any(glob.glob(os.path.join("." + folder, name)) for name in ecosystems[ecosystem]))


def containers():
    """What runs in containers has options of dqctl, and more time to end than it needs."""
    arguments = "".join(read(path) for path in glob.glob("ctl/src/**/*.rs", recursive=True))
    for path in glob.glob("contrib/kubernetes/*.yaml") + ["contrib/docker/compose.yml"]:
        for number, line in code(path):
            called = re.search(r"(?:args|command): \[((?:work|export|web)\b.*)\]", line)
            for option in re.findall(r"--([a-z]+[a-z-]*)", called[1].split(" --,")[0]) if called else []:
                known = re.search(rf"\bpub {option.replace('-', '_')}: ", arguments) or f'"{option}"' in arguments
                check(f"{path}:{number}: dqctl has no option --{option}", known)
    worker = "\n".join(line for _, line in code("contrib/kubernetes/worker.yaml"))
    period, grace, pause = (int(re.search(pattern, worker)[1]) for pattern in
                            (r"terminationGracePeriodSeconds: (\d+)", r"--grace, (\d+)s", r'\[sleep, "(\d+)"\]'))
    unreachable = 12  # how long a stop goes on after --grace if the server does not answer
    check(f"worker.yaml: {pause} s, {grace} s and {unreachable} s leave less than 5 s of {period} s",
          pause + grace + unreachable + 5 <= period)


def code_of_page(text):
    """The lines of code of a page in Markdown, with their numbers."""
    language = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r" *```(\w*)", line)
        if fence:
            language = fence[1] if language is None else None
        elif language in FENCES:
            yield number, line


def columns():
    """No line of code, of a comment or of a template is longer than a screen is wide."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    for path in filter(os.path.isfile, listed.split("\0")):
        if path.startswith(LONG_LINES) or not path.endswith((*LANGUAGES, ".md")):
            continue
        lines = code_of_page(read(path)) if path.endswith(".md") else enumerate(read(path).splitlines(), 1)
        for number, line in lines:
            check(f"{path}:{number}: {len(line)} columns, and at most {COLUMNS} are readable", len(line) <= COLUMNS)


def versions():
    """The version of each package, by its manifest."""
    def cargo(path):
        return re.search(r'^\[workspace\.package\]\nversion = "(.+)"', read(path), re.MULTILINE)[1]

    return {
        "Cargo.toml": cargo("Cargo.toml"),
        "clients/rust/apalis/Cargo.toml": cargo("clients/rust/apalis/Cargo.toml"),
        "clients/node/package.json": json.loads(read("clients/node/package.json"))["version"],
        "clients/python/src/dq_client/__init__.py":
            re.search(r'^__version__ = "(.+)"', read("clients/python/src/dq_client/__init__.py"), re.MULTILINE)[1],
        "clients/ruby/lib/dq/version.rb": re.search(r'VERSION = "(.+)"', read("clients/ruby/lib/dq/version.rb"))[1],
    }


def addresses():
    """The address of the repository in each manifest that names it."""
    found = {}
    for path in MANIFESTS:
        text = re.sub(r"^\w+\.workspace = true$", "", read(path), flags=re.MULTILINE)
        address = r'^ *"?(?:repository|Repository|url)"?(?: =|:) "(?:git\+)?(.+?)(?:\.git)?"'
        for url in re.findall(address, text, re.MULTILINE):
            found[path] = url
    return found


def manifests():
    """The manifests agree: one version, one oldest Rust, and one address of the repository, or none at all."""
    check(f"the versions differ: {versions()}", len(set(versions().values())) == 1)
    rust = {path: re.findall(r'^rust-version = "(.+)"', read(path), re.MULTILINE)
            for path in MANIFESTS if "Cargo" in path}
    check(f"the oldest Rust differs: {rust}", len({str(found) for found in rust.values()}) == 1 and all(rust.values()))
    found = addresses()
    check(f"the addresses of the repository differ: {found}; use packaging/repository.py",
          not found or (len(set(found.values())) == 1 and len(found) == 4))


def notes(version):
    """The section of the changelog of this version, and what follows its number in the heading."""
    found = re.search(rf"^## \[{re.escape(version)}\] - ([^\n]*)\n(.*?)(?=^## |\Z)", read("CHANGELOG.md"),
                      re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"dq: CHANGELOG.md has no section for {version}")
    return found[1], found[2].strip()


def may_be_released(tag):
    version = tag.removeprefix("v")
    for path, written in versions().items():
        check(f"{path} says {written}, and the tag {tag}", tag == "v" + written)
    date, _ = notes(version)
    check(f"CHANGELOG.md says {date!r} instead of the date of {version}", re.fullmatch(r"\d{4}-\d\d-\d\d", date))
    golden = f"tests/golden/{tag}"
    check(f"{golden} does not exist: scripts/freeze-golden.sh {version}", os.path.isdir(golden))
    check("the manifests name no repository: packaging/repository.py writes its address", addresses())


def main():
    option, tag = (sys.argv[1:] + [None, None])[:2]
    if (option is None) != (tag is None) or option not in (None, "--tag", "--notes"):
        sys.exit(__doc__)
    if option == "--notes":
        print(notes(tag.removeprefix("v"))[1])
        return
    for part in (commands, parts, kept_current, containers, manifests, columns):
        part()
    if option == "--tag":
        may_be_released(tag)
    for problem in problems:
        print(f"dq: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
