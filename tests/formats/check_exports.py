#!/usr/bin/env python3
"""check_exports.py MEMPROF SAMPLE_TRACE FORMAT: exports sample traces and reads them as the format's consumers do.

Every sum is compared with the profile's. Decoders here are independent of memprof's writers; where the real consumer is there it
runs as well. Exit status 4: a consumer was absent, and the output says which.
"""
import collections
import csv
import gzip
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile

absent = set()


def skip(reason):
    """Notes that a consumer is not there; what does not need it has been checked."""
    absent.add(reason)


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def finish():
    for reason in sorted(absent):
        print("skipped: " + reason)
    return 4 if absent else 0


class Sample:
    """A trace, its profile, and exports of either."""

    def __init__(self, memprof, writer, folder, events=3000, seed=1):
        self.memprof, self.writer, self.folder = memprof, writer, pathlib.Path(folder)
        self.trace = self.folder / f"sample{seed}.memtrace"
        self.json = self.folder / f"sample{seed}.json"
        run(writer, self.trace, events, seed)
        run(memprof, "profile", self.trace, "-o", self.json)
        self.profile = json.loads(self.json.read_text())
        self.spaces = {space["name"]: space for space in self.profile["spaces"]}

    def export(self, form, *more, source=None):
        out = self.folder / f"out.{form}"
        done = run(self.memprof, "export", source or self.trace, "--format", form, "-o", out, *more)
        self.remarks = done.stderr
        return out


def columns(space):
    return {"peak": space["cumulative_peak"], "end": space["cumulative_current"], "all": space["allocations"]}


# --- Protocol Buffers, decoded by the rules of https://protobuf.dev/programming-guides/encoding ---


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        else:
            assert kind == 2, kind
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        yield key >> 3, value


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


# --- formats ---


def check_collapsed(sample):
    for source in (sample.trace, sample.json):
        for column in ("peak", "end", "all"):
            text = sample.export("collapsed", "--of", column, source=source).read_bytes()
            sums = collections.Counter()
            for line in text.decode(errors="surrogateescape").splitlines():
                stack, _, number = line.rpartition(" ")
                assert int(number) > 0, line
                sums[stack.split(";")[0]] += int(number)
            wanted = {name: columns(space)[column] for name, space in sample.spaces.items()}
            assert dict(sums) == {name: value for name, value in wanted.items() if value}, (column, sums, wanted)
    stacks = lambda path: sorted(path.read_bytes().splitlines())
    assert stacks(sample.export("collapsed")) == stacks(sample.export("collapsed", source=sample.json))
    script = shutil.which("flamegraph.pl") or "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
    if not os.path.exists(script):
        skip("flamegraph.pl, of Debian's libdevel-nytprof-perl; the sums were checked")
        return
    out = sample.export("collapsed")
    picture = subprocess.run(["perl", script, "--countname=bytes", str(out)], capture_output=True)
    assert picture.returncode == 0 and b"</svg>" in picture.stdout, picture.stderr
    total = sum(space["cumulative_peak"] for space in sample.spaces.values())
    assert f"all ({total:,} bytes, 100%)".encode() in picture.stdout, "the picture's total is not the sum of the peaks"
    assert b"Ignored" not in picture.stderr, picture.stderr


def check_speedscope(sample):
    for source in (sample.trace, sample.json):
        document = json.loads(sample.export("speedscope", source=source).read_text())
        frames = document["shared"]["frames"]
        assert set(document) == {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
        assert len(document["profiles"]) == 3 * len(sample.spaces)
        for profile in document["profiles"]:
            name, column = next((name, profile["name"][len(name) + 1:]) for name in sample.spaces
                                if profile["name"].startswith(name + " "))
            key = {"live at peak": "peak", "live at end": "end", "allocated": "all"}[column]
            assert profile["type"] == "sampled" and profile["unit"] == "bytes" and profile["startValue"] == 0
            assert len(profile["samples"]) == len(profile["weights"])
            assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
            assert sum(profile["weights"]) == profile["endValue"] == columns(sample.spaces[name])[key], profile["name"]
    schema = os.environ.get("MEMPROF_SPEEDSCOPE_SCHEMA", "")
    try:
        import jsonschema
    except ImportError:
        return
    if os.path.exists(schema):
        jsonschema.validate(document, json.loads(pathlib.Path(schema).read_text()))


def check_pprof(sample):
    at_peak = {}
    for name, space in sample.spaces.items():
        segment = sample.profile["segments"][space["peak_segment"]]
        at_peak[name] = {"segment": segment["name"], "step": str(segment["step"] + 1)}
    for source in (sample.trace, sample.json):
        written = sample.export("pprof", "--label", "commit=3f2c1e", "--label", "job=a=b", source=source).read_bytes()
        whole = message(gzip.decompress(written))
        assert len(written) * 2 < len(gzip.decompress(written)), "it is not compressed"
        run(sample.memprof, "export", source, "--format", "pprof", "-o", sample.folder / "out.pprof")  # its own kind is replaced
        strings = [text.decode() for text in whole[6]]
        assert strings[0] == "" and len(set(strings)) == len(strings)
        types = [strings[message(entry)[1][0]] for entry in whole[1]]
        locations = {message(entry)[1][0]: message(entry) for entry in whole[4]}
        functions = {message(entry)[1][0]: strings[message(entry)[2][0]] for entry in whole[5]}
        mappings = {message(entry)[1][0] for entry in whole[3]}
        assert 0 not in locations and max(locations) < 2**31 and strings[whole[14][0]] in types
        sums, categories = collections.Counter(), collections.Counter()
        for entry in whole[2]:
            row = message(entry)
            values, stack = packed(row[2][0]), packed(row[1][0])
            assert len(values) == len(types) and stack
            for place in stack:
                assert locations[place][2][0] in mappings and message(locations[place][4][0])[1][0] in functions
            labels = {strings[message(label)[1][0]]: strings[message(label)[2][0]] for label in row[3]}
            assert functions[stack[-1]] == labels["space"]
            wanted = {"rank": "3", **at_peak[labels["space"]], "commit": "3f2c1e", "job": "a=b"}
            assert {key: labels[key] for key in wanted} == wanted, (labels, wanted)
            for kind, value in zip(types, values):
                sums[labels["space"], kind] += value
            if "category" in labels:
                categories[labels["space"], labels["category"]] += values[types.index("peak_space")]
        for name, space in sample.spaces.items():
            wanted = {"alloc_objects": space["allocation_count"], "alloc_space": space["allocations"],
                      "inuse_objects": space["allocation_count"] - space["deallocation_count"],
                      "inuse_space": space["cumulative_current"], "peak_objects": space["live_at_peak"]["blocks"],
                      "peak_space": space["cumulative_peak"]}
            for kind in types:
                assert sums[name, kind] == wanted[kind], (name, kind, sums[name, kind], wanted[kind])
            if categories:
                for row in space["live_at_peak"]["by_category"]:
                    assert categories[name, row["owner"]] == row["bytes"], (name, row)
    node, modules = shutil.which("node"), os.environ.get("MEMPROF_NODE_MODULES", "")
    if not node or not os.path.isdir(os.path.join(modules, "pprof-format")):
        skip("pprof-format of npm (MEMPROF_NODE_MODULES); the sums were checked")
        return
    program = ("const {Profile}=require(process.argv[1]+'/pprof-format');"
               "const p=Profile.decode(require('zlib').gunzipSync(require('fs').readFileSync(process.argv[2])));"
               "const n=p.stringTable.strings;"
               "console.log(JSON.stringify({types:p.sampleType.map(t=>n[Number(t.type)]),"
               "sums:p.sampleType.map((_,i)=>p.sample.reduce((a,s)=>a+Number(s.value[i]),0))}))")
    read = json.loads(run(node, "-e", program, modules, sample.export("pprof")).stdout)
    assert dict(zip(read["types"], read["sums"]))["peak_space"] == sum(s["cumulative_peak"] for s in sample.spaces.values())


def check_dhat(sample):
    viewer = next((path for path in ("/usr/libexec/valgrind/dh_view.js", "/usr/lib/valgrind/dh_view.js")
                   if os.path.exists(path)), None)
    for name, space in sample.spaces.items():
        out = sample.export("dhat", "--space", name)
        document = json.loads(out.read_text())
        points = document["pps"]
        assert document["dhatFileVersion"] == 2 and document["ftbl"][0] == "[root]"
        for field, wanted in (("tb", space["allocations"]), ("tbk", space["allocation_count"]), ("gb", space["cumulative_peak"]),
                              ("gbk", space["live_at_peak"]["blocks"]), ("eb", space["cumulative_current"]),
                              ("ebk", space["allocation_count"] - space["deallocation_count"])):
            assert sum(point[field] for point in points) == wanted, (name, field)
        assert document["tg"] == space["peak_time_ns"] // 1000
        for point in points:
            # What DHAT itself asserts of its files.
            assert 0 <= point["gb"] <= point["mb"] <= point["tb"] and 0 <= point["eb"] <= point["mb"], point
            assert 0 <= point["mbk"] <= point["tbk"] and point["tl"] >= 0 and point["fs"], point
            assert all(0 < frame < len(document["ftbl"]) for frame in point["fs"])
    done = subprocess.run([sample.memprof, "export", sample.json, "--format", "dhat", "-o", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "needs a trace" in done.stderr, done
    node = shutil.which("node")
    if not node or not viewer:
        skip("node and valgrind's dh_view.js; the file's rules were checked")
        return
    text = run(node, pathlib.Path(__file__).parent / "dh_view.cjs", viewer, out).stdout
    assert f"{space['cumulative_peak']:,}" in text, text[:2000]
    assert f"{space['allocations']:,}" in text, text[:2000]


def check_massif(sample):
    if not shutil.which("ms_print"):
        skip("ms_print, of valgrind")
        return
    for name, space in sample.spaces.items():
        for source in (sample.trace, sample.json):
            out = sample.export("massif", "--space", name, source=source)
            tree = out.read_text(encoding="utf-8")
            names = {operation["path"]: operation["name"] for operation in sample.profile["operations"]}
            for row in space["live_at_peak"]["by_operation"]:
                shown = names.get(row["owner"], "(no operation)") or "(unnamed)"
                assert " " + "".join(" " if ord(each) < 32 else each for each in shown) in tree, (shown, tree)
            text = run("ms_print", "--threshold=0", out).stdout
            rows = [line.split() for line in text.splitlines() if line[:3].strip().isdigit() and len(line.split()) == 6]
            sizes = [int(row[3].replace(",", "")) for row in rows]
            assert max(sizes) == space["cumulative_peak"] and sizes[-1] == space["cumulative_current"], sizes
            assert " (peak)" in text and f"100.00% ({space['cumulative_peak']:,}B)" in text, text


def check_chrome(sample):
    for source in (sample.trace, sample.json):
        document = json.loads(sample.export("chrome", source=source).read_text())
        assert document["displayTimeUnit"] == "ms"
        slices = collections.defaultdict(list)
        last = {}
        live, peak = collections.Counter(), collections.Counter()
        memory = collections.Counter()
        for event in document["traceEvents"]:
            assert event["pid"] == 4711 and event["tid"] > 0
            if event["ph"] == "X":
                slices[event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
            elif event["ph"] == "C" and event["name"].endswith(" bytes"):
                name = event["name"][:-len(" bytes")]
                assert event["ts"] >= last.get(name, 0)
                last[name], live[name] = event["ts"], event["args"]["live"]
                peak[name] = max(peak[name], live[name])
            elif event["ph"] == "C":
                assert sum(event["args"].values()) == live[event["name"][:-len(" by category")]], event
            elif event["ph"] == "i" and event["name"] == "[memory]":
                arguments = event["args"]
                device = {(0, -1): "cpu", (1, 1): "cuda:1", (20, 0): "dram"}[arguments["Device Type"], arguments["Device Id"]]
                memory[device] += arguments["Bytes"]
                assert memory[device] == arguments["Total Allocated"]
        for name, space in sample.spaces.items():
            assert peak[name] == space["cumulative_peak"], name
            assert live[name] == space["cumulative_current"], name
            assert source == sample.json or memory[name] == space["cumulative_current"], name
        for thread in slices.values():  # viewers want slices of a thread to nest
            open_until = []
            for begin, end in sorted(thread, key=lambda each: (each[0], -each[1])):
                while open_until and open_until[-1] <= begin:
                    open_until.pop()
                assert not open_until or end <= open_until[-1], "slices overlap"
                open_until.append(end)
        assert sum(len(thread) for thread in slices.values()) >= len(sample.profile["segments"])


def check_perfetto(sample):
    for source in (sample.trace, sample.json):
        tracks, depth, live, peak = {}, collections.Counter(), {}, collections.Counter()
        first, instants = True, []
        for number, packet in fields(sample.export("perfetto", source=source).read_bytes()):
            assert number == 1
            packet = message(packet)
            assert packet[10] == [1] and (packet[13] == [1]) == first
            first = False
            if packet[60]:
                track = message(packet[60][0])
                for names in (track[2], [message(entry)[5][0] for entry in track[4]]):
                    for name in names:
                        name.decode()
                assert track[1][0] not in tracks and (not track[5] or track[5][0] in tracks)
                tracks[track[1][0]] = track
                continue
            event = message(packet[11][0])
            kind, track = event[9][0], event[11][0]
            assert track in tracks
            if kind == 1:
                depth[track] += 1
                event[23][0].decode()
            elif kind == 2:
                depth[track] -= 1
                assert depth[track] >= 0
            elif kind == 3:
                instants.append(event[23][0].decode())
            else:
                name = tracks[track][2][0].decode()
                assert tracks[track][8] and message(tracks[track][8][0])[3] == [3]
                live[name] = event[30][0]
                peak[name] = max(peak[name], live[name])
        assert not any(depth.values())
        for name, space in sample.spaces.items():
            assert peak[name + " live"] == space["cumulative_peak"] and live[name + " live"] == space["cumulative_current"]
            assert f"peak of {name}: {space['cumulative_peak']} bytes" in instants
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        return skip("perfetto and protobuf of PyPI; the packets were decoded by hand")
    # Perfetto's own description of a trace: every field is known to it, and has the meaning that it has above.
    whole = perfetto_trace_pb2.Trace.FromString(sample.export("perfetto").read_bytes())
    names, live, peak = {}, {}, collections.Counter()

    def check_known(part):
        assert len(UnknownFieldSet(part)) == 0, part
        for descriptor, value in part.ListFields():
            if descriptor.type == descriptor.TYPE_MESSAGE:
                for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                    check_known(one)

    for packet in whole.packet:
        check_known(packet)
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.static_name or packet.track_descriptor.name
        elif packet.track_event.type == packet.track_event.TYPE_COUNTER:
            name = names[packet.track_event.track_uuid]
            live[name] = packet.track_event.counter_value
            peak[name] = max(peak[name], live[name])
    for name, space in sample.spaces.items():
        assert peak[name + " live"] == space["cumulative_peak"] and live[name + " live"] == space["cumulative_current"], name


def check_torch(sample):
    out = sample.export("torch-snapshot")
    said = sample.remarks
    made_up = [line for line in said.splitlines() if "segments are made up around the blocks of" in line]
    assert len(made_up) == 1 and "of cpu, dram: the recording does not say what an allocator reserved" in made_up[0], said
    assert said.count("not in the snapshot: ") == 1 and "names, shapes and types of blocks" in said, said
    snapshot = pickle.loads(out.read_bytes())
    devices = {"cpu": 2, "cuda:1": 1, "dram": 3}
    assert len(snapshot["device_traces"]) == 4 and snapshot["device_traces"][0] == []
    for name, device in devices.items():
        space = sample.spaces[name]
        segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
        live = {block["address"]: block["size"] for segment in segments for block in segment["blocks"]
                if block["state"] == "active_allocated"}
        pending = {block["address"]: block["size"] for segment in segments for block in segment["blocks"]
                   if block["state"] == "active_pending_free"}
        assert sum(live.values()) == space["cumulative_current"], name
        assert sum(segment["allocated_size"] for segment in segments) == sum(live.values()), name
        assert sum(segment["active_size"] for segment in segments) == sum(live.values()) + sum(pending.values()), name
        now = peak = active = active_peak = 0
        held, freed = {}, {}
        for event in snapshot["device_traces"][device]:
            if event["action"] == "alloc":
                assert event["addr"] not in held and event["addr"] not in freed
                held[event["addr"]] = event["size"]
                now += event["size"]
                active += event["size"]
                peak, active_peak = max(peak, now), max(active_peak, active)
            elif event["action"] == "free_requested":
                freed[event["addr"]] = held.pop(event["addr"])
                assert freed[event["addr"]] == event["size"]
                now -= event["size"]
            elif event["action"] == "free_completed":
                assert freed.pop(event["addr"]) == event["size"]
                active -= event["size"]
            assert event["frames"] and {"name", "filename", "line"} == set(event["frames"][0])
        assert peak == space["cumulative_peak"] and held == live and freed == pending, name
        if name == "cuda:1":  # the only one with streams
            assert pending and (active_peak, active) == (space["active"]["peak"], space["active"]["current"]), name
        assert any(event["category"] == "unknown" for event in snapshot["device_traces"][device])
    for segment in snapshot["segments"]:
        assert segment["address"] + segment["total_size"] < 2**53
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
    # The opcodes of memory_viz, and no more than it takes at once.
    known = {"PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
             "SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST", "APPENDS", "EMPTY_DICT", "SETITEMS", "TUPLE2", "MEMOIZE", "BINGET",
             "LONG_BINGET"}
    import pickletools
    for opcode, _, _ in pickletools.genops(out.read_bytes()):
        assert opcode.name in known, opcode.name
    # A window around the peak where there are more events than wanted.
    whole = {name: sum(1 for event in snapshot["device_traces"][device] if event["action"] == "alloc")
             for name, device in devices.items()}
    window = pickle.loads(sample.export("torch-snapshot", "--events", 200).read_bytes())
    assert "around the peak are left out" in sample.remarks
    for name, device in devices.items():
        events = window["device_traces"][device]
        allocations = [event for event in events if event["action"] == "alloc"]
        frees = [event for event in events if event["action"] == "free_requested"]
        assert 0 < len(allocations) + len(frees) <= 200 < whole[name]
        live = sum(block["size"] for segment in window["segments"] if segment["device"] == device
                   for block in segment["blocks"] if block["state"] == "active_allocated")
        now = live - sum(event["size"] for event in allocations) + sum(event["size"] for event in frees)
        peak = now
        for event in events:
            now += {"alloc": event["size"], "free_requested": -event["size"]}.get(event["action"], 0)
            peak = max(peak, now)
        assert peak == sample.spaces[name]["cumulative_peak"], name
    done = subprocess.run([sample.memprof, "export", sample.json, "--format", "torch-snapshot", "-o", "x"], capture_output=True,
                          text=True)
    assert done.returncode == 2 and "needs a trace" in done.stderr, done
    # Read again it has the same segments, and no other steps. The sample frees blocks that it never allocated: BEFORE_TRACE.
    run(sample.memprof, "import", "torch-snapshot", out, "-o", sample.folder / "again.json")
    again = json.loads((sample.folder / "again.json").read_text())
    names = [segment["name"] for segment in sample.profile["segments"]]
    found = [segment["name"] for segment in again["segments"] if segment["name"] != "BEFORE_TRACE"]
    assert found == names and again["step_count"] == sample.profile["step_count"], (found, names)
    for name, device in devices.items():
        space = next(space for space in again["spaces"] if space["name"] == f"cuda:{device}")
        assert space["cumulative_peak"] == sample.spaces[name]["cumulative_peak"], name
    viz = os.environ.get("MEMPROF_TORCH_MEMORY_VIZ", "")
    if not os.path.exists(viz):
        skip("torch/cuda/_memory_viz.py (MEMPROF_TORCH_MEMORY_VIZ); the snapshot's rules were checked")
        return
    # The file stands alone but for a few imports that need all of torch; these are not what is asked for here.
    stats = run(sys.executable, viz, "stats", out).stdout
    run(sys.executable, viz, "trace", out)
    for kind in ("trace_plot", "segment_plot"):
        page = sample.folder / "page.html"
        run(sys.executable, viz, kind, out, "-o", page)
        assert page.stat().st_size > out.stat().st_size


NUMBER, TEXT = (int, float), str
SESSION_TENSOR = {"size_mb": NUMBER, "shape": list, "dtype": TEXT, "device": TEXT, "requires_grad": bool, "operation": TEXT}
# The keys that the README of pie's memory profiler lists. What is not known is null in ours.
SESSION = {
    "metadata": {"generated_at": TEXT, "num_snapshots": int, "operation_tracking_enabled": bool},
    "snapshots": [{
        "timestamp": TEXT, "checkpoint_name": TEXT, "total_mb": NUMBER, "total_bytes": int, "tensor_count": int,
        "device_breakdown": {None: {"total_mb": NUMBER, "count": int, "tensors": [SESSION_TENSOR]}},
        "top_allocations": [SESSION_TENSOR]}],
    "operation_allocations": {None: [{
        "memory_delta_mb": NUMBER, "tensor_delta": int, "pre_total_mb": NUMBER, "post_total_mb": NUMBER, "timestamp": TEXT}]},
    "operation_summary": {None: {
        "invocation_count": int, "total_memory_delta_mb": NUMBER, "avg_memory_delta_mb": NUMBER, "max_memory_delta_mb": NUMBER}},
    "operation_graph": {None: {
        "invocations": int, "total_memory_delta_mb": NUMBER, "tensors_allocated": int, "child_operations": [TEXT]}},
    "pytorch_operations": [{
        "op_name": TEXT, "count": int, "cpu_time_us": NUMBER, "cuda_time_us": NUMBER, "cpu_memory_mb": NUMBER,
        "cuda_memory_mb": NUMBER, "input_shapes": (list, str)}],
}


def check_shape(value, expected, place, absent_in_original=()):
    """Whether a document has all keys of a description, with values of those types; None as a key stands for any."""
    if value is None:
        return
    if isinstance(expected, dict):
        assert isinstance(value, dict), place
        if None in expected:
            for key, one in value.items():
                check_shape(one, expected[None], f"{place}/{key}", absent_in_original)
            return
        for key, one in expected.items():
            if key in absent_in_original and key not in value:
                continue
            assert key in value, f"{place} has no {key}"
            check_shape(value[key], one, f"{place}/{key}", absent_in_original)
    elif isinstance(expected, list):
        assert isinstance(value, list), place
        for number, one in enumerate(value):
            check_shape(one, expected[0], f"{place}/{number}", absent_in_original)
    else:
        assert isinstance(value, expected), f"{place} is {value!r}"
        assert not isinstance(value, bool) or expected is bool, place


def check_session(sample):
    mib = 1 << 20
    made = json.loads(sample.export("session").read_text())
    said = sample.remarks
    open_calls = sum(int(word) for line in said.splitlines() if "still open" in line for word in line.split() if word.isdigit())
    # What the format cannot hold is said, and nothing else.
    greatest = {name: max(point["device_breakdown"].get(name, {"total_bytes": 0})["total_bytes"] for point in made["snapshots"]) for name in sample.spaces}
    missed = sum(space["cumulative_peak"] > greatest[name] for name, space in sample.spaces.items())
    lacks = [f"peaks of {missed} memory space{'s' if missed > 1 else ''}, which are between snapshots"] if missed else []
    lacks += ["what allocators reserved, and on which streams", "requests for which a device had no memory",
              "blocks beyond the ten largest of a memory space in each snapshot"]
    for what in lacks:
        assert said.count(f"not in the session profile: {what}\n") == 1, (what, said)
    assert said.count("\n") == len(lacks) + (open_calls > 0), said
    check_shape(made, SESSION, "")
    assert made["metadata"]["num_snapshots"] == len(made["snapshots"]) == sample.profile["segment_count"]
    assert made["metadata"]["operation_tracking_enabled"] is True

    # The snapshots once more, from the events as they are in another export.
    live, expected = collections.defaultdict(dict), []
    for line in (sample.export("jsonl") / "events.jsonl").read_text().split("\n")[:-1]:
        event = json.loads(line)
        if event["kind"] == "allocate":
            live[event["space"]][event["address"]] = event["bytes"]
        elif event["kind"] == "deallocate":
            del live[event["space"]][event["address"]]
        elif event["kind"] == "segment_end":
            expected.append((event["name"], {space: sorted(blocks.values(), reverse=True) for space, blocks in live.items()}))
    assert len(expected) == len(made["snapshots"]) > 3
    times = [snapshot["timestamp"] for snapshot in made["snapshots"]]
    assert times == sorted(times) and times[0].startswith("2023-11-14T22:13:20.") and times[0].endswith("+00:00")
    for (name, devices), snapshot in zip(expected, made["snapshots"]):
        assert snapshot["checkpoint_name"] == name
        assert snapshot["total_bytes"] == sum(map(sum, devices.values())) == snapshot["total_mb"] * mib
        assert snapshot["tensor_count"] == sum(map(len, devices.values()))
        for device, blocks in devices.items():
            part = snapshot["device_breakdown"][device]
            assert part["total_mb"] * mib == part["total_bytes"] == sum(blocks) and part["count"] == len(blocks)
            assert [tensor["size_mb"] * mib for tensor in part["tensors"]] == blocks[:10]
            assert {tensor["device"] for tensor in part["tensors"]} <= {device}
        largest = sorted((size for blocks in devices.values() for size in blocks), reverse=True)[:10]
        assert [tensor["size_bytes"] for tensor in snapshot["top_allocations"]] == largest
    parts = [part for snapshot in made["snapshots"] for part in snapshot["device_breakdown"].values()]
    tensors = [tensor for part in parts for tensor in part["tensors"]]
    known = [tensor for tensor in tensors if tensor["shape"] is not None]
    assert known and all(tensor["shape"] == [3, 4] and tensor["dtype"] == "torch.float32" for tensor in known)

    calls = sum(operation["invocations"] for operation in sample.profile["operations"])
    assert sum(summary["invocation_count"] for summary in made["operation_summary"].values()) + open_calls == calls > 50
    for name, rows in made["operation_allocations"].items():
        summary, node = made["operation_summary"][name], made["operation_graph"][name]
        deltas = [row["memory_delta_mb"] for row in rows]
        assert summary["invocation_count"] == node["invocations"] == len(rows)
        assert summary["total_memory_delta_mb"] == node["total_memory_delta_mb"] == sum(deltas)
        assert not rows or summary["max_memory_delta_mb"] == max(deltas)
        assert not rows or abs(summary["avg_memory_delta_mb"] - sum(deltas) / len(rows)) < 1e-9
        for row in rows:
            assert row["post_total_mb"] - row["pre_total_mb"] == row["memory_delta_mb"]
            assert row["tensors_allocated"] - row["tensors_deallocated"] == row["tensor_delta"]
        assert set(node["child_operations"]) <= set(made["operation_graph"])
    assert any(node["child_operations"] for node in made["operation_graph"].values())

    # Of a profile: what is not known is null, and said.
    less = json.loads(sample.export("session", source=sample.json).read_text())
    assert "a profile has them only at checkpoints" in sample.remarks and less["metadata"]["missing"]
    check_shape(less, SESSION, "")
    assert [s["total_bytes"] for s in less["snapshots"]] == [s["total_bytes"] for s in made["snapshots"]]
    assert [s["tensor_count"] for s in less["snapshots"]] == [s["tensor_count"] for s in made["snapshots"]]
    assert [s["timestamp"] for s in less["snapshots"]] == times
    for name, summary in less["operation_summary"].items():
        assert summary["invocation_count"] >= made["operation_summary"].get(name, summary)["invocation_count"]

    # Whether the description above is that of the original: what its own output has.
    original = pathlib.Path(os.environ.get("MEMPROF_SESSION_SAMPLE", "absent"))
    if not original.exists():
        return skip("a profile of pie's memory profiler; keys and sums were checked")
    check_shape(json.loads(original.read_text()), SESSION, "original", absent_in_original={"operation"})


def check_tables(sample):
    def rows(folder, suffix, name):
        path = folder / (name + suffix)
        if suffix == ".parquet":
            found = duckdb.sql(f"SELECT * FROM '{path}'")
            return [dict(zip(found.columns, row)) for row in found.fetchall()]
        if suffix == ".jsonl":
            return [json.loads(line) for line in path.read_text().split("\n")[:-1]]
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    try:
        import duckdb
    except ImportError:
        duckdb = None
        skip("duckdb of PyPI, for Parquet; the sums of the other tables were checked")
    forms = [("csv", ".csv"), ("jsonl", ".jsonl")] + [("parquet", ".parquet")] * (duckdb is not None)
    for form, suffix in forms:
        folder = sample.export(form, "--run", "run \"7\"", "--label", "commit=00123", "--label", "note=a=b, \"c\"")
        labels = [(row["run"], int(row["rank"]), row["name"], row["value"]) for row in rows(folder, suffix, "labels")]
        assert labels == [("run \"7\"", 3, "commit", "00123"), ("run \"7\"", 3, "note", "a=b, \"c\"")], labels
        runs = {row["space"]: row for row in rows(folder, suffix, "runs")}
        assert {row["run"] for row in runs.values()} == {"run \"7\""} and set(runs) == set(sample.spaces)
        live, peak, allocated = collections.Counter(), collections.Counter(), collections.Counter()
        for event in rows(folder, suffix, "events"):
            if event["kind"] in ("allocate", "deallocate"):
                live[event["space"]] += int(event["bytes"]) * (1 if event["kind"] == "allocate" else -1)
                peak[event["space"]] = max(peak[event["space"]], live[event["space"]])
        unfreed = collections.Counter()
        for block in rows(folder, suffix, "blocks"):
            allocated[block["space"]] += int(block["bytes"])
            if int(block["freed_ns"]) < 0:
                unfreed[block["space"]] += int(block["bytes"])
        for name, space in sample.spaces.items():
            assert int(runs[name]["peak_bytes"]) == space["cumulative_peak"] == peak[name]
            assert live[name] == unfreed[name] == space["cumulative_current"]
            assert allocated[name] == space["allocations"]
        segments = rows(folder, suffix, "segments")
        assert len(segments) == len(sample.spaces) * len(sample.profile["segments"])
        assert sum(int(row["change_bytes"]) for row in segments) == sum(s["cumulative_current"] for s in sample.spaces.values())
        operations = rows(folder, suffix, "operations")
        assert len(operations) == sum(len(operation["usage"]) for operation in sample.profile["operations"])
        of_profile = sample.export(form, source=sample.json)
        assert len(rows(of_profile, suffix, "blocks")) == sum(len(s["live_at_peak"]["largest_blocks"]) for s in sample.spaces.values())
    if duckdb is None:
        return
    for form, suffix, reader in (("csv", ".csv", "read_csv"), ("jsonl", ".jsonl", "read_json"), ("parquet", ".parquet", "read_parquet")):
        folder = sample.export(form)
        found = dict(duckdb.sql(f"SELECT space, sum(bytes)::BIGINT FROM {reader}('{folder}/blocks{suffix}') GROUP BY space").fetchall())
        assert found == {name: space["allocations"] for name, space in sample.spaces.items()}, found
        for name in ("runs", "segments", "operations", "events"):
            assert duckdb.sql(f"SELECT count(*) FROM {reader}('{folder}/{name}{suffix}')").fetchall()[0][0] > 0
    check_parquet(sample, duckdb)


def check_parquet(sample, duckdb):
    """What JSON lines say, value by value, over more than one stretch of rows; empty tables, too, have their columns and types."""
    run(sample.writer, sample.folder / "long.memtrace", 100_000, 5)
    long, exact = (sample.export(form, source=sample.folder / "long.memtrace") for form in ("parquet", "jsonl"))
    for name in ("runs", "labels", "segments", "operations", "blocks", "events"):
        found = duckdb.sql(f"SELECT * FROM '{long}/{name}.parquet'")
        expected = [json.loads(line) for line in (exact / f"{name}.jsonl").read_text().split("\n")[:-1]]
        rows = found.fetchall()
        assert len(rows) == len(expected), (name, len(rows), len(expected))
        for row, wanted in zip(rows, expected):
            assert dict(zip(found.columns, row)) == wanted and list(wanted) == found.columns, (name, row, wanted)
    groups = duckdb.sql(f"SELECT count(DISTINCT row_group_id), max(row_group_num_rows) FROM parquet_metadata('{long}/events.parquet')").fetchall()
    assert groups[0][0] > 1 and groups[0][1] == 65536, groups
    (labels,) = (duckdb.sql(f"SELECT * FROM '{long}/labels.parquet'"),)
    assert labels.columns == ["run", "rank", "name", "value"] and [str(each) for each in labels.types] == ["VARCHAR", "BIGINT", "VARCHAR", "VARCHAR"]
    # A table of another program is not replaced.
    other = sample.folder / "other"
    other.mkdir(exist_ok=True)
    duckdb.sql(f"COPY (SELECT 'x' AS run) TO '{other}/runs.parquet'")
    done = run(sample.memprof, "export", sample.trace, "--format", "parquet", "-o", other, expected=2)
    assert "it exists and is not a table of memprof's" in done.stderr, done.stderr


def check_many_runs(memprof, writer, folder):
    """The query of docs/formats.md finds the run whose peak stands out."""
    try:
        import duckdb
    except ImportError:
        return skip("duckdb of PyPI")
    folder = pathlib.Path(folder)
    for number in range(24):
        trace = folder / f"run{number}.memtrace"
        run(writer, trace, 2400 if number == 17 else 600, number)
        run(memprof, "export", trace, "--format", "csv", "-o", folder / "runs" / str(number))
    document = (pathlib.Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    query = document.split("```sql\n")[1].split("```")[0].replace("runs/*/", f"{folder}/runs/*/")
    rows = duckdb.sql(query).fetchall()
    assert rows and rows[0][0] == "run17" and rows[0][1] == 3, rows


def check_options(sample, form):
    """An option that a format does not use is refused, and one that it uses is not."""
    uses = {"--of": {"collapsed"}, "--space": {"dhat", "massif"}, "--run": {"csv", "jsonl", "parquet", "speedscope"}, "--label": {"csv", "jsonl", "parquet", "pprof"},
            "--events": {"torch-snapshot"}}
    values = {"--of": "all", "--space": "dram", "--run": "x", "--label": "a=b", "--events": "9"}
    for name in {"torch": ["torch-snapshot"], "tables": ["csv", "jsonl", "parquet"]}.get(form, [form]):
        for option, value in values.items():
            out = sample.folder / f"options{option}.{name}"
            is_used = name in uses[option]
            done = run(sample.memprof, "export", sample.trace, "--format", name, "-o", out, option, value, expected=0 if is_used else 2)
            assert is_used or option in done.stderr and f"the format is {name}" in done.stderr and done.stderr.count("\n") == 1, done
            assert is_used or not out.exists(), (name, option)


def main():
    memprof, writer, form = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        if form == "many_runs":
            check_many_runs(memprof, writer, folder)
            sys.exit(finish())
        for seed in range(1, 4):
            globals()["check_" + form](Sample(memprof, writer, folder, events=3000, seed=seed))
        check_options(Sample(memprof, writer, folder, events=100), form)
        nothing = Sample(memprof, writer, folder, events=0)  # but a range that is reserved
        name = {"torch": "torch-snapshot", "tables": "csv"}.get(form, form)
        run(memprof, "export", nothing.trace, "--format", name, "-o", nothing.folder / "nothing", expected=2 if form == "dhat" else 0)
    sys.exit(finish())


main()
