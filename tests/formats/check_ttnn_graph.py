#!/usr/bin/env python3
"""check_ttnn_graph.py MEMPROF WHAT [DATA]: reads graph traces of ttnn and compares with the tracker's own rules.

WHAT is `samples` (a trace in the folder DATA), `made` (traces made here) or `hostile` (damaged ones). Exit status 4: skipped.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def imported(memprof, folder, nodes, *options, expected=0):
    path, trace, out = folder / "graph.json", folder / "in.memtrace", folder / "in.json"
    path.write_text(nodes if isinstance(nodes, str) else json.dumps(nodes))
    said = run(memprof, "import", "auto", path, "-o", trace, *options, expected=expected).stderr
    run(memprof, "profile", trace, "-o", out)
    profile = json.loads(out.read_text())
    return {space["name"]: space for space in profile["spaces"]}, profile, said


def tracker(nodes, per_core):
    """What the tracker finds: DRAM of the segment, and bytes on the fullest core. A free of a buffer from before takes no L1."""
    dram = peak = allocations = deallocations = 0
    known, buffers, circular = {}, {}, []
    tops = {"cb": 0, "l1": 0, "total": 0}
    for node in nodes:
        kind, params = node["node_type"], node["params"] or {}
        if kind == "buffer":
            known[node["counter"]] = (params["type"], int(params["size"]))
        elif kind == "buffer_allocate" and params["type"] == "DRAM":
            dram += int(params["size"])
            allocations += int(params["size"])
        elif kind == "buffer_allocate":
            bytes_on_core = params.get("max_size_per_bank")
            if bytes_on_core is None:
                pages, cores = -(-int(params["size"]) // int(params["page_size"])), max(1, int(params["num_cores"]))
                bytes_on_core = -(-pages // cores) * int(params["page_size"]) if int(params["num_cores"]) else int(params["size"])
            buffers[node["connections"][0]] = int(bytes_on_core)
        elif kind == "buffer_deallocate":
            where, size = known[node["connections"][0]]
            if where == "DRAM":
                dram -= size
                deallocations += size
            buffers.pop(node["connections"][0], None)
        elif kind == "circular_buffer_allocate" and params["globally_allocated"] == "0":
            circular.append((int(params["size"]), params["core_range_set"]))
        elif kind == "circular_buffer_deallocate_all":
            circular = []
        peak = max(peak, dram)
        cores = {}
        for size, text in circular:
            for cell in ({(0, 0)} if not per_core else cells(text)):
                cores[cell] = cores.get(cell, 0) + size
        cb, l1 = max(cores.values(), default=0), sum(buffers.values())
        tops = {"cb": max(tops["cb"], cb), "l1": max(tops["l1"], l1), "total": max(tops["total"], cb + l1)}
    return {"peak": peak, "allocations": allocations, "deallocations": deallocations, "change": dram, **tops}


def cells(text):
    numbers = [int(number) for number in "".join(c if c.isdigit() else " " for c in text).split()]
    for x0, y0, x1, y1 in zip(*[iter(numbers)] * 4):
        yield from {(x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)}


def compare(spaces, profile, nodes, per_core):
    wanted = tracker(nodes, per_core)
    names = [segment["name"] for segment in profile["segments"]]
    if "dram" in spaces:
        row = spaces["dram"]["segments"][names.index("TRACE")]
        found = {key: row[name] for key, name in (("peak", "segment_peak"), ("allocations", "allocations"), ("deallocations", "deallocations"),
                                                  ("change", "segment_change"))}
        assert found == {key: wanted[key] for key in found}, (found, wanted)
    else:
        assert wanted["peak"] == wanted["allocations"] == 0
    peaks = spaces["l1"]["cores"]["peaks"] if "l1" in spaces else {"circular_buffers": 0, "buffers": 0, "total": 0}
    found = {"cb": peaks["circular_buffers"], "l1": peaks["buffers"], "total": peaks["total"]}
    assert found == {key: wanted[key] for key in found}, (found, wanted)


class Graph:
    def __init__(self, seed, old):
        self.choose, self.old, self.nodes, self.device, self.before = random.Random(seed), old, [], [], []

    def add(self, kind, params, connections=()):
        if self.old:
            params = {key: str(value) for key, value in (params or {}).items() if key != "max_size_per_bank"}
        self.nodes.append({"counter": len(self.nodes), "node_type": kind, "params": params, "arguments": [], "connections": list(connections),
                           "input_tensors": [], "stacking_level": 0})
        return len(self.nodes) - 1

    def buffer(self, memory, size):
        return self.add("buffer", {"size": size, "type": memory, "layout": "INTERLEAVED", "device_id": 0}, [len(self.nodes) + 2])

    def make(self):
        choose = self.choose
        self.add("capture_start", None if not self.old else {})
        for _ in range(60):
            kind = choose.randrange(8)
            self.add("function_start", {"name": choose.choice(["ttnn::add", "ttnn::matmul", "Tensor::to"]), "inputs": 2})
            memory, size, page = choose.choice(["DRAM", "L1"]), 2048 * choose.randrange(1, 40), choose.choice([1024, 2048])
            params = {"size": size, "type": memory, "page_size": page, "num_cores": choose.choice([0, 4]), "max_size_per_bank": 2048, "address": 0}
            if kind < 3:
                buffer = self.buffer(memory, size)
                self.add("buffer_allocate", params, [buffer])
                self.device.append((buffer, memory))
                self.add("tensor", {"shape": "Shape([1, 32])", "dtype": "DataType::BFLOAT16", "layout": "Layout::TILE", "tensor_id": 1, "size": size})
            elif kind == 3 and self.device:
                buffer, memory = self.device.pop(choose.randrange(len(self.device)))
                self.add("buffer_deallocate", {**params, "type": memory, "size": 0}, [buffer])
            elif kind == 4:
                self.before.append(self.buffer("DRAM", size))
                if choose.randrange(2):
                    self.add("buffer_deallocate", {**params, "type": "DRAM"}, [self.before.pop()])
            else:
                self.add("circular_buffer_deallocate_all", {"device_id": 0})
                for _ in range(choose.randrange(5)):
                    x, y = choose.randrange(8), choose.randrange(8)
                    ranges = choose.choice([f"{{[{x}-{y} - {x}-{y}]}}", f"{{[(x={x},y={y}) - (x={x + 1},y={y + 2})]}}", "{[0-0 - 1-1], [4-4 - 5-7]}"])
                    self.add("circular_buffer_allocate", {"size": 512 * choose.randrange(1, 9), "address": 111616, "core_range_set": ranges,
                                                          "globally_allocated": str(int(choose.randrange(4) == 0)), "device_id": 0})
            self.add("function_end", {"name": self.nodes_name()})
        self.add("capture_end", None if not self.old else {})
        # Numbers and flags of old traces are texts, and "globally_allocated" always is.
        return self.nodes

    def nodes_name(self):
        return next(node["params"]["name"] for node in reversed(self.nodes) if node["node_type"] == "function_start")


def check_samples(memprof, folder, data):
    path = pathlib.Path(data) / "matmul_normal_mode.reduced.json"
    if not path.exists():
        print(f"skipped: no sample in {data}")
        sys.exit(4)
    nodes = json.loads(path.read_text())
    for options in ([], ["--per-core"]):
        spaces, profile, said = imported(memprof, folder, path.read_text(), *options)
        peaks = spaces["l1"]["cores"]["peaks"]
        assert (peaks["circular_buffers"], peaks["buffers"], peaks["total"]) == (786432, 20480, 806912), peaks
        row = spaces["dram"]["segments"][-1]
        assert (row["segment_peak"], row["allocations"], row["segment_change"]) == (22528, 22528, 22528), row
        assert spaces["dram"]["cumulative_current"] == 2097152 + 22528
        compare(spaces, profile, nodes, bool(options))
        paths = {operation["path"] for operation in profile["operations"]}
        assert "ttnn.matmul/MatmulDeviceOperation/tt::tt_metal::create_device_tensor" in paths, paths
    run(memprof, "show", folder / "in.memtrace")
    run(memprof, "report", folder / "in.memtrace", "-o", folder / "page.html")


def check_made(memprof, folder):
    for seed in range(6):
        nodes = Graph(seed, old=seed % 2 == 1).make()
        for options in ([], ["--per-core"]):
            spaces, profile, said = imported(memprof, folder, nodes, *options)
            compare(spaces, profile, nodes, bool(options))
            for space in spaces.values():
                assert space["anomalies"]["unmatched_frees"]["count"] == 0 and space["anomalies"]["replaced_allocations"]["count"] == 0
    # A buffer in L1 that was there before: the original's unsigned number ran over.
    nodes = [{"counter": 0, "node_type": "buffer", "params": {"size": 64, "type": "L1"}, "connections": []},
             {"counter": 1, "node_type": "buffer_deallocate", "params": {"size": 64, "type": "L1"}, "connections": [0]},
             {"counter": 2, "node_type": "buffer", "params": {"size": 32, "type": "L1"}, "connections": [3]},
             {"counter": 3, "node_type": "buffer_allocate", "params": {"size": 32, "type": "L1", "max_size_per_bank": 32}, "connections": [2]}]
    spaces, profile, said = imported(memprof, folder, nodes)
    assert spaces["l1"]["cores"]["peaks"]["total"] == 32 and "1 freed buffers were allocated before the trace" in said, said


def check_hostile(memprof, folder):
    choose = random.Random(3)
    whole = json.dumps(Graph(1, False).make())

    def tried(content):
        path, out = folder / "bad.json", folder / "out.memtrace"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        done = subprocess.run([memprof, "import", "ttnn-graph", str(path), "-o", str(out), *choose.choice([[], ["--per-core"]])], capture_output=True,
                              text=True, errors="replace")
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        assert done.returncode == 0 or "bad.json" in done.stderr, done.stderr
        return done

    node = lambda **more: json.dumps([{"counter": 0, "node_type": "buffer_allocate", "params": {"size": 1, "type": "L1"}, "connections": [], **more}])
    for content, said in (("", "it is empty"), ("{}", "a graph trace is an array of nodes"), ("[1]", "node 0: not an object"), ("[]", "expected an array"),
                          ("[{}]", "node 0: has no 'node_type'"), (node(counter=7), "its 'counter' is 7, expected 0"), (node(counter=-1), "'counter' must be"),
                          (node(params={"size": 2**60}), "'size' must be a whole number"), (node(params={"size": "x"}), "'size' must be"),
                          (node(params={"type": "L1"}), "expected 'size'"), ("[" * 100000, "bad.json")):
        done = tried(content)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, (content[:60], done)
    # What a node says is looked at whatever is asked for.
    for key, values, said in (("address", (-1, 1.5, "x", None, {}, 2**60, True), "node 0: 'address' must be a whole number from 0 to 2^48"),
                              ("device_id", (-1, "x", None, [1]), "node 0: 'device_id' must be a whole number"),
                              ("core_range_set", (5, None, {}, "", "x", "{[0-0 - 1]}", "{[1-1 - 0-0]}", "{[0-0 - 256-0]}", "{0-0 - 1-1}", "[0-0 - 1-1]"),
                               "node 0: 'core_range_set' must be rectangles of cores")):
        for value in values:
            for _ in range(6):  # with and without --per-core
                done = tried(node(params={"size": 1, "type": "L1", key: value}))
                assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, (key, value, done)
    for value in ("{}", "{[0-0 - 1-1]}", "{[(x=0,y=0) - (x=7,y=7)], [9-9 - 9-9]}"):
        assert tried(node(params={"size": 1, "type": "L1", "address": "64", "device_id": 1, "core_range_set": value})).returncode == 0, value
    done = tried(whole[:len(whole) // 2])
    assert done.returncode == 2 and "everything before that is in" in done.stderr, done.stderr
    run(memprof, "show", folder / "out.memtrace")
    for _ in range(150):
        bad = bytearray(whole.encode())
        for _ in range(choose.randrange(1, 5)):
            bad[choose.randrange(len(bad))] = choose.choice(b'0123456789"{}[],:-ex') if choose.randrange(2) else choose.randrange(256)
        if tried(bytes(bad)).returncode == 0:
            run(memprof, "show", folder / "out.memtrace")


def main():
    memprof, what = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](memprof, pathlib.Path(folder), *sys.argv[3:])


main()
