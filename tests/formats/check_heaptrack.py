#!/usr/bin/env python3
"""check_heaptrack.py MEMPROF WHAT [PROGRAM]: imports recordings of heaptrack and compares them with what is known of them.

WHAT is `recorded` (heaptrack records PROGRAM, and heaptrack_print judges), `written_stacks` (memprof records it, writes what it recorded for
heaptrack_print, and that judges), `made` (recordings made here, packed and not) or
`hostile` (damaged ones). Exit status 4: skipped, with the reason.
"""
import collections
import gzip
import json
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Importer:
    def __init__(self, memprof, folder):
        self.memprof, self.folder = memprof, pathlib.Path(folder)
        self.trace = self.folder / "out.memtrace"

    def profile(self, source, expected=0, form="auto", options=()):
        """The profile of an import, by way of the trace; and what was said."""
        self.trace.unlink(missing_ok=True)
        self.said = run(self.memprof, "import", form, source, "-o", self.trace, *options, expected=expected).stderr
        out = self.folder / "out.json"
        run(self.memprof, "profile", self.trace, "-o", out)
        return json.loads(out.read_text())

    def tried(self, content, form="heaptrack"):
        """Ends with 0 or 2 and one clear line, whatever the file; 3: this memprof cannot unpack it."""
        path = self.folder / "bad"
        path.write_bytes(content)
        done = subprocess.run([self.memprof, "import", form, str(path), "-o", str(self.trace)], capture_output=True, text=True,
                              errors="replace")
        assert done.returncode in (0, 2), (done.returncode, done.stderr, content[:80])
        assert done.returncode == 0 or ("bad'" in done.stderr and done.stderr.count("\n") == 1), done.stderr
        return done

    def can_unpack(self, content):
        return "was built without" not in self.tried(content).stderr


def made(seed, version=3, events=3000):
    """A recording, and what must come of it."""
    choose = random.Random(seed)
    lines = [f"v 10400 {version}", "X ./app 'an argument'", "I 1000 100000"]
    texts = ["/bin/app", "main", "/src/app.cpp"] + [f"f{number}(int)" for number in range(6)]
    lines += [f"s {len(text):x} {text}" if version >= 3 else f"s {text}" for text in texts]
    lines += ["i a 1 2 3 1"] + [f"i {number + 16:x} 1 {number + 4:x} 3 {number + 2:x}" for number in range(6)]
    stacks = ["main (app.cpp:1)"]
    lines.append("t 1 0")
    for number in range(2, 30):
        parent, frame = choose.randrange(1, number), choose.randrange(6)
        stacks.append(f"{stacks[parent - 1]};f{frame} (app.cpp:{frame + 2})")
        lines.append(f"t {frame + 2:x} {parent:x}")
    kinds, live, time = [], [], 0
    now = peak = total = count = 0
    own, at_peak = {}, {}  # bytes by stack
    for _ in range(events):
        dice = choose.random()
        if dice < 0.05 or not kinds:
            kinds.append((choose.choice([0, 1, 24, 1000, 2**20]), choose.randrange(1, 30)))
            lines.append(f"a {kinds[-1][0]:x} {kinds[-1][1]:x}")
        elif dice < 0.1:
            time += choose.randrange(12)
            lines += [f"c {time:x}", f"R {choose.randrange(2000):x}"]
        elif dice < 0.6 or not live:
            kind = choose.randrange(len(kinds))
            live.append(kind)
            lines.append(f"+ {kind:x}")
            size, stack = kinds[kind]
            own[stack] = own.get(stack, 0) + size
            now, total, count = now + size, total + size, count + 1
            if now > peak:
                peak, at_peak = now, dict(own)
        else:
            kind = live.pop(choose.randrange(len(live)))
            lines.append(f"- {kind:x}")
            size, stack = kinds[kind]
            own[stack] -= size
            now -= size
    lines += ["", f"# strings: {len(texts)}", "# ips: 7"]
    by_name = {}
    for stack, size in at_peak.items():
        if size:
            by_name[stacks[stack - 1]] = by_name.get(stacks[stack - 1], 0) + size
    known = {"cumulative_peak": peak, "cumulative_current": now, "allocations": total, "allocation_count": count}
    return "\n".join(lines).encode() + b"\n", known, by_name, time


def collapsed(into, of, trace=None):
    """Bytes by stack of the last import, or of a trace."""
    out = into.folder / "stacks.txt"
    run(into.memprof, "export", trace or into.trace, "--format", "collapsed", "--of", of, "-o", out)
    sums = collections.Counter()  # the same calls may be several stacks: at other addresses
    for line in out.read_text().splitlines():
        stack, size = line.rsplit(" ", 1)
        sums[stack.split(";", 1)[1]] += int(size)
    return dict(sums)


def callers(into):
    """What `show` says of the last import: bytes by who asked, without those beyond ten."""
    rows = json.loads(run(into.memprof, "show", into.trace, "--json").stdout)["callers"]["rows"]
    return {row["caller"]: row["bytes"] for row in rows if row["bytes"]}


def judged_by_heaptrack(into, recording):
    """By stack, for each kind of cost, what heaptrack_print has for flame graphs; in its text sums are rounded."""
    costs = {}
    for cost in ("peak", "leaked", "allocations"):
        out = into.folder / "judged.txt"
        run("heaptrack_print", "-f", recording, "--disable-builtin-suppressions", "--disable-embedded-suppressions", "-a0", "-p0", "-T0",
            "--flamegraph-cost-type", cost, "-F", out)
        costs[cost] = collections.Counter()
        for line in out.read_text().splitlines():
            stack, size = line.rsplit(" ", 1)
            costs[cost][stack] += int(size)
    return costs


def need_heaptrack():
    if not shutil.which("heaptrack") or not shutil.which("heaptrack_print"):
        print("skipped: heaptrack is not installed")
        sys.exit(4)


def numbers(profile):
    return {key: profile["spaces"][0][key] for key in ("cumulative_peak", "cumulative_current", "allocations", "allocation_count")}


def check_made(into):
    for seed in range(6):
        content, known, at_peak, time = made(seed, version=1 + seed % 3)
        source = into.folder / "made"
        source.write_bytes(content)
        profile = into.profile(source)
        assert numbers(profile) == known, (numbers(profile), known)
        assert into.said == "" and profile["duration_ns"] == time * 10**6
        assert profile["process"]["command_line"] == "./app 'an argument'"
        assert collapsed(into, "peak") == at_peak, (collapsed(into, "peak"), at_peak)
        # Its stacks are those of the trace, and no operations: nothing is there twice.
        assert profile["operations"] == [] and profile["facts"]["stacks"] == [
            {"from_bytes": 0, "sample_bytes": 0, "missing_blocks": 0, "unwinder": "heaptrack"}], profile["facts"]["stacks"]
        innermost = collections.Counter()
        for stack, size in at_peak.items():
            innermost[stack.rsplit(";", 1)[-1]] += size
        assert callers(into) == dict(innermost), (callers(into), innermost)
        # As operations they have the same bytes, and then there are no stacks.
        operations = into.profile(source, options=("--frames", "own"))
        assert numbers(operations) == known and operations["operations"] and "stacks" not in operations["facts"]
        assert collapsed(into, "peak") == at_peak, (collapsed(into, "peak"), at_peak)
        assert into.profile(source) == profile
        packed = [gzip.compress(content), gzip.compress(content[:1000]) + gzip.compress(content[1000:])]
        if shutil.which("zstd"):
            zstd = lambda part: subprocess.run(["zstd", "-qc"], input=part, capture_output=True, check=True).stdout
            packed += [zstd(content), zstd(content[:1000]) + zstd(content[1000:])]
        for number, form in enumerate(packed):
            if into.can_unpack(form):
                source.write_bytes(form)
                assert into.profile(source) == profile, number
    # A program with more functions than a capture keeps apart.
    texts = ["/bin/app", "std::vector<int>::vector(unsigned long)"] + [f"f{number}" for number in range(6000)]
    lines = ["v 10400 1"] + [f"s {text}" for text in texts] + ["i 1 1 2"]
    for number in range(6000):
        lines += [f"i 2 1 {number + 3:x}", f"t {number + 2:x} 0", f"t 1 {2 * number + 1:x}", f"a 8 {2 * number + 2:x}", f"+ {number:x}"]
    source.write_text("\n".join(lines) + "\n# ips: 0\n")
    names = lambda *options: {operation["name"] for operation in into.profile(source, options=options)["operations"]}
    assert names("--frames", "own") == {f"f{number} (app)" for number in range(6000)}
    assert names("--frames", "all") == names("--frames", "own") | {"std::vector<int>::vector (app)"}
    few = into.profile(source, options=("--frames", "own", "--operations", "10"))
    assert len(few["operations"]) == 11 and few["operations"][-1]["path"] == "\\other", few["operations"][-1]
    assert few["anomalies"]["other_operations"] == 5990 and few["spaces"][0]["cumulative_peak"] == 48000, few["anomalies"]
    into.profile(source)
    shown = json.loads(run(into.memprof, "show", into.trace, "--json").stdout)["callers"]
    assert shown["others"] == {"callers": 5990, "bytes": 47920, "blocks": 5990, "standard_error_bytes": None}, shown["others"]
    assert shown["rows"][0] == {"caller": "std::vector<int>::vector in f0", "bytes": 8, "blocks": 1, "standard_error_bytes": None}, shown
    # A profile has no stacks, which is said.
    said = run(into.memprof, "import", "heaptrack", source, "-o", into.folder / "out.json").stderr
    assert "a profile has no stacks: --frames own" in said and said.count("\n") == 1, said
    said = run(into.memprof, "import", "heaptrack", source, "-o", into.folder / "out.json", "--frames", "own").stderr
    assert said == "" and len(json.loads((into.folder / "out.json").read_text())["operations"]) == 6000, said
    for options, complaint in ((("--operations", "0"), "'0' is not a whole number from 1"), (("--frames", "some"), "own, all")):
        said = run(into.memprof, "import", "heaptrack", source, "-o", into.trace, *options, expected=2).stderr
        assert complaint in said, said
    source.write_text("Thread,Time,Action,Pointer,Size,Stream\n")
    said = run(into.memprof, "import", "rmm", source, "-o", into.trace, "--frames", "all", expected=2).stderr
    assert "--frames applies to heaptrack and torch-snapshot" in said, said
    # What is attached to does not begin at the program's begin.
    source.write_bytes(content.replace(b"\nI 1000", b"\nA\nI 1000"))
    into.profile(source)
    assert "before is not counted" in into.said, into.said
    # Packed files of other formats are named as what they are.
    source.write_bytes(gzip.compress(b"Thread,Time,Action,Pointer,Size,Stream\n"))
    said = run(into.memprof, "import", "auto", source, "-o", into.trace, expected=2).stderr
    assert "unpack" in said, said


def check_hostile(into):
    choose = random.Random(3)
    whole, known, _, _ = made(1, events=600)
    # Memory is not for the file. A child begins with what this process has, so that must stay small, too.
    large = into.folder / "large"
    for opened in (lambda: open(large, "wb"), lambda: gzip.open(large, "wb", 1)):
        with opened() as out:
            out.write(whole[:whole.rindex(b"# ips")])
            for _ in range(1024):
                out.write((b"#" + b"x" * 62 + b"\n") * 1024)
            out.write(b"# ips: 0\n")
        subprocess.run([into.memprof, "import", "heaptrack", large, "-o", into.trace], capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert used < 48 << 10, f"a file of 64 MiB takes {used >> 10} MiB"
    # Nor is it for the trace: what is older goes to a temporary file. Here 40 operations begin and end with each allocation.
    deep = "".join(f"i {number:x} 1 2 3 {number:x}\nt {number:x} {number - 1:x}\n" for number in range(1, 41))
    large.write_bytes(b"v 10400 3\ns 1 a\ns 1 f\ns 1 f\n" + deep.encode() + b"a 8 28\n" + b"+ 0\n- 0\n" * 130_000 + b"# ips: 0\n")
    profile = into.profile(large, options=("--frames", "own"))
    assert numbers(profile) == {"cumulative_peak": 8, "cumulative_current": 0, "allocations": 1_040_000, "allocation_count": 130_000}
    assert into.trace.stat().st_size > 80 << 20, "else it would fit into memory"
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert used < 100 << 10, f"a trace of {into.trace.stat().st_size >> 20} MiB takes {used >> 10} MiB"
    for content, said in ((b"", "it is empty"), (b"\n", "not a recording"), (b"v 10400 9\n", "expected 1, 2 or 3"), (b"v 10400 3\nx 1 a\n", "raw"),
                          (b"{}", "not a recording"), (b"v 10400 3\n" + b"+" * 2**25, "line 2"), (b"\x00" * 100, "not a recording"),
                          (whole.replace(b"\n", b"\r\n"), "line 1: ends with CR LF"), (b"\xef\xbb\xbf" + whole, "byte order mark"),
                          (whole.decode().encode("utf-16"), "it is UTF-16"), (whole.decode().encode("utf-32"), "it is UTF-32"),
                          (whole + whole, "a second recording"), (whole.replace(b"\na ", b"\na fffffffffff", 1), "size exceeds 2^47 bytes"),
                          (b"v 10400 3\ns 5 abc\n", "line 2"), (b"v 10400 3\n\x1b[2J\n", "line 2")):
        done = into.tried(content)
        assert done.returncode == 2 and said in done.stderr, (content[:60], done.stderr)
    # What was intact of a file that is cut off is there, and its numbers are those of that part.
    for _ in range(12):
        cut = whole[:choose.randrange(len(whole) // 2, len(whole) - 40)]
        intact = cut[:cut.rfind(b"\n") + 1]
        done = into.tried(cut)
        assert done.returncode == 2 and "everything before that is in" in done.stderr, done.stderr
        into.tried(intact + b"# ips: 0\n")
        expected = run(into.memprof, "show", into.trace).stdout.partition("\nAccuracy")
        into.tried(cut)
        shown = run(into.memprof, "show", into.trace).stdout.partition("\nAccuracy")
        assert shown[0] == expected[0] and "not exact" in shown[2] and "not exact" not in expected[2], (shown, expected)
    # A packed file that is cut off or damaged, too.
    packed = gzip.compress(whole)
    if into.can_unpack(packed):
        done = into.tried(packed[:len(packed) // 2])
        assert done.returncode == 2 and f"packed data is cut off at byte {len(packed) // 2}; everything before that is in" in done.stderr, done.stderr
        done = into.tried(packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:])  # its checksum
        assert done.returncode == 2 and "packed data is damaged at byte" in done.stderr and "everything before that is in" in done.stderr, done.stderr
        assert "in the unpacked data; the packed file may be damaged" in into.tried(gzip.compress(whole + b"?\n" + whole)).stderr
        assert "UTF-16" in into.tried(gzip.compress(whole.decode().encode("utf-16"))).stderr
    forms = [whole, packed]
    if shutil.which("zstd"):
        zstd = lambda content: subprocess.run(["zstd", "-qc"], input=content, capture_output=True, check=True).stdout
        if into.can_unpack(zstd(whole)):
            forms.append(zstd(whole))
            for cut in (5, 20, len(forms[2]) // 2, len(forms[2]) - 1):
                for form in ("heaptrack", "auto"):
                    said = into.tried(forms[2][:cut], form).stderr
                    assert f"packed data is cut off at byte {cut}" in said, (cut, form, said)
            # A few kilobytes do not take gigabytes.
            bomb = zstd(whole[:whole.rindex(b"# ips")] + b"+ 0\n" * (12 << 20))
            assert len(bomb) < 64 << 10
            assert "unpacks to more than 1000 times its size" in into.tried(bomb).stderr
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            assert used < 400 << 10, f"a bomb of {len(bomb)} bytes takes {used >> 10} MiB"
    for form in forms:
        for _ in range(80):
            bad = bytearray(form)
            for _ in range(choose.randrange(1, 6)):
                bad[choose.randrange(len(bad))] = choose.randrange(256)
            if into.tried(bytes(bad)).returncode == 0:
                run(into.memprof, "show", into.trace)


def check_recorded(into, program):
    need_heaptrack()
    run("heaptrack", "-o", into.folder / "recording", program)
    recording = next(into.folder.glob("recording.*"))
    if not into.can_unpack(recording.read_bytes()):
        print(f"skipped: this memprof was built without what unpacks '{recording.name}'")
        sys.exit(4)
    profile = into.profile(recording)

    judged = judged_by_heaptrack(into, recording)
    known = numbers(profile)
    assert (known["cumulative_peak"], known["cumulative_current"], known["allocation_count"]) == (
        judged["peak"].total(), judged["leaked"].total(), judged["allocations"].total()), (known, judged)
    # What the program does itself: 50 blocks of which 40 stay, a block that grows to the peak, and 1,000 that come and go.
    ends_in = lambda stacks, function: sum(size for stack, size in stacks.items() if f"{function} (recorded_program.cpp:" in stack)
    in_main = lambda stacks: sum(size for stack, size in stacks.items() if ";main (" in ";" + stack)
    for options in ((), ("--frames", "own")):
        profile = into.profile(recording, options=options)
        assert numbers(profile) == known
        for of, cost in (("peak", "peak"), ("end", "leaked")):
            assert in_main(collapsed(into, of)) == in_main(judged[cost]), (of, options)
        at_peak, at_end = collapsed(into, "peak"), collapsed(into, "end")
        assert (ends_in(at_peak, "keep"), ends_in(at_end, "keep")) == (50_000, 40_000)
        assert (ends_in(at_peak, "grow"), ends_in(at_end, "grow")) == (2**20, 0)
        assert ends_in(collapsed(into, "all"), "churn") == 500_000 and ends_in(at_peak, "churn") == 0
        assert not any(";operator new" in ";" + stack for stack in at_peak)
    names = {operation["name"] for operation in profile["operations"]}
    assert names and not any(name.startswith(("operator new", "_start")) for name in names), names
    into.profile(recording)
    asked = callers(into)
    assert [size for caller, size in asked.items() if caller.startswith("grow (recorded_program.cpp:")] == [2**20], asked
    assert [size for caller, size in asked.items() if caller.startswith("keep (recorded_program.cpp:")] == [50_000], asked
    assert re.search(r"^ *1\.00 MiB .* grow \(recorded_program", run(into.memprof, "show", into.trace).stdout, re.MULTILINE)
    page = into.folder / "page.html"
    run(into.memprof, "report", into.trace, "-o", page)
    # As heaptrack has it, written and judged by heaptrack, and read back.
    check_written(into, into.trace, known)
    assert profile["duration_ns"] >= 30_000_000
    assert not any(odd["count"] for odd in profile["spaces"][0]["anomalies"].values())
    fact = profile["facts"]["heaptrack_recording"][0]
    assert fact["heaptrack_version"] and fact["file_version"] >= 1 and fact["system_memory_bytes"] > 2**20
    assert profile["process"]["command_line"].startswith(str(program))
    # What was not interpreted is refused, with what to do.
    run("heaptrack", "--raw", "-o", into.folder / "other", program)
    assert "raw" in into.tried(next(into.folder.glob("other.raw.*")).read_bytes()).stderr


def check_written(into, trace, known):
    """A trace written for heaptrack_print has its peak, number of blocks and bytes at the end, there and when it is read back."""
    written = into.folder / "written.heaptrack"
    run(into.memprof, "convert", trace, "-o", written)
    judged = judged_by_heaptrack(into, written)
    totals = {cost: by_stack.total() for cost, by_stack in judged.items()}
    assert totals == {"peak": known["cumulative_peak"], "leaked": known["cumulative_current"], "allocations": known["allocation_count"]}, (
        totals, known)
    before = {of: collapsed(into, of, trace) for of in ("peak", "end", "all")}
    again = into.folder / "again.memtrace"
    run(into.memprof, "import", "heaptrack", written, "-o", again)
    run(into.memprof, "profile", again, "-o", into.folder / "again.json")
    assert numbers(json.loads((into.folder / "again.json").read_text())) == known
    assert {of: collapsed(into, of, again) for of in ("peak", "end", "all")} == before
    return judged


def check_written_stacks(into, program):
    """What `memprof run --stacks=all` records of a program is what heaptrack_print shows of it."""
    need_heaptrack()
    trace, profile = into.folder / "run.memtrace", into.folder / "run.json"
    run(into.memprof, "run", "--stacks=all", "--trace", trace, "--profile", profile, "--", program)
    judged = check_written(into, trace, numbers(json.loads(profile.read_text())))
    of = lambda cost, function: sum(size for stack, size in judged[cost].items() if f";{function} (" in stack or f";{function};" in stack)
    assert (of("peak", "keep"), of("leaked", "keep"), of("allocations", "keep")) == (50_000, 40_000, 50), judged["peak"]
    assert (of("peak", "grow"), of("leaked", "grow")) == (2**20, 0), judged["peak"]
    text = run("heaptrack_print", "-f", into.folder / "written.heaptrack").stdout
    assert "recorded_program.cpp:" in text and str(program) in text, text


def main():
    memprof, what = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](Importer(memprof, folder), *sys.argv[3:])


if __name__ == "__main__":
    main()
