"""Prints tables to the terminal, and writes the JSON file."""
import json


def show(table):
    """Formats a table with columns as wide as their content. Long headings are broken into lines."""
    headings = [heading.split(" ") for heading in table.headings]
    widths = [max([len(row[at]) for row in table.rows] + [max(map(len, headings[at]), default=0)])
              for at in range(len(headings))]
    lines = [broken(words, width) for words, width in zip(headings, widths)]
    tall = max(map(len, lines))
    print(f"\n{table.title}")
    for level in range(tall):
        print("  " + "  ".join(align(at, ([""] * (tall - len(cell)) + cell)[level], widths[at])
                               for at, cell in enumerate(lines)))
    for row in table.rows:
        print("  " + "  ".join(align(at, cell, widths[at]) for at, cell in enumerate(row)))


def align(column, text, width):
    return text.ljust(width) if column == 0 else text.rjust(width)


def broken(words, width):
    """Breaks words into lines of a given width."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def write_json(results, path):
    with open(path, "w") as file:
        json.dump(rounded(results), file, indent=1, ensure_ascii=False)
        file.write("\n")


def rounded(value):
    """Rounds figures to five digits, because more digits would be noise in a committed file."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value
