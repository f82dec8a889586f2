#!/usr/bin/env python3
"""check_imports.py MEMPROF WHAT [DATA]: imports other tools' recordings and compares them with what Python makes of them.

WHAT is `samples` (real PyTorch snapshots in the folder DATA), `made` (snapshots made here) or `hostile` (damaged ones).
Exit status 4: skipped, with the reason.
"""
import copy
import json
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile

GB = 2**30


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Importer:
    def __init__(self, memprof, folder):
        self.memprof, self.folder = memprof, pathlib.Path(folder)

    def profile(self, source, expected=0, form="auto"):
        """The profile of an import, by way of the trace; and what was said."""
        trace, out = self.folder / "in.memtrace", self.folder / "in.json"
        trace.unlink(missing_ok=True)
        self.said = run(self.memprof, "import", form, source, "-o", trace, expected=expected).stderr
        run(self.memprof, "profile", trace, "-o", out)
        return json.loads(out.read_text())

    def write(self, snapshot, name="made.pickle", protocol=4):
        path = self.folder / name
        path.write_bytes(json.dumps(snapshot).encode() if name.endswith(".json") else pickle.dumps(snapshot, protocol))
        return path


def requested(block):
    return block.get("requested_size", block["size"])


def totals(snapshot):
    """What the snapshot says itself, by device, of requested bytes: live, active and reserved ones, peaks, number of allocations."""
    devices = {}
    for number in range(len(snapshot["device_traces"])):
        segments = [segment for segment in snapshot["segments"] if segment["device"] == number]
        blocks = [block for segment in segments for block in segment["blocks"]]
        active = sum(requested(block) for block in blocks if block["state"] != "inactive")
        live = sum(requested(block) for block in blocks if block["state"] == "active_allocated")
        events = snapshot["device_traces"][number]
        # Old histories tell only when a free was completed.
        has_requests = any(event["action"] == "free_requested" for event in events)

        def peak_of(at_end, end_of_block):
            change = lambda event: {"alloc": event["size"], end_of_block: -event["size"]}.get(event["action"], 0)
            now = peak = at_end - sum(change(event) for event in events)
            for event in events:
                now += change(event)
                peak = max(peak, now)
            return peak

        peak = peak_of(live, "free_requested" if has_requests else "free_completed")
        active_peak = peak_of(active, "free_completed")
        reserve = lambda event: {"segment_alloc": event["size"], "segment_map": event["size"], "segment_free": -event["size"],
                                 "segment_unmap": -event["size"]}.get(event["action"], 0)
        held = sum(segment["total_size"] for segment in segments)
        at = top = held - sum(reserve(event) for event in events)
        for event in events:
            at += reserve(event)
            top = max(top, at)
        devices[f"cuda:{number}"] = {"live": live, "peak": peak, "active": active, "active_peak": active_peak, "reserved": held, "reserved_peak": top,
                                     "allocations": sum(event["action"] == "alloc" for event in events)}
    return devices


def compare(profile, snapshot):
    spaces = {space["name"]: space for space in profile["spaces"]}
    for name, wanted in totals(snapshot).items():
        if name not in spaces:
            assert not any(wanted.values()), name
            continue
        space = spaces[name]
        assert space["cumulative_current"] == wanted["live"], (name, space["cumulative_current"], wanted)
        assert space["cumulative_peak"] == wanted["peak"], (name, space["cumulative_peak"], wanted)
        assert space["active"]["current"] == wanted["active"], (name, space["active"]["current"], wanted)
        assert space["active"]["peak"] == wanted["active_peak"], (name, space["active"]["peak"], wanted)
        assert not any(space["active"][odd]["count"] for odd in ("unmatched_completions", "missing_completions")), space["active"]
        assert space["reserved"]["current"] == wanted["reserved"], (name, space["reserved"]["current"], wanted)
        assert space["reserved"]["peak"] == wanted["reserved_peak"], (name, wanted)
        before = next((row["allocation_count"] for row in space["segments"] if row["segment"] == "BEFORE_TRACE"), 0)
        assert space["allocation_count"] - before == wanted["allocations"], name
        assert space["anomalies"]["unmatched_frees"]["count"] == 0 and space["anomalies"]["replaced_allocations"]["count"] == 0
    rows = profile["facts"].get("torch_segments", [])
    for key in ("total_size", "allocated_size", "active_size", "requested_size"):
        assert sum(row[key] for row in rows) == sum(segment.get(key, 0) for segment in snapshot["segments"]), key


def numbers(profile):
    """What does not depend on names."""
    return {space["name"]: (space["cumulative_peak"], space["cumulative_current"], space["allocations"], space["allocation_count"],
                            space["reserved"]["peak"], space["active"]["peak"]) for space in profile["spaces"]}


def check_samples(into, data):
    files = sorted(pathlib.Path(data).glob("*.pickle"))
    if not files:
        print(f"skipped: no snapshots in {data}")
        sys.exit(4)
    for file in files:
        snapshot = pickle.loads(file.read_bytes())
        profile = into.profile(file)
        compare(profile, snapshot)
        operations = {operation["name"] for operation in profile["operations"]}
        deepest = max((event.get("frames") or [{}] for event in snapshot["device_traces"][0]), key=len)
        last = deepest[-1]
        assert any(last["name"] in name for name in operations), last
        # The same as JSON, and in an old protocol, is the same to the byte. JSON repeats every frame: 3 MB of pickle are 100.
        if file.stat().st_size < 2**20:
            assert into.profile(into.write(snapshot, "sample.json")) == profile, file
        assert into.profile(into.write(snapshot, protocol=2)) == profile, file
        # A ring buffer that was smaller has lost older events, and contradicts nothing.
        for kept in (1, 100, 1501):
            cut = {**snapshot, "device_traces": [snapshot["device_traces"][0][-kept:], *snapshot["device_traces"][1:]], "trace_alloc_overflowed": [True]}
            compare(into.profile(into.write(cut)), cut)
            assert "ring buffer was full" in into.said and into.said.count("\n") == 1, into.said
        # There and back again.
        into.profile(file)
        again = into.folder / "again.pickle"
        run(into.memprof, "export", into.folder / "in.memtrace", "--format", "torch-snapshot", "-o", again)
        compare(into.profile(again), pickle.loads(again.read_bytes()))
        assert totals(pickle.loads(again.read_bytes()))["cuda:0"]["peak"] == totals(snapshot)["cuda:0"]["peak"]


def frames(*names):
    return [{"name": name, "filename": f"/src/{name}.py", "line": index + 1} for index, name in enumerate(names)]


def made(seed, devices=2):
    """A snapshot of an allocator that has been watched from some moment on."""
    choose = random.Random(seed)
    snapshot = {"segments": [], "device_traces": [[] for _ in range(devices)], "allocator_settings": {"max_split_size": -1},
                "external_annotations": []}
    stacks = [frames("alloc", "forward", "main"), frames("alloc", "backward", "main"), frames("step", "main"), []]
    time = 1_700_000_000_000_000
    for device in range(devices):
        base = (device + 1) << 40
        blocks, awaited, next_address, trace = {}, {}, base, snapshot["device_traces"][device]
        end_of_block = lambda action, address, size: {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time,
                                                      "frames": choose.choice(stacks)}
        record = False
        for number in range(400):
            time += choose.randrange(1, 50)
            if number == 100:
                record = True  # what is live now has no event
            kind = choose.randrange(20)
            if awaited and choose.randrange(8) == 0:
                address = choose.choice(list(awaited))
                size = awaited.pop(address)
                if record:
                    trace.append(end_of_block("free_completed", address, size))
            if kind < 11 or not blocks:
                size = choose.randrange(1, 1 << 20)
                blocks[next_address] = size
                event = {"action": "alloc", "addr": next_address, "size": size, "stream": choose.choice([0, 7]), "time_us": time,
                         "frames": choose.choice(stacks), "category": choose.choice(["activation", "unknown"])}
                next_address += (size + 511) // 512 * 512
                if record:
                    trace.append(event)
            elif kind < 19:
                address = choose.choice(list(blocks))
                awaited[address] = blocks.pop(address)
                if record:
                    trace.append(end_of_block("free_requested", address, awaited[address]))
                # One in four waits for a stream.
                if choose.randrange(4):
                    size = awaited.pop(address)
                    if record:
                        trace.append(end_of_block("free_completed", address, size))
            elif record:
                trace.append({"action": "oom", "device_free": 1000, "size": 10 * GB, "stream": 0, "time_us": time, "frames": []})
        segment = {"device": device, "address": base, "total_size": 1 << 30, "allocated_size": 0, "active_size": 0,
                   "requested_size": sum(blocks.values()) + sum(awaited.values()), "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                   "is_expandable": False, "frames": [], "blocks": []}
        at = base
        for address in sorted([*blocks, *awaited]):
            if address > at:
                segment["blocks"].append({"address": at, "size": address - at, "requested_size": 0, "state": "inactive", "frames": []})
            is_live = address in blocks
            asked = blocks[address] if is_live else awaited[address]
            size = (asked + 511) // 512 * 512
            segment["blocks"].append({"address": address, "size": size, "requested_size": asked, "frames": stacks[0],
                                      "state": "active_allocated" if is_live else "active_pending_free"})
            at = address + size
        segment["blocks"].append({"address": at, "size": base + (1 << 30) - at, "requested_size": 0, "state": "inactive", "frames": []})
        snapshot["segments"].append(segment)
    return snapshot


def check_made(into):
    for seed in range(6):
        snapshot = made(seed)
        for protocol in (2, 4, 5):
            profile = into.profile(into.write(snapshot, protocol=protocol))
            compare(profile, snapshot)
        assert into.profile(into.write(snapshot, "made.json")) == profile
        failures = sum(event["action"] == "oom" for trace in snapshot["device_traces"] for event in trace)
        assert sum(len(space["out_of_memory"]) for space in profile["spaces"]) == failures
        assert "BEFORE_TRACE" in into.said
        names = {operation["path"] for operation in profile["operations"]}
        assert "main (main.py:3)/forward (forward.py:2)/alloc (alloc.py:1)" in names, names
    # One device, without a history, and old blocks that say neither their address nor what was asked for.
    snapshot = made(9, devices=1)
    snapshot["device_traces"] = [[]]
    compare(into.profile(into.write(snapshot)), snapshot)
    old = copy.deepcopy(snapshot)
    for block in old["segments"][0]["blocks"]:
        del block["address"], block["requested_size"]
    compare(into.profile(into.write(old)), old)
    # Segments that come and go, those of before among them, and annotations.
    snapshot = {"segments": [], "allocator_settings": {}, "device_traces": [[
        {"action": "segment_alloc", "addr": 1 << 30, "size": 2 << 20, "stream": 3, "time_us": 10, "frames": []},
        {"action": "alloc", "addr": 1 << 30, "size": 100, "stream": 3, "time_us": 20, "frames": [], "pool_id": (0, 1)},
        {"action": "free_completed", "addr": 1 << 20, "size": 50, "stream": 0, "time_us": 30, "frames": []},
        {"action": "segment_free", "addr": 1 << 20, "size": 1 << 20, "stream": 0, "time_us": 40, "frames": []},
        {"action": "free_completed", "addr": 1 << 30, "size": 100, "stream": 3, "time_us": 60, "frames": []},
        {"action": "segment_free", "addr": 1 << 30, "size": 2 << 20, "stream": 3, "time_us": 70, "frames": []}]],
        "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 15},
                                 {"stage": "END", "name": "step", "device": 0, "time_us": 55}]}
    profile = into.profile(into.write(snapshot))
    compare(profile, snapshot)
    space = profile["spaces"][-1]
    assert [segment["name"] for segment in profile["segments"]] == ["BEFORE_TRACE", "TRACE", "step", "TRACE"]
    assert space["cumulative_peak"] == 150 and space["reserved"]["peak"] == 3 << 20, space
    assert {(row["stream"], row["pool"]) for row in space["streams"]} >= {("3", "0:1"), ("default", "")}, space["streams"]
    # Pinned host memory: one list of events, or one for each allocator.
    def at(action, address, size, time_us):
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "frames": []}

    host = [at("segment_alloc", 1 << 30, 1 << 20, 1), at("alloc", 1 << 30, 5000, 2), at("alloc", (1 << 30) + 8192, 700, 3),
            at("free_requested", (1 << 30) + 8192, 700, 4), at("free_completed", (1 << 30) + 8192, 700, 5)]
    host_segment = {"address": 1 << 30, "total_size": 1 << 20, "blocks": [{"size": 8192, "requested_size": 5000, "state": "active_allocated", "frames": []}]}
    for history in (host, [host], [host[:2], host[2:]]):
        snapshot = {"segments": [], "device_traces": [[at("alloc", 1 << 20, 100, 1)]], "host_segments": [host_segment], "host_traces": history}
        for name, protocol in (("made.pickle", 2), ("made.pickle", 4), ("made.json", 4)):
            profile = into.profile(into.write(snapshot, name, protocol))
            assert numbers(profile)["pinned"] == (5700, 5000, 5700, 2, 1 << 20, 5700), numbers(profile)
            assert profile["exact"]
    # What a newer PyTorch adds is missing, and said to be.
    for name in ("made.pickle", "made.json"):
        profile = into.profile(into.write({"segments": [], "device_traces": [[at("alloc", 1 << 20, 100, 1)]], "shared_traces": [[1]]}, name))
        assert not profile["exact"] and "'shared_traces'" in into.said, into.said
    # RMM's log is known by its head.
    log = into.folder / "log.csv"
    log.write_text("Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x10,64,0x0\n1,00:00:00.000002,free,0x10,64,0x0\n")
    profile = into.profile(log)
    assert numbers(profile)["gpu"][:3] == (64, 0, 64), numbers(profile)
    log.write_text(log.read_text() + "1,00:00:0")
    cut = into.profile(log, expected=2)
    assert numbers(cut)["gpu"][:3] == (64, 0, 64) and "line 4 is cut off" in into.said, into.said
    for option in ("--per-core", "--module=x", "--classes=x"):
        refused = subprocess.run([into.memprof, "import", "auto", log, "-o", into.folder / "refused.memtrace", option],
                                 capture_output=True, text=True)
        assert refused.returncode == 2 and option.split("=")[0] + " applies to" in refused.stderr, refused
    assert not cut["exact"] and cut["anomalies"]["missing_events"] == 1, cut["anomalies"]


def check_hostile(into):
    choose = random.Random(5)
    snapshot = made(1)
    out = into.folder / "out.memtrace"

    def tried(content, name="bad.pickle"):
        """Ends with 0 or 2 and one clear line, whatever the file."""
        path = into.folder / name
        path.write_bytes(content)
        done = subprocess.run([into.memprof, "import", "torch-snapshot", str(path), "-o", str(out)], capture_output=True, text=True,
                              errors="replace")
        assert done.returncode in (0, 2), (done.returncode, done.stderr, len(content))
        assert done.returncode == 0 or "bad" in done.stderr, done.stderr
        return done

    whole = pickle.dumps(snapshot, 4)
    for content, said in ((b"", "cannot read"), (b"\x80\x04.", "no value"), (b"\x80\x09.", "cannot"), (b"\x80\x04N.", "a dictionary"),
                          (b"\x80\x04}.", "neither"), (b"\x80\x04cos\nsystem\n(S'false'\ntR.", "only plain data"),
                          (b"\x80\x04X\xff\xff\xff\x7fabc", "it ends within the value at byte 2"), (b"\x80\x04]\x94h\x00a.", "a dictionary"),
                          (b"\x80\x04" + b"(" * 100000, "ends at byte"), (b"{\"segments\": [", "byte"),
                          (pickle.dumps({"segments": [{"device": 10**9, "blocks": []}], "device_traces": []}, 4), "below 254"),
                          (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -5}]]}, 4), "'size'"),
                          (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 2**70}]]}, 4), "'size'"),
                          (json.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": "x"}]]}).encode(), "'size'"),
                          (b"[" * 100000, "bad"), (b"{\"segments\":" + b"[" * 100000, "expected an object"), (b"{\"x\":" + b"[" * 100000, "nested too deep")):
        done = tried(content)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, (content[:60], done)
    # A pickle that would run a program is not run.
    class Evil:
        def __reduce__(self):
            return (pathlib.Path.touch, (into.folder / "evil",))
    assert tried(pickle.dumps({"segments": [Evil()]}, 4)).returncode == 2 and not (into.folder / "evil").exists()
    # What was intact of a file that is cut off is there.
    for cut in (len(whole) // 2, len(whole) * 9 // 10, len(whole) - 1):
        done = tried(whole[:cut])
        assert done.returncode == 2 and "it ends" in done.stderr and "everything before that is in" in done.stderr, done.stderr
        run(into.memprof, "show", out)
    text = json.dumps(snapshot).encode()
    assert "everything before that is in" in tried(text[:len(text) // 2]).stderr
    for form in (whole, pickle.dumps(snapshot, 2), text):
        for _ in range(120):
            bad = bytearray(form)
            for _ in range(choose.randrange(1, 6)):
                bad[choose.randrange(len(bad))] = choose.randrange(256)
            done = tried(bytes(bad))
            if done.returncode == 0:
                run(into.memprof, "show", out)


def main():
    memprof, what = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](Importer(memprof, folder), *sys.argv[3:])


main()
