#!/usr/bin/env python3
"""room_sizes.py [--update]: compares the lines of each folder of both houses with the tables in CONTRIBUTING.md, or writes them
there, rounded to hundreds. A number may be a tenth, or 100 lines, off."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "CONTRIBUTING.md"
ROW = re.compile(r"^(\| \d+ \| `(\w+)/` \|.* \| )([\d,]+)( \|)$", re.MULTILINE)


def lines_of(room):
    folders = [folder for folder in (ROOT / "include/memprof" / room, ROOT / "toolkit" / room) if folder.is_dir()]
    return sum(len(path.read_text().splitlines()) for folder in folders for path in folder.rglob("*.[ch]pp"))


def main():
    text = DOCUMENT.read_text()
    rows = ROW.findall(text)
    if "--update" in sys.argv[1:]:
        DOCUMENT.write_text(ROW.sub(lambda row: f"{row[1]}{round(lines_of(row[2]), -2):,}{row[4]}", text))
        return 0
    houses = ROOT / "include/memprof", ROOT / "toolkit"
    rooms = {folder.name for house in houses for folder in house.iterdir() if folder.is_dir()}
    faults = [f"{room}/ has no row with a number of lines" for room in sorted(rooms - {row[1] for row in rows})]
    for _, room, stated, _ in rows:
        lines, number = lines_of(room), int(stated.replace(",", ""))
        if abs(lines - number) > max(number / 10, 100):
            faults.append(f"{room}/ has {lines} lines, not {stated}")
    print("\n".join(f"{DOCUMENT.name}: {fault}" for fault in faults) or f"the sizes of {len(rows)} rooms are as stated")
    if faults:
        print("scripts/room_sizes.py --update writes the numbers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
