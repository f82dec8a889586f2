#!/usr/bin/env python3
"""Writes translation units that compile only if each header stands alone.

scripts/header_units.py DIR HEADER...   headers as in an #include (memprof/...); writes DIR/unit_N.cpp

In a unit, only headers that a header itself includes, directly or not, come before it, so none of them can hide a missing include.
A header that many others include is still not compiled once for each of them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def path_of(name):
    inside = name.removeprefix("memprof/")
    return ROOT / inside if inside.startswith("toolkit/") else ROOT / "include" / name


def included_by(name):
    return re.findall(r"^\s*#\s*include <(memprof/[^>]+)>", path_of(name).read_text(), re.MULTILINE)


def closures(names):
    direct = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in direct:
            direct[name] = included_by(name)
            pending += direct[name]

    def reached_from(name):
        found = set()
        open_names = [name]
        while open_names:
            new = [other for other in direct[open_names.pop()] if other not in found]
            found.update(new)
            open_names += new
        return found

    return {name: reached_from(name) for name in names}


def units(names):
    """The headers of each unit, each after those that it includes; every header is in one unit."""
    reached = closures(names)
    left = set(names)
    while left:
        unit = [max(left, key=lambda name: (len(reached[name]), name))]
        left.remove(unit[0])
        while candidates := (reached[unit[-1]] & left) - {name for name in left if unit[-1] in reached[name]}:
            unit.append(max(candidates, key=lambda name: (len(reached[name]), name)))
            left.remove(unit[-1])
        yield unit[::-1]


def main(folder, names):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for number, unit in enumerate(units(sorted(names))):
        path = folder / f"unit_{number}.cpp"
        text = "".join(f"#include <{name}>\n" for name in unit)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        written.add(path)
    for path in set(folder.glob("unit_*.cpp")) - written:
        path.unlink()


main(sys.argv[1], sys.argv[2:])
