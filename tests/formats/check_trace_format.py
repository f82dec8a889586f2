#!/usr/bin/env python3
"""check_trace_format.py MEMPROF: writes a trace by docs/trace_format.md alone, and has memprof read it.

Nothing here is taken from memprof's sources: where memprof does not read the file as meant, one of the two is wrong.
"""
import base64
import functools
import gzip
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile


def crc32c_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC32C = [crc32c_of_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def zigzag(value):
    return 2 * value if value >= 0 else -2 * value - 1


def text(value):
    return varint(len(value.encode())) + value.encode()


def definition(kind, content):
    return bytes([kind]) + varint(len(content)) + content


def name(number, value):
    return definition(1, varint(number) + value.encode())


def space(number, label, memory):
    return definition(2, varint(number) + varint(label) + varint(zigzag(0)) + varint(0) + varint(memory))


def capture(fields):
    content = b""
    for tag, value in fields.items():
        content += varint(tag) + (text(value) if isinstance(value, str) else text_of_number(value))
    return definition(3, content)


def text_of_number(value):
    number = varint(zigzag(value))
    return varint(len(number)) + number


@functools.lru_cache(typed=True)
def fact(value):
    if isinstance(value, int):
        return varint(0) + varint(zigzag(value))
    return varint(1) + struct.pack("<d", value) if isinstance(value, float) else varint(2) + text(value)


def facts(table, columns, rows, first=0):
    head = text(table) + varint(first) + varint(len(columns)) + b"".join(map(text, columns)) + varint(len(rows))
    return definition(4, head + b"".join(fact(value) for row in rows for value in row))


def ring(number):
    return bytes([7]) + varint(number)


class Chunk:
    """The records of a chunk, with what one tells the next."""

    def __init__(self):
        self.bytes = b""
        self.stamp = 0
        self.address = 0
        self.space = 0

    def add(self, record):
        self.bytes += record
        return self

    def at(self, stamp):
        change = zigzag((stamp - self.stamp + 2**63) % 2**64 - 2**63)
        self.stamp = stamp
        self.bytes += bytes([0x80 | change]) if change < 64 else bytes([0xC0 | change & 0x3F]) + varint(change >> 6)
        return self

    def event(self, kind, address=0, size=0, space=None, label=0, tag=0):
        fields, present = b"", 0
        is_memory = kind in (1, 2, 3, *range(7, 14), 21)
        change = address - (self.address if is_memory else 0)
        if is_memory:
            self.address = address
        if change:
            present |= 1 if change % 16 == 0 else 2
            fields += varint(zigzag(change // 16 if change % 16 == 0 else change))
        if size:
            present |= 4
            fields += varint(size)
        if space is not None and space != self.space:
            present |= 8
            fields += bytes([space])
            self.space = space
        if label:
            present |= 16
            fields += varint(label)
        if tag:
            present |= 32
            fields += varint(tag)
        self.bytes += (bytes([0x70 | kind]) if kind < 15 else bytes([0x7F, kind])) + bytes([present]) + fields
        return self

    def slot(self, upper, address, more=b""):
        number = address * 0x9E3779B97F4A7C15 % 2**64 >> 52
        self.bytes += bytes([upper << 4 | number >> 8, number & 0xFF]) + more
        return self


def trace_file(chunks):
    body = b""
    for number, chunk in enumerate(chunks):
        head = struct.pack("<4sIIII", b"CHNK", len(chunk.bytes), number, 0, crc32c(chunk.bytes))
        body += head + struct.pack("<I", crc32c(head)) + chunk.bytes
    head = struct.pack("<8sHHIQQIIIIQI", b"\x89MEMTRC\n", 1, 1, 64, len(chunks), 64 + len(body), 0, 0, 0, 0, 0, 0)
    return head + struct.pack("<I", crc32c(head)) + body


def profile_of(memprof, folder, chunks):
    path = folder / "made.memtrace"
    path.write_bytes(trace_file(chunks))
    done = subprocess.run([memprof, "profile", path, "-o", folder / "made.json"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return json.loads((folder / "made.json").read_text()), path


def check_everything(memprof, folder):
    first = Chunk()
    first.add(capture({1: "a writer", 2: 0, 4: 1_700_000_000_000_000_000, 5: 1000, 9: 77, 10: "host", 11: "made by hand"}))
    for number, value in enumerate(("cpu", "dram", "forward", "STEP", "worker"), 1):
        first.add(name(number, value))
    first.add(space(0, 1, 1)).add(space(1, 2, 0))
    first.add(facts("made", ["count", "share", "what"], [[-3, 0.25, "a"], [4, -1.5, "b"]]))
    first.add(ring(0)).at(1000).event(16, 0, 1_700_000_000_000_000_000, 255)
    first.add(ring(1)).at(1010).event(6, 1, 4242, label=5)
    first.at(1020).event(4, 1, label=3)                          # forward begins: number 1, within none
    first.at(1030).event(1, 0x10000, 100, space=1).event(1, 0x10064, 50, space=1)
    first.slot(2, 0x10000).slot(1, 0x10000)                      # freed, and allocated again as before
    first.slot(3, 0x10064).slot(4, 0x10064, varint(70))          # freed without bytes, and allocated with others
    first.add(bytes([0x60]))                                     # forward ends
    second = Chunk()                                             # nothing of the state above is known here
    second.add(ring(2)).at(1100).event(6, 2, 4243, label=5)
    second.at(1110).event(1, 0x20000, 1000, space=1)
    second.add(ring(1)).at(1120).event(4, 2, label=3).add(bytes([0x60]))
    second.add(bytes([8])).at(1130).event(2, 0x20000, 1000, space=1)
    second.add(bytes([9])).at(1140).event(15, label=4)
    second.add(ring(0)).at(2000).event(16, 1_000_000, 1_700_000_000_001_000_000, 255).event(18)
    found, path = profile_of(memprof, folder, [first, second])
    assert found["exact"] and found["complete"], (found["exact"], found["complete"], found["anomalies"])
    dram = next(one for one in found["spaces"] if one["name"] == "dram")
    assert dram["cumulative_peak"] == 100 + 70 + 1000 and dram["cumulative_current"] == 170, dram
    assert dram["allocation_count"] == 5 and dram["deallocation_count"] == 3, dram
    assert not any(value["count"] for value in dram["anomalies"].values()), dram["anomalies"]
    assert [one["name"] for one in found["segments"]][0] == "STEP", found["segments"]
    assert found["duration_ns"] == 1_000_000, found["duration_ns"]
    shown = subprocess.run([memprof, "trace", path], capture_output=True, text=True)
    assert shown.returncode == 0 and "forward" in shown.stdout, shown.stderr


def times_in(value, key=""):
    """All numbers of nanoseconds since the begin."""
    if isinstance(value, dict):
        return [time for name, part in value.items() for time in times_in(part, name)]
    if isinstance(value, list):
        return [time for part in value for time in times_in(part, key)]
    return [value] if key.endswith("_ns") and not key.endswith("unix_ns") and not key.endswith("per_event") else []


def check_without_clock(memprof, folder):
    """A trace that no clock reading is in, of a stamp clock that began anywhere: a tick is a nanosecond, from the begin on."""
    for begin in (1000, 2**62 + 1000, 2**63 + 1000):
        only = Chunk()
        signed = begin if begin < 2**63 else begin - 2**64
        definitions = [capture({1: "a writer", 2: 0, 4: 1_700_000_000_000_000_000, 5: signed})]
        for number, value in enumerate(("cpu", "dram", "forward", "STEP", "worker"), 1):
            definitions.append(name(number, value))
        definitions.append(space(1, 2, 0))
        for each in definitions if begin == 1000 else definitions[1:] + definitions[:1]:
            only.add(each)
        only.add(ring(1)).at(begin + 10).event(6, 1, 4242, label=5)
        only.at(begin + 20).event(4, 1, label=3)
        only.at(begin + 30).event(1, 0x10000, 100, space=1).at(begin + 40).add(bytes([0x60]))
        only.at(begin + 100).event(15, label=4)
        only.at(begin + 110).event(1, 0x20000, 50, space=1).at(begin + 140).event(2, 0x10000, 100, space=1)
        only.add(ring(0)).at(begin + 150).event(18)
        found, path = profile_of(memprof, folder, [only])
        assert found["duration_ns"] == 150, (begin, found["duration_ns"])
        assert found["segments"][0]["end_ns"] == 100, (begin, found["segments"])
        assert all(0 <= time <= 150 for time in times_in(found)), (begin, times_in(found))
        for arguments in (["show", path], ["show", "--segments", path], ["trace", path], ["trace", "--json", path]):
            shown = subprocess.run([memprof, *arguments], capture_output=True, text=True)
            assert shown.returncode == 0 and not re.search(r"[0-9] (d|h|min)\b|[0-9]{12}", shown.stdout), shown.stdout
        page = folder / "page.html"
        subprocess.run([memprof, "report", path, "-o", page, "--force"], check=True, capture_output=True)
        packed = re.search(r'id="memprof-run"[^>]*>([^<]*)<', page.read_text()).group(1)
        times = times_in(json.loads(gzip.decompress(base64.b64decode(packed))))
        assert times and all(0 <= time <= 150 for time in times), (begin, times)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_everything(sys.argv[1], pathlib.Path(folder))
        check_without_clock(sys.argv[1], pathlib.Path(folder))


if __name__ == "__main__":
    main()
