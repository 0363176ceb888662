#!/usr/bin/env python3
"""Lists the public items of the clients, so that a change of them is seen in a diff.

    python3 scripts/public-items.py [--write]

Each client has its list in clients/LANGUAGE/interface.txt. Without --write the lists are compared with the sources, and
an item that came, changed or went is named; `make lint` does that. It reads sources and needs no compiler, so an item
stands there as it is declared: a default value or an alias of a type is not followed.
"""
import ast
import glob
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# The modules of the Python client that programs import beside the package itself.
PYTHON_MODULES = ["dramatiq", "taskiq", "celery/__init__", "celery/transport", "django/backend"]
# In TypeScript: what a module exports of another one, and what it exports itself.
EXPORTED = re.compile(r"^export (?:type )?(\*|\{[^}]*\}) from '\./(\S+)\.js';", flags=re.MULTILINE | re.DOTALL)
EXPORT = re.compile(r"export (?:declare )?(?:abstract )?(class|interface|type|function|const|enum) (\w+)")
# In Rust: the types that only the crate sees.
HIDDEN = re.compile(r"^ *(?:pub\([^)]*\) )?(?:struct|enum|trait|type) (\w+)", flags=re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(pattern):
    return sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True))


def without_comments(text, line_comment):
    """Blanks comments that have lines of their own. Those behind code are left."""
    text = re.sub(r"^\s*/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(rf"^\s*{line_comment}.*$", "", text, flags=re.MULTILINE)


def declaration(lines, start, ends="{;"):
    """The declaration that begins in a line, in one line: up to its body, with all of its parentheses."""
    words, depth = [], 0
    for line in lines[start:]:
        for at, character in enumerate(line):
            if character in "([":
                depth += 1
            elif character in ")]":
                depth -= 1
            if depth == 0 and (character in ends and not line.startswith("{}", at)):
                return " ".join(" ".join([*words, line[:at]]).split())
        words.append(line)
        if depth == 0 and "\n" in ends:
            break
    return " ".join(" ".join(words).split())


def python_items():
    folder = os.path.join(ROOT, "clients/python/src/dq_client")
    exported = {}
    for node in ast.parse(read(os.path.join(folder, "__init__.py"))).body:
        if isinstance(node, ast.ImportFrom):
            exported.setdefault(node.module, set()).update(alias.name for alias in node.names)
    for module, names in exported.items():
        path = os.path.join(folder, *module.split("."))
        yield from python_module(path + ".py" if os.path.exists(path + ".py") else path + "/__init__.py", "", names)
    for module in PYTHON_MODULES:
        name = module.removesuffix("/__init__").replace("/", ".") + "."
        yield from python_module(os.path.join(folder, module + ".py"), name, None)


def python_module(path, prefix, names):
    """The public items of a module, or of these names."""
    for node in ast.parse(read(path)).body:
        name = getattr(node, "name", None)
        if name is None or (name not in names if names is not None else name.startswith("_")):
            continue
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(map(ast.unparse, node.bases))
            yield f"class {prefix}{name}({bases})"
            yield from (f"{prefix}{name}.{member}" for member in python_members(node))
        else:
            yield f"{prefix}{python_function(node)}"


def python_function(node):
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){result}"


def python_members(node):
    for member in node.body:
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if member.name == "__init__":
                yield python_function(member)
                yield from python_attributes(member)
            elif not member.name.startswith("_"):
                yield python_function(member)
        elif isinstance(member, ast.AnnAssign) and not member.target.id.startswith("_"):
            yield f"{member.target.id}: {ast.unparse(member.annotation)}"


def python_attributes(method):
    """The public attributes that a constructor sets."""
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not node.attr.startswith("_"):
            yield node.attr


def node_items():
    folder = os.path.join(ROOT, "clients/node/src")
    for names, module in EXPORTED.findall(read(folder + "/index.ts")):
        wanted = None if names == "*" else set(re.findall(r"\w+", names)) - {"type"}
        text = without_comments(read(f"{folder}/{module}.ts"), "//")
        lines = text.split("\n")
        for at, line in enumerate(lines):
            found = EXPORT.match(line)
            if not found or (wanted is not None and found[2] not in wanted):
                continue
            if found[1] == "type":
                yield declaration(lines, at, ";").removeprefix("export ")
                continue
            yield declaration(lines, at).removeprefix("export ")
            if found[1] in ("class", "interface"):
                yield from (f"{found[2]}.{member}" for member in node_members(lines, at + 1))


def node_members(lines, start):
    """What stands at the first level of a body and is not private."""
    for at in range(start, len(lines)):
        if lines[at] == "}":
            return
        if re.match(r"  (?!#|private |protected |\}|\)|\]|@)\S", lines[at]):
            yield declaration(lines, at).removesuffix(" =")


def go_items():
    for path in sources("clients/go/*.go") + sources("clients/go/*redi*/*.go"):
        if path.endswith("_test.go"):
            continue
        package = re.search(r"^package (\w+)", read(path), flags=re.MULTILINE)[1]
        yield from (f"{package}: {item}" for item in go_file(without_comments(read(path), "//").split("\n")))


def go_file(lines):
    for at, line in enumerate(lines):
        if re.match(r"func (\((\w+ )?\*?[A-Z]\w*\) )?[A-Z]", line):
            yield go_signature(lines, at)
        elif found := re.match(r"type ([A-Z]\w*)\b.*?(struct|interface)? ?(\{\})?\{?$", line):
            yield line.removesuffix(" {").strip()
            if line.endswith("{"):
                for member in block(lines, at + 1, "}"):
                    if re.match(r"\t[A-Z]", member):
                        yield f"{found[1]}: {' '.join(member.split())}"
        elif re.match(r"(const|var) \($", line):
            yield from (f"{line.split()[0]} {' '.join(member.split())}" for member in block(lines, at + 1, ")")
                        if re.match(r"\t[A-Z]", member))
        elif re.match(r"(const|var) [A-Z]", line):
            yield line


def go_signature(lines, start):
    """A signature, whose results may be anonymous interfaces: it ends with the line that opens the body."""
    text = ""
    for line in lines[start:]:
        text = f"{text} {line.strip()}".strip()
        if text.count("(") == text.count(")"):
            return re.sub(r" \{( .*\})?$", "", text)
    return text


def block(lines, start, end):
    """The lines up to the end of a body that begins at the margin."""
    for line in lines[start:]:
        if line.startswith(end):
            return
        yield line


def rust_items():
    """Each line that is declared `pub`, but for the types that only the crate sees, and what is within these."""
    for path in sources("clients/rust/src/**/*.rs"):
        lines = without_comments(read(path), "//").split("\n")
        hidden = set(HIDDEN.findall("\n".join(lines)))
        scope = ""
        for at, line in enumerate(lines):
            if found := re.match(r"(?:pub )?(?:impl(?:<.*?>)? (?:.* for )?|(?:struct|enum|trait|mod) )(\w+)", line):
                scope = found[1]
            elif line.startswith(("pub(", "struct", "enum", "trait", "fn", "mod ")):
                scope = ""
            if re.match(r"#\[cfg\(test\)\]", line):
                break
            if not re.match(r" *pub (?!\()", line) or "$" in line or scope in hidden:
                continue
            is_item = re.match(r" *pub (const |async |unsafe )*(fn|struct|enum|trait|type|mod|use|static) ", line)
            if not is_item and not scope and "=" not in line:
                continue  # a field of a type that only the crate sees
            where = f"{scope}: " if line.startswith(" ") and scope else ""
            yield where + declaration(lines, at, "{;" if is_item else "{;,\n")


def php_items():
    for path in sources("clients/php/src/**/*.php"):
        lines = without_comments(read(path), r"(?://|\*|#\[)").split("\n")
        scope = os.path.splitext(os.path.relpath(path, os.path.join(ROOT, "clients/php/src")))[0].replace("/", "\\")
        if "@internal" in read(path) or re.search(r"/src/(Worker|Keeper|Connection)/", path):
            continue  # rooms of the package itself
        for at, line in enumerate(lines):
            if re.match(r"((final|abstract|readonly) )*(class|interface|trait|enum) \w", line):
                yield declaration([*lines[at:], "{"], 0, "{")
            elif re.match(r" +(final |static |abstract )*public ", line):
                yield f"{scope}: {declaration(lines, at, '{;' if 'function' in line else '{;=,')}"


def ruby_items():
    for path in sources("clients/ruby/lib/**/*.rb"):
        if "@api private" in read(path) or re.search(r"/lib/dq/(worker|sidekiq|active_job)/", path):
            continue  # rooms of the gem itself
        yield from ruby_file(path)


def ruby_file(path):
    scope, is_private, margin = os.path.relpath(path, os.path.join(ROOT, "clients/ruby/lib")), False, 0
    for line in read(path).split("\n"):
        if found := re.match(r"( *)(class|module) ([\w:]+.*)$", line):
            scope, is_private, margin = found[3].split(" ")[0], False, len(found[1])
            yield f"{found[2]} {found[3]}"
        elif re.match(r" *private$", line):
            is_private = True
        elif found := re.match(r"( *)(?:def |attr_\w+ |alias )(.*)$", line):
            if len(found[1]) <= margin:
                is_private = False
            if not is_private:
                # A method in one line, `def name(words) = …`, ends before its body.
                item = re.sub(r"^(def [^ (]+(?:\([^)]*\))?) = .*", r"\1", line.strip())
                yield f"{scope}: {item}"


LANGUAGES = {"python": python_items, "node": node_items, "go": go_items, "rust": rust_items, "php": php_items,
             "ruby": ruby_items}


def main():
    differing = False
    for language, items in LANGUAGES.items():
        path = os.path.join(ROOT, "clients", language, "interface.txt")
        if not os.path.isdir(os.path.dirname(path)):
            continue
        found = sorted(set(items()))
        if not found:
            sys.exit(f"scripts/public-items.py finds no public item in clients/{language}")
        if "--write" in sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(found) + "\n")
            continue
        known = read(path).splitlines() if os.path.exists(path) else []
        for item in sorted(set(found) ^ set(known)):
            differing = True
            print(f"clients/{language}/interface.txt: {'is new' if item in found else 'has gone'}: {item}")
    if differing:
        sys.exit("If that is meant: python3 scripts/public-items.py --write, and a line in the changelog.")


main()
