"""Makes what is published from benches/results.json, and from what other benches wrote next to it: the charts in
docs/charts/, and the tables between the markers <!-- bench:NAME --> and <!-- /bench:NAME --> of docs/performance.md and
docs/internals/targets.md. The name `run` stands for a sentence that says when and on what the figures
were measured.

    python3 benches/peers/publish.py      with matplotlib; `make bench-charts` has it
"""
import json
import math
import os
import re
import sys
from types import SimpleNamespace

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, NullFormatter

from steal import told
from tables import ACKPOP, PUBLISHED, Results, machine_in_words, number, punctual

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DOCUMENTS = ["docs/performance.md", "docs/internals/targets.md"]
OURS, OURS_LIGHT, THEIRS, THEIRS_LIGHT = "#c0392b", "#e6a49d", "#5d6d7e", "#b3bcc5"
BAR_INCHES = 0.42

# The same input makes the same bytes: no date, no random ids.
matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.hashsalt": "dq", "svg.fonttype": "path", "font.size": 10, "axes.spines.top": False,
    "axes.spines.right": False, "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white"})


def save(figure, name, title):
    figure.suptitle(title, x=0.012, ha="left", fontsize=12)
    figure.tight_layout()
    figure.savefig(os.path.join(ROOT, "docs", "charts", f"{name}.svg"), metadata={"Date": None, "Creator": None})
    if os.environ.get("DQ_CHARTS_PNG"):  # to look at them
        figure.savefig(os.path.join(os.environ["DQ_CHARTS_PNG"], f"{name}.png"), dpi=80)
    pyplot.close(figure)


def plain(value, _=None):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def bars(name, title, axis, rows, series=("",), log=False, notes={}):
    """Horizontal bars with their figures. Rows are (contender, figures), a figure for each series or None; notes are
    put behind the names of contenders."""
    rows = [(contender, figures) for contender, figures in rows if any(figure is not None for figure in figures)]
    if not rows:
        return
    count = len(series)
    figure, axes = pyplot.subplots(figsize=(8, BAR_INCHES * len(rows) * (1 + 0.45 * (count - 1)) + 1.3))
    height = 0.8 / count
    for place, (contender, figures) in enumerate(rows):
        ours = contender.name == "dq"
        for at, value in enumerate(figures):
            if value is None:
                continue
            color = ((OURS, OURS_LIGHT) if ours else (THEIRS, THEIRS_LIGHT))[at]
            y = place + (at - (count - 1) / 2) * height
            axes.barh(y, value, height=height * 0.9, color=color)
            axes.annotate(number(value), (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [contender.title + notes.get(contender.name, "") for contender, _ in rows])
    axes.invert_yaxis()
    if log:
        values = [value for _, figures in rows for value in figures if value is not None]
        axes.set_xscale("log")
        axes.set_xlim(10 ** math.floor(math.log10(min(values) * 0.9)), max(values) * 3)
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.margins(x=0.12)
    if count > 1:
        handles = [pyplot.Rectangle((0, 0), 1, 1, color=color) for color in (THEIRS, THEIRS_LIGHT)]
        axes.legend(handles, series, frameon=False, loc="lower right")
    axes.set_xlabel(axis)
    save(figure, name, title)


def life(results):
    rows = [(SimpleNamespace(name="dq", title=ACKPOP), f["memory"]) for _, f in results.of("worker")]
    bars("life", "Cost of push + pop + ack", "server CPU, µs per message (logarithmic)",
         [(c, (f["life_us"], f.get("batch_life_us"))) for c, f in rows + results.of("life")],
         ("one message per command", "batches of 100"), log=True)


def memory(results):
    bars("memory", "Memory of a delayed message beyond its payload of 100 bytes", "bytes per message",
         [(c, (f["bytes"],)) for c, f in results.of("memory")])


def stall(results):
    count = max((f["messages"] for _, f in results.of("burst")), default=0)
    fewer = {c.name: f" ({f['messages']:,})" for c, f in results.of("burst") if f["messages"] < count}
    bars("stall", f"Longest wait of other clients while {count:,} messages become due at once",
         "longest PING, ms (logarithmic)", [(c, (f["longest_ping_ms"],)) for c, f in results.of("burst")], log=True,
         notes=fewer)


def punctuality(results):
    polled = {c.name: ", polled every second" for c, _ in results.of("punctuality") if c.polled}
    bars("punctuality", "Lateness of deliveries at 2,000 messages per second", "99th percentile, ms (logarithmic)",
         [(c, (punctual(results, c, 2000, "p99_ms"),)) for c, _ in results.of("punctuality")], log=True,
         notes=polled)


def growth(results):
    figure, axes = pyplot.subplots(figsize=(8, 4))
    styles = {"dq": OURS, "zset-lua": THEIRS, "set-get-del": THEIRS_LIGHT}
    for contender, figures in results.of("growth"):
        sizes = [int(size) for size in figures["sizes"]]
        for kind, line in (("push", "-"), ("pop", "--")):
            values = [figures["sizes"][str(size)].get(f"{kind}_us") for size in sizes]
            if None not in values:
                label = "SET" if contender.name == "set-get-del" else f"{contender.title}, {kind}"
                axes.plot(sizes, values, line, marker="o", color=styles[contender.name], label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("waiting messages (logarithmic)")
    axes.set_ylabel("server CPU, µs")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    save(figure, "growth", "Cost of a push and a pop in a growing queue")


def markdown(table):
    lines = [f"*{table.title}*", "",
             "| " + " | ".join(table.headings) + " |",
             "| --- |" + " ---: |" * (len(table.headings) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in table.rows])


def run_in_words(raw):
    """When and on what the figures were measured."""
    commit = f", at commit `{raw['commit']}`" if raw.get("commit") else ""
    stolen = f", {told(raw['steal'])}" if "steal" in raw else ""
    return f"The figures are of {raw['when']}{commit}: {raw['server']}, {machine_in_words(raw['machine'])}{stolen}."


def renew(path, results):
    """Replaces what is between the markers; a marker with an unknown name is an error."""
    with open(os.path.join(ROOT, path)) as file:
        text = file.read()

    def table(match):
        name = match.group(1)
        if name == "run":
            return f"<!-- bench:run -->\n{run_in_words(results.raw)}\n<!-- /bench:run -->"
        if name not in PUBLISHED:
            sys.exit(f"{path}: there is no table {name}")
        return f"<!-- bench:{name} -->\n{markdown(PUBLISHED[name](results))}\n<!-- /bench:{name} -->"

    text = re.sub(r"<!-- bench:([a-z-]+) -->\n.*?<!-- /bench:\1 -->", table, text, flags=re.DOTALL)
    with open(os.path.join(ROOT, path), "w") as file:
        file.write(text)


def main():
    with open(os.path.join(ROOT, "benches", "results.json")) as file:
        results = Results(json.load(file))
    os.makedirs(os.path.join(ROOT, "docs", "charts"), exist_ok=True)
    for draw in (life, memory, stall, punctuality, growth):
        draw(results)
    for path in DOCUMENTS:
        renew(path, results)


if __name__ == "__main__":
    main()
