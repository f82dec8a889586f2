#!/usr/bin/env python3
"""check_tt_mlir.py MEMPROF WHAT [DATA]: reads logs of tt-mlir's runtime and compares with what Python knows of them.

WHAT is `samples` (a log in the folder DATA, with what the original made of it), `made` (logs made here), `large` (memory in
proportion to what is live), `run` (the wrapper around a script) or `hostile` (damaged logs). Exit status 4: skipped, with the reason.
"""
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile

TYPES = ("DRAM", "L1", "L1_SMALL", "TRACE")
BANKS = {"DRAM": 12, "L1": 64, "L1_SMALL": 64, "TRACE": 12}
TOTAL = {"DRAM": 1022168, "L1": 1306, "L1_SMALL": 31, "TRACE": 0}  # thousandths of a MiB in a bank


def run(*command, expected=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", **options)
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def in_bytes(thousandths):
    """To the nearest, halves up."""
    return (thousandths * 2**20 * 2 + 1000) // 2000


def text_of(thousandths):
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


class Log:
    """Writes a log as the runtime does, and knows what it means."""

    def __init__(self, seed, label=""):
        self.choose = random.Random(seed)
        self.label, self.lines = label, []
        self.level = {kind: 0 for kind in TYPES}
        self.states = []  # of thousandths allocated, by kind
        self.executed = []  # (name, loc, path, is in the files, index of the state before it)
        self.path = []
        self.live = []  # (value, kind, thousandths)
        self.number = 0

    def say(self, who, level, message):
        colour = self.choose.choice([1, 2, 69])
        self.lines.append(f"{self.label}\x1b[32m{who:>23}\x1b[0m | \x1b[1m\x1b[38;5;{colour}m{level:>8}\x1b[0m | {message}")

    def noise(self):
        self.lines.append(self.label + self.choose.choice(["Fetching 4 files: 100%|####| 4/4", "", "  warn: something", "[{(<\"\\"]))

    def state(self, header):
        self.say("Always", "INFO", header)
        for kind in TYPES:
            if self.choose.randrange(12) == 0:
                self.noise()
            free = TOTAL[kind] - self.level[kind]
            largest = free - (free // 3 if kind == "DRAM" and self.choose.randrange(3) == 0 else 0)
            name = "L1 SMALL" if kind == "L1_SMALL" and self.choose.randrange(2) else kind
            self.say("Always", "INFO", f"Device {name} memory state: MemoryView{{numBanks: {BANKS[kind]}, totalBytesPerBank: "
                     f"{text_of(TOTAL[kind])} MB, totalBytesAllocatedPerBank: {text_of(self.level[kind])} MB, totalBytesFreePerBank: "
                     f"{text_of(free)} MB, largestContiguousBytesFreePerBank: {text_of(largest)} MB}}")
        self.states.append(dict(self.level))

    def operation(self, name, text, loc, has_state=True):
        self.say("RuntimeTTNN", "DEBUG", "Executing operation: " + text)
        if not has_state:
            return
        if self.choose.randrange(5) == 0:
            self.noise()
        in_files = "deallocate" not in name and "get_device" not in name
        self.executed.append((name, loc, "/".join([*self.path, name]), in_files, len(self.states)))
        self.state(f"Device memory state before operation {name.split('.')[1].title()}Op")

    def allocate(self):
        self.number += 1
        value, name = f"%{self.number}", self.choose.choice(["ttnn.add", "ttnn.matmul", "ttnn.to_layout"])
        loc = self.choose.choice([('"add.6"', "add.6"), ('"mean"("reduce.8")', "mean"), ("unknown", None), ('"f.mlir":10:9', "f.mlir:10:9"),
                                  ('callsite("inner" at "outer")', "inner")])
        shape = self.choose.choice(["1x768", "32x64x2", "7"])
        layout = "#ttnn.ttnn_layout<(d0, d1) -> (d0 * 4 + d1, d1), <1x1>, memref<24x24x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>"
        self.operation(name, f'{value} = "{name}"(%arg0, %x) <{{a = #ttnn<b {{c = 1}}>}}> : (tensor<{shape}xbf16, {layout}>, tensor<f32>) -> '
                       f"tensor<{shape}xbf16, {layout}> loc({loc[0]})", loc[1])
        kind = self.choose.choice(["DRAM", "DRAM", "L1", "L1_SMALL"])
        room = TOTAL[kind] - self.level[kind]
        size = self.choose.randrange(0, max(1, room // 8))
        self.level[kind] += size
        self.live.append((value, kind, size))

    def deallocate(self):
        value, kind, size = self.live.pop(self.choose.randrange(len(self.live)))
        self.operation("ttnn.deallocate", f'"ttnn.deallocate"({value}) <{{force = false}}> : (tensor<1xbf16>) -> () loc("x")', "x")
        self.level[kind] -= size

    def shrink(self):
        """Something frees bytes that no operation says."""
        kind = self.choose.choice(["DRAM", "L1"])
        if self.live and self.level[kind] > 10:
            self.operation("ttnn.move", '%9 = "ttnn.move"(%8) : (tensor<1xbf16>) -> tensor<1xbf16> loc("m")', "m")
            own = [index for index, live in enumerate(self.live) if live[1] == kind and live[2] > 1]
            if own:
                value, kind, size = self.live[own[-1]]
                part = self.choose.randrange(1, size)
                self.live[own[-1]] = (value, kind, size - part)
                self.level[kind] -= part

    def program(self, name, steps, nested=True):
        self.say("RuntimeTTNN", "DEBUG", "Starting execution of program: " + name)
        self.path.append(name)
        for _ in range(steps):
            kind = self.choose.randrange(12)
            if kind < 6 or not self.live:
                self.allocate()
            elif kind < 9:
                self.deallocate()
            elif kind < 10:
                self.shrink()
            elif nested:
                function = f"{name}_const_eval_{self.choose.randrange(3)}"
                if self.choose.randrange(2):
                    self.say("Always", "DEBUG", "Cache miss or invalid cache for function: " + function)
                self.number += 1
                self.operation("ttcore.load_cached", f"%{self.number} = ttcore.load_cached(@{function}, [%arg0, %arg1]) : (tensor<4x4xbf16>, "
                               "tensor<f32>) -> tensor<4x4xbf16> loc(unknown)", None)
                self.path.append("ttcore.load_cached")
                self.program(function, 3, nested=False)
                self.path.pop()
            if self.choose.randrange(8) == 0:
                self.noise()
        self.path.pop()
        self.say("RuntimeTTNN", "DEBUG", "Finished execution of program: " + name)


def interleaved(logs, seed):
    choose, queues = random.Random(seed), [list(log.lines) for log in logs]
    while any(queues):
        queue = choose.choice([queue for queue in queues if queue])
        yield queue.pop(0)


def made(seed, label=""):
    log = Log(seed, label)
    log.level["DRAM"] = 500
    log.operation("ttnn.get_device", '%0 = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device loc("p0")', "p0")
    for _ in range(3):
        log.program("main", 40)
    return log


def expect(profile, log, rank=""):
    """That a profile has the levels, sums and owners that the log's states mean."""
    spaces = {space["name"]: space for space in profile["spaces"]}
    paths = {operation["path"]: {usage["space"]: usage for usage in operation["usage"]} for operation in profile["operations"]}
    for kind in TYPES:
        levels = [BANKS[kind] * in_bytes(state[kind]) for state in log.states]
        changes = [after - before for before, after in zip([0, *levels], levels)]
        if not any(levels):
            continue
        space = spaces[kind.lower() + rank]
        assert space["cumulative_current"] == levels[-1], (kind, space["cumulative_current"], levels[-1])
        assert space["cumulative_peak"] == max(levels), (kind, space["cumulative_peak"], max(levels))
        assert space["allocations"] == sum(change for change in changes if change > 0), kind
        assert space["deallocations"] == -sum(change for change in changes if change < 0), kind
        assert space["capacity"] == BANKS[kind] * in_bytes(TOTAL[kind]), kind
        assert not any(odd["count"] for name, odd in space["anomalies"].items()), space["anomalies"]
        allocated = {}
        for name, loc, path, in_files, index in log.executed:
            if index + 1 < len(changes) and changes[index + 1] > 0:
                for part in ["/".join(path.split("/")[:depth + 1]) for depth in range(path.count("/") + 1)]:
                    allocated[part] = allocated.get(part, 0) + changes[index + 1]
        for path, amount in allocated.items():
            found = paths[path][space["name"]]["allocated"]
            assert rank or found == amount, (path, kind, found, amount)


def check_samples(memprof, folder, data):
    data = pathlib.Path(data)
    log = data / "synthetic_profile.ansi.log"
    if not log.exists():
        print(f"skipped: no sample log in {data}")
        sys.exit(4)
    for source in (log, data / "synth_20260101_000000" / "synth_profile.log"):
        copy = folder / "synth_profile.log"
        copy.write_bytes(source.read_bytes())
        said = run(memprof, "tt-mlir", "analyze", copy)
        assert "4 operations, validated" in said.stdout and "left out: 1 deallocate, 1 get_device, 1 without a state" in said.stdout, said.stdout
        assert "main_const_eval_0: 1 operations, cache miss" in said.stdout, said.stdout
        assert "ttnn.add allocated is unknown" in said.stderr and "'ttnn.mean' in line 41" in said.stderr, said.stderr
        for name in ("memory", "operations", "inputs_registry"):
            own, theirs = folder / f"synth_{name}.json", data / "synth_20260101_000000" / f"synth_{name}.json"
            assert own.read_bytes() == theirs.read_bytes(), f"{own.name} is not what the original writes"
        run(memprof, "profile", folder / "synth.memtrace", "-o", folder / "synth.json")
        profile = json.loads((folder / "synth.json").read_text())
        dram = next(space for space in profile["spaces"] if space["name"] == "dram")
        assert dram["cumulative_peak"] == 12 * in_bytes(750) and dram["cumulative_current"] == 12 * in_bytes(734)
        memory = {row["space"]: row for row in profile["facts"]["tt_memory"]}["dram"]
        assert memory["peak_before"] == "ttnn.deallocate" and memory["peak_fragmentation"] == 0, memory
        assert abs(memory["greatest_fragmentation"] - (1 - 900 / 1021.434)) < 1e-15 and memory["greatest_before"] == "ttnn.add", memory
    run(memprof, "show", folder / "synth.memtrace")
    run(memprof, "analyze", folder / "synth.memtrace")
    run(memprof, "report", folder / "synth.memtrace", "-o", folder / "page.html")


def imported(memprof, folder, text, expected=0):
    path, trace, out = folder / "made_profile.log", folder / "in.memtrace", folder / "in.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = run(memprof, "import", "auto", path, "-o", trace, expected=expected)
    run(memprof, "profile", trace, "-o", out)
    return json.loads(out.read_text()), done.stderr


def check_made(memprof, folder):
    for seed in range(5):
        log = made(seed)
        profile, said = imported(memprof, folder, "\n".join(log.lines) + "\n")
        expect(profile, log)
        assert [segment["name"] for segment in profile["segments"]] == ["BEFORE_LOG", "main", "main", "main"], profile["segments"]
        assert log.executed[-1][0] + " allocated is unknown" in said, said
        run(memprof, "tt-mlir", "analyze", folder / "made_profile.log")
        memory, operations = (json.loads((folder / f"made_{name}.json").read_text()) for name in ("memory", "operations"))
        kept = [each for each in log.executed if each[3]]
        assert memory["metadata"]["total_operations"] == len(kept) == len(memory["operations"]) == len(operations)
        for index, (name, loc, path, _, state) in enumerate(kept):
            left, right = memory["operations"][index], operations[index]
            assert left["index"] == right["index"] == index and left["mlir_op"] == right["mlir_op"] == name, (left, right)
            assert left["loc"] == right["loc"] == loc, (left["loc"], right["loc"], loc)
            graph = next((part for part in reversed(path.split("/")) if "const_eval" in part), None)
            assert left["const_eval_graph"] == right["const_eval_graph"] == graph and left["is_weight_op"] == (graph is not None)
            for kind in TYPES:
                assert left["memory"][kind]["totalBytesAllocatedPerBank_MB"] == log.states[state][kind] / 1000, (index, kind)
            if name in ("ttnn.add", "ttnn.matmul", "ttnn.to_layout"):
                assert right["attributes"] == "a = #ttnn<b {c = 1}>" and right["inputs"] == ["%arg0", "%x"], right
                assert right["input_shapes"][1] is None and right["input_dtypes"] == ["bf16", "f32"], right
                assert right["output_dtypes"] == ["bf16"] and right["output_shapes"] == right["input_shapes"][:1], right
        points = profile["facts"]["tt_fragmentation"]
        assert all(0 <= point["fragmentation"] < 0.34 for point in points) and any(point["fragmentation"] > 0.33 for point in points)

    # Ranks that write at once.
    logs = [made(10, "[1,0]<stdout>:"), made(11, "[1,1]<stdout>: ")]
    profile, said = imported(memprof, folder, "\n".join(["before all", *interleaved(logs, 1)]))
    for rank, log in enumerate(logs):
        expect(profile, log, f":{rank}")
    run(memprof, "tt-mlir", "analyze", folder / "made_profile.log")
    for rank, log in enumerate(logs):
        operations = json.loads((folder / f"made_rank{rank}_operations.json").read_text())
        assert [each["mlir_op"] for each in operations] == [each[0] for each in log.executed if each[3]]

    # The state after a program shows the last operation's effect.
    log = Log(3)
    log.state("Device memory state before submit")
    log.program("main", 10)
    log.state("Device memory state after submit")
    profile, said = imported(memprof, folder, "\n".join(log.lines))
    expect(profile, log)
    assert "not known" not in said, said
    # States of programs alone.
    log = Log(4)
    for step in range(3):
        log.state("Device memory state before submit")
        log.say("RuntimeTTNN", "DEBUG", "Starting execution of program: main")
        log.say("RuntimeTTNN", "DEBUG", "Finished execution of program: main")
        log.level["DRAM"] += 7
        log.state("Device memory state after submit")
    profile, said = imported(memprof, folder, "\n".join(log.lines))
    expect(profile, log)
    main = next(operation for operation in profile["operations"] if operation["path"] == "main")
    assert main["usage"][0]["allocated"] == 12 * in_bytes(21) and main["invocations"] == 3, main

    # A device that is full, told twice.
    log = made(5)
    failure = ("Out of Memory: Not enough space to allocate 33554432 B DRAM buffer across 12 banks, where each bank needs to store 2797568 B, but "
               "bank size is 1071821792 B (allocated: 1060371776 B, free: 11450016 B, largest free block: 2097152 B)")
    log.lines += ["2026-04-28 20:38:16.627 | critical |          Always | TT_THROW: " + failure, "RuntimeError: " + failure]
    profile, said = imported(memprof, folder, "\n".join(log.lines))
    dram = next(space for space in profile["spaces"] if space["name"] == "dram")
    assert len(dram["out_of_memory"]) == 1 and dram["out_of_memory"][0]["requested"] == 33554432, dram["out_of_memory"]
    assert dram["out_of_memory"][0]["device_free"] == 12 * 11450016, dram["out_of_memory"]
    row, = profile["facts"]["tt_out_of_memory"]
    assert row["largest_free_in_bank"] == 2097152 and abs(row["fragmentation"] - (1 - 2097152 / 11450016)) < 1e-15, row

    # Arguments of the module, over several lines, and weights by their shapes.
    log = Log(6)
    log.say("Always", "INFO", "MLIR Module shlo_compiler:")
    log.lines += ["func.func @main(%arg0: tensor<9x9xf32>) -> (tensor<1xf32>) {", "------ END OF MLIR MODULE ------"]
    log.say("Always", "INFO", "MLIR Module shlo_frontend:")
    log.lines += ["module @x attributes {a = 1} {", '  func.func @main(%arg0: tensor<1x768xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, '
                  'ttir.name = "w, (1)"} loc("p0"), %arg1: tensor<4x4xbf16, #m<1, 2>> {ttcore.argument_type = #ttcore.argument_type<constant>},',
                  "    %arg2: tensor<f32> {ttcore.argument_type = #ttcore.argument_type<input>}, %arg3: tensor<8xi64>) -> (tensor<1xf32>) {",
                  "------ END OF MLIR MODULE ------"]
    log.program("main", 60)
    profile, said = imported(memprof, folder, "\n".join(log.lines))
    run(memprof, "tt-mlir", "analyze", folder / "made_profile.log")
    registry = json.loads((folder / "made_inputs_registry.json").read_text())
    rows = [(each["ssa"], each["name"], each["type"], each["shape"], each["dtype"], each["bytes"]) for each in registry["entries"]]
    assert rows == [("%arg0", "w, (1)", "parameter", "1x768", "bf16", 1536), ("%arg1", "%arg1", "constant", "4x4", "bf16", 32),
                    ("%arg2", "%arg2", "input", None, "f32", 4), ("%arg3", "%arg3", "unknown", "8", "i64", 64)], rows
    assert registry["metadata"] == {"total_entries": 4, "total_weights": 2, "total_inputs": 1, "total_weight_bytes": 1568,
                                    "total_weight_MB": 1568 / 2**20}, registry["metadata"]
    assert [row["bytes"] for row in profile["facts"]["tt_inputs"]] == [1536, 32, 4, 64]
    loaded = None
    for each in json.loads((folder / "made_operations.json").read_text()):
        names = [weight["name"] for weight in each["weights"]]
        if each["mlir_op"] == "ttcore.load_cached":
            assert names == ["%arg1"] and each["is_weight_op"] and each["inputs"] == [each["inputs"][0], "[%arg0, %arg1]"], each
            loaded = each["inputs"][0][1:]
        elif each["const_eval_graph"]:
            assert each["const_eval_graph"] == loaded and names == ["%arg1"] and each["is_weight_op"], each
        else:
            assert names == (["w, (1)"] if "1x768" in each["input_shapes"] else []), each
            assert each["is_weight_op"] == bool(names), each


def check_large(memprof, folder):
    """Memory is what is live: a file four times as large takes as much."""
    peaks = []
    for steps in (4000, 16000):
        log = Log(1)
        log.program("main", 40)
        body = "\n".join(log.lines) + "\n"
        path = folder / "large_profile.log"
        with open(path, "w") as file:
            for _ in range(steps // 40):
                file.write(body)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        run(memprof, "import", "tt-mlir", path, "-o", folder / "large.memtrace")
        peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        assert before <= peaks[-1]
        size = path.stat().st_size
    # The trace itself is held: some tens of bytes an operation, of some thousand in the log.
    assert peaks[1] - peaks[0] < size / 1024 / 10, (peaks, size)
    # One endless line.
    with open(folder / "line.log", "wb") as file:
        file.write(b"RuntimeTTNN | Executing operation: " + b"x" * (1 << 20))
        for _ in range(200):
            file.write(b"x" * (1 << 20))
    done = run(memprof, "import", "tt-mlir", folder / "line.log", "-o", folder / "large.memtrace", expected=2)
    assert "line.log" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - peaks[1] < 20 << 10


def check_run(memprof, folder):
    log = made(2)
    (folder / "log.txt").write_text("\n".join(log.lines) + "\n")
    script = folder / "my_model.py"
    script.write_text("import os, signal, sys\nprint(sys.argv[1:], os.environ['TTMLIR_RUNTIME_LOGGER_LEVEL'], os.environ['TT_RUNTIME_MEMORY_LOG_LEVEL'])\n"
                      f"print(open({str(folder / 'log.txt')!r}).read())\nsys.stderr.write('to stderr\\n')\n"
                      "if 'die' in sys.argv: os.kill(os.getpid(), signal.SIGTERM)\nsys.exit(int(sys.argv[1]))\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TT")}
    for status, further in ((0, ["--batch_size", "3"]), (7, []), (128 + signal.SIGTERM, ["die"])):
        done = run(memprof, "tt-mlir", "run", script, status, *further, expected=status, cwd=folder, env=environment)
        assert f"{[str(status), *further]} DEBUG operation" in done.stdout and "to stderr" in done.stdout, done.stdout
        made_in = sorted((folder / "logs").glob("my_model_????????_??????"))[-1]
        names = {path.name for path in made_in.iterdir()}
        assert names == {"my_model_profile.log", "my_model_memory.json", "my_model_operations.json", "my_model_inputs_registry.json",
                         "my_model_report.html", "my_model.memtrace"}, names
    assert len(list((folder / "logs").iterdir())) == 3
    (made_in / "my_model_report.html").unlink()
    run(memprof, "tt-mlir", "visualize", str(made_in) + "/")
    assert (made_in / "my_model_report.html").exists()
    run(memprof, "tt-mlir", "log", "--output-dir", folder / "other", script, 5, expected=5, env=environment)
    (only,) = (folder / "other").iterdir()
    assert [path.name for path in only.iterdir()] == ["my_model_profile.log"]
    # What a process leaves behind does not keep the wrapper.
    left = folder / "left.sh"
    left.write_text("#!/bin/sh\nsleep 60 &\nexit 3\n")
    left.chmod(0o755)
    run(memprof, "tt-mlir", "log", "--output-dir", folder / "other", left, expected=3)
    for arguments, said in ((["run", "missing.py"], "cannot run 'missing.py'"), (["visualize", folder / "other"], "there is no"),
                            (["analyze", script], "expected memory states")):
        done = run(memprof, "tt-mlir", *arguments, expected=2, cwd=folder)
        assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def check_hostile(memprof, folder):
    choose = random.Random(4)
    log = made(1)
    whole = ("\n".join(log.lines) + "\n").encode()
    out = folder / "out.memtrace"

    def tried(content, form="tt-mlir"):
        path = folder / "bad_profile.log"
        path.write_bytes(content)
        done = subprocess.run([memprof, "import", form, str(path), "-o", str(out)], capture_output=True, text=True, errors="replace")
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        assert done.returncode == 0 or "bad_profile.log" in done.stderr, done.stderr
        return done

    view = b"Device DRAM memory state: MemoryView{numBanks: %s, totalBytesPerBank: %s MB, totalBytesAllocatedPerBank: 1.000 MB, " \
           b"totalBytesFreePerBank: 0.000 MB, largestContiguousBytesFreePerBank: 0.000 MB}\n"
    head = b"Device memory state before operation AddOp\n"
    for content, said in ((b"", "it is empty"), (b"\0" * 5000, "expected memory states"), (b"{}", "expected memory states"),
                          (head + view % (b"99999999", b"1.000"), "line 2: impossible numbers for DRAM"),
                          (head + view % (b"12", b"1" * 30 + b".0"), "line 2: impossible numbers for DRAM"),
                          (head + view % (b"twelve", b"1.000"), "line 2: expected MemoryView{"),
                          (b"RuntimeTTNN | DEBUG | Executing operation: %1 = \"ttnn.add\"(%0)\n", "TT_RUNTIME_MEMORY_LOG_LEVEL=operation")):
        done = tried(content)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, (content[:60], done)
    assert "cannot recognise" in tried(b"hello\n", "auto").stderr
    # What is there of a log that is cut off.
    at = whole.rindex(b"Device L1 memory state")
    done = tried(whole[:at + 60])
    assert done.returncode == 2 and "it ends within the memory state that begins in line" in done.stderr, done.stderr
    run(memprof, "show", out)
    # A program that ends without a word and begins again: the last one may have been cut off.
    body = b"\n".join(line for line in whole.split(b"\n") if b"Finished" not in line)
    done = tried(body)
    assert done.returncode == 2 and "it ends within the program" in done.stderr, done.stderr
    run(memprof, "show", out)
    assert tried(body + b"critical | Always | TT_THROW: no room\n").returncode == 0
    # Wherever a log ends early, its numbers are not exact, and those of a whole one are rounded.
    profile = lambda: json.loads((run(memprof, "profile", out, "-o", folder / "out.json"), (folder / "out.json").read_text())[1])
    assert tried(whole).returncode == 0
    assert profile()["exact"] and profile()["provenance"]["rounding"] == round(64 * 2**20 / 1000), profile()["provenance"]
    assert "rounded to about" in run(memprof, "show", out).stdout
    lines = whole.split(b"\n")
    ended = [index for index, line in enumerate(lines) if b"Finished" in line]
    for percent in range(20, 100, 8):
        at = len(lines) * percent // 100
        open_programs = sum(b"Starting" in line for line in lines[:at]) - sum(index < at for index in ended)
        done = tried(b"\n".join(lines[:at]) + b"\n")
        if open_programs > 0 and out.exists():
            assert done.returncode == 2 and not profile()["exact"], (percent, done)
    # A line that no device could have written costs itself, and is told with its place.
    place = next(index for index, line in enumerate(lines) if b"Device DRAM memory state" in line and index > len(lines) // 2)
    for old, new, fault in ((b"numBanks: 12", b"numBanks: 0", "it has bytes but no banks"), (b"numBanks: 12", b"numBanks: 13", "had 12 before"),
                            (b"AllocatedPerBank: ", b"AllocatedPerBank: 9", "more is allocated than the total"),
                            (b"AllocatedPerBank: ", b"AllocatedPerBank: -", "expected MemoryView{"),
                            (b"FreePerBank: ", b"FreePerBank: 1e300", "expected MemoryView{")):
        changed = lines[:place] + [lines[place].replace(old, new, 1)] + lines[place + 1:]
        done = tried(b"\n".join(changed))
        assert done.returncode == 2 and f"the first line {place + 1}: " in done.stderr and fault in done.stderr, (new, done)
        assert not profile()["exact"], new
    lines = whole.split(b"\n")
    for turn in range(150):
        if turn % 2:
            bad = bytearray(whole)
            for _ in range(choose.randrange(1, 30)):
                bad[choose.randrange(len(bad))] = choose.randrange(256)
        else:
            bad = list(lines)
            for _ in range(choose.randrange(1, 10)):
                at = choose.randrange(len(bad))
                bad[at:at + choose.randrange(3)] = choose.choice([[], [choose.choice(lines)], [bad[at][:choose.randrange(len(bad[at]) + 1)]]])
            bad = b"\n".join(bad)
        if tried(bytes(bad)).returncode == 0:
            run(memprof, "show", out)
    # Sizes without end.
    text = b""
    for number in range(4000):
        text += head + view.replace(b"1.000 MB, totalBytesFree", (b"16777216" if number % 2 else b"0") + b".000 MB, totalBytesFree") % (b"65536", b"16777216.000")
    done = tried(text)
    assert done.returncode == 2 and "more than 2^62 bytes" in done.stderr, done.stderr


def main():
    memprof, what = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](memprof, pathlib.Path(folder), *sys.argv[3:])


if __name__ == "__main__":
    main()
