#!/usr/bin/env python3
"""check_hostile.py MEMPROF WHAT: reads what is no recording, or one that is made to take memory and time.

WHAT is `memory` (8 MB files that would need hundreds of times as much if they were held), `many` (files of many small things, which must not
cost much each), `files` (devices, folders, pipes, empty
files, a gigabyte on one line), `formats` (one format's file under another's name) or `output` (where nothing can be written).
Each ends with one clear line and exit status 2, or 1 if only the output is at fault, within bounds of memory and time.
"""
import itertools
import json
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile

import check_trace_format

MB = 2**20
# Instrumented programs map terabytes and keep what was freed: their memory says nothing.
INSTRUMENTED = "-fsanitize" in os.environ.get("MEMPROF_CXX_FLAGS", "")


def run(memprof, *arguments, most_mb=None, **more):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # CPU time: on a busy machine the wall clock says nothing
        if most_mb and not INSTRUMENTED:
            resource.setrlimit(resource.RLIMIT_AS, (most_mb * MB, most_mb * MB))

    return subprocess.run([memprof, *map(str, arguments)], capture_output=True, text=True, errors="replace", preexec_fn=limit, **more)


def refused(done, name, *said):
    assert done.returncode == 2, (done.args, done.returncode, done.stderr[:500])
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 1000, done.stderr[:2000]
    assert name in done.stderr and any(text in done.stderr for text in said or [""]), (done.args, done.stderr, said)


def check_memory(memprof, folder):
    out = folder / "out.memtrace"
    count = 8 * MB
    many = lambda text: ",".join([text] * (count // (len(text) + 1)))
    keys = ",".join(f'"{number}":1' for number in range(count // 10))
    segments = lambda inside: '{"segments":[' + inside + '],"device_traces":[]}'
    event = lambda inside: '{"segments":[],"device_traces":[[{"action":"alloc","addr":1,"size":1,"frames":[' + inside + "]}]]}"
    node = lambda inside: '[{"counter":0,"node_type":"a",' + inside + "}]"
    texts = "no string or number ends within"
    for content, said in (("[" * count, "cannot recognise"), ('{"a":' * (count // 5), "nested too deep"), (segments(many("{}")), "segment 0: expected 'total_size'"),
                          (segments(many('{"address":1,"total_size":1}')), "segment 1: device 0 has another one at the same address, 1"),
                          (segments(many("null")), "segment 0: expected an object"), (segments(many("[]")), "segment 0: expected an object"),
                          (event(many("{}")), texts),
                          (segments('{"address":1,"total_size":1,"blocks":[' + many("{}") + "]}"), "block 0 of segment 0: expected 'size'"),
                          ('{"segments":"' + "a" * count + '"}', texts), ("{" + " " * count + '"segments":[]}', texts),
                          ('{"segments":[],"external_annotations":[' + many("{}") + "]}", texts),
                          ('{"segments":[],"allocator_settings":{' + keys + "}}", "more than 1024 entries"),
                          ('{"segments":[],"segments":[]}', "'segments': occurs twice"),
                          (node('"connections":[' + many("1") + "]"), "node 0: has more than 1048576 connections"),
                          (node('"arguments":[' + many("[]") + "]"), texts), (node('"x":' + "[" * count), "node 0: nested too deep"),
                          ('[{"counter":0,"node_type":"' + "a" * count + '"}]', texts)):
        path = folder / "hostile.json"
        path.write_text(content)
        refused(run(memprof, "import", "auto", path, "-o", out, most_mb=100), "hostile.json", said)
    # A pickle whose items are not added to their list.
    path = folder / "hostile.pickle"
    path.write_bytes(b"\x80\x04}(X\x0d\0\0\0device_traces](](" + b"}" * count + b"eeu.")
    refused(run(memprof, "import", "auto", path, "-o", out, most_mb=200), "hostile.pickle", "more than 1048576 values are not yet in a list")
    # One that numbers a value again and again, one that marks places, and lists that take 48 bytes for each of the file's.
    for content, said in ((b"N" + b"\x94" * count, "byte 4: memoizes an object twice"), (b"(" * count, "more than 1048576 values are not yet in a list"),
                          (b"}\x8c\x01x]" + (b"(" + b"]" * 1000 + b"e") * (count // 1000), "take more memory than")):
        path.write_bytes(b"\x80\x04" + content)
        refused(run(memprof, "import", "auto", path, "-o", out, most_mb=300), "hostile.pickle", said)
    path = folder / "hostile.json"
    # Large, and not refused: what is not needed is not kept.
    for content in ('{"x":{' + keys + '},"segments":[],"device_traces":[]}', node('"params":{' + keys + "}"),
                    '{"segments":[],"device_traces":[[' + many('{"action":"x"}') + "],[" + many('{"action":"x"}') + "]]}"):
        path.write_text(content)
        done = run(memprof, "import", "auto", path, "-o", out, most_mb=100)
        assert done.returncode == 0, (content[:80], done)
    # The same of profiles, which all other subcommands read.
    for content in ('{"format":"' + "a" * count, '{"format":"memprof-profile","version":8,"x":[' + many("[]") + "]}"):
        path.write_text(content)
        for subcommand in (("show",), ("analyze",)):
            refused(run(memprof, *subcommand, path, most_mb=100), "hostile.json", texts, "/version is 8")


def done_within(memprof, most_mb, *arguments):
    done = run(memprof, *arguments, most_mb=most_mb)
    assert done.returncode == 0 and not done.stderr, (arguments, done.returncode, done.stderr[:1000])


def check_many(memprof, folder):
    trace, packed, page, profile = (folder / name for name in ("in.memtrace", "packed.memtrace", "page.html", "profile.json"))

    def read_within(most_mb, most_mb_of_page):
        """Reads the trace and its packed form."""
        traces = [trace]
        packing = run(memprof, "trace", trace, "--pack", "-o", packed)
        if packing.returncode == 0:
            traces.append(packed)
        else:
            assert "zstd" in packing.stderr, packing.stderr
        for each in traces:
            done_within(memprof, most_mb, "profile", each, "-o", profile)
            done_within(memprof, most_mb, "show", each)
            done_within(memprof, most_mb_of_page, "report", each, "--force", "-o", page)

    # A thread for each allocation of an RMM log.
    threads = 100_000
    log = folder / "threads.csv"
    log.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + "".join(
        f"{number},00:{number // 10_000:02}:00.{number % 10_000:06},allocate,{number << 8:#x},64,0x0\n" for number in range(1, threads + 1)))
    done_within(memprof, 100, "import", "rmm", log, "-o", trace)
    read_within(200, 300)
    found, = json.loads(profile.read_text())["spaces"]
    assert found["allocation_count"] == threads, found["allocation_count"]

    # A thread for each operation.
    chunks = []
    for number in range(1, threads + 1):
        if number % 5000 == 1:
            chunks.append(check_trace_format.Chunk())
        if number == 1:
            chunks[-1].add(check_trace_format.capture({1: "1.0.0"})).add(check_trace_format.name(1, "f"))
            chunks[-1].add(check_trace_format.name(2, "cpu")).add(check_trace_format.space(0, 2, 0))
        chunks[-1].add(check_trace_format.ring(number)).at(number * 10).event(4, 1, label=1, space=255)
        chunks[-1].event(1, number * 64, 64, 0).event(5, 1, label=1, space=255)
    chunks[-1].add(check_trace_format.ring(0)).event(18, space=255)
    trace.write_bytes(check_trace_format.trace_file(chunks))
    read_within(200, 300)
    operation, = json.loads(profile.read_text())["operations"]
    assert operation["invocations"] == threads, operation["invocations"]

    # The recordings of a job's ranks: those of 300, 80 MB, take no more memory than those of one.
    ranks = folder / "ranks"
    ranks.mkdir()
    one = json.loads(profile.read_text())
    one["process"]["world_size"] = 300
    for number in range(300):
        one["process"]["rank"] = number
        (ranks / f"{number}.json").write_text(json.dumps(one))
    done_within(memprof, 60, "merge", ranks, "--json-out", folder / "merged.json")
    merged = json.loads((folder / "merged.json").read_text())
    assert merged["ranks"] == 300 and merged["missing_count"] == 0 and merged["standing_out"] == 0, merged

    # 10 MB of rows of facts, as short as they can be, in several forms.
    for columns, value, length in ((1, 0, 2), (4, "x" * 16, 18)):
        rows = 10 * MB // (columns * length)
        names = [f"column_{number}" for number in range(columns)]
        chunks = []
        for first in range(0, rows, rows // 40 + 1):
            part = [[value] * columns] * min(rows // 40 + 1, rows - first)
            chunks.append(check_trace_format.Chunk().add(check_trace_format.facts("many", names, part, first)))
        chunks[-1].add(check_trace_format.ring(1)).at(1).event(1, 64, 8, 0).add(check_trace_format.ring(0)).event(18, space=255)
        trace.write_bytes(check_trace_format.trace_file(chunks))
        done_within(memprof, 500, "profile", trace, "-o", profile)
        done_within(memprof, 900, "report", trace, "--force", "-o", page)
        found = json.loads(profile.read_text())
        assert len(found["facts"]["many"]) + found["anomalies"]["missing_fact_rows"] == rows, (rows, len(found["facts"]["many"]))
        assert found["exact"] == (found["anomalies"]["missing_fact_rows"] == 0)


def readers(folder):
    """Each subcommand that reads a recording."""
    for form in ("auto", "torch-snapshot", "rmm", "xplane", "tt-mlir", "ttnn-graph", "session"):
        yield ("import", form, "-o", folder / "out.memtrace")
    yield from (("show",), ("analyze",), ("plot", "-o", folder / "x.png"), ("report", "-o", folder / "x.html"), ("trace",),
                ("profile", "-o", folder / "x.json"), ("export", "--format", "csv", "-o", folder / "tables"))


def check_files(memprof, folder):
    line = folder / "line"
    with open(line, "wb") as file:
        file.truncate(4 << 30)  # zeros that take no room
    texts = {"empty": b"", "utf16": '{"segments": []}'.encode("utf-16"),
             "utf32": '{"segments": []}'.encode("utf-32"), "utf32be": b"\0\0\xfe\xff\0\0\0{", "nul": b"\0" * 1000, "lines": b"\r\n" * 1000, "word": b"word",
             "brackets": b"[" * 1000, "random": os.urandom(1000), "cr": b"a\r" * 1000}
    for name, content in texts.items():
        (folder / name).write_bytes(content)
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    for reader in readers(folder):
        for device in ("/dev/zero", "/dev/urandom"):
            refused(run(memprof, *reader, device, most_mb=400), device, "it is a device; expected a recording")
        refused(run(memprof, *reader, folder, most_mb=400), str(folder), "Is a directory")
        refused(run(memprof, *reader, line, most_mb=8192), "line")  # a profile of XLA is mapped as a whole
        for name in texts:
            refused(run(memprof, *reader, folder / name, most_mb=400), name)
        refused(run(memprof, *reader, folder / "utf16"), "utf16", "it is UTF-16; expected UTF-8")
        for name in ("utf32", "utf32be"):
            refused(run(memprof, *reader, folder / name), name, "it is UTF-32; expected UTF-8: convert it with iconv -f UTF-32")
        if reader[0] == "import":
            refused(run(memprof, *reader, folder / "empty"), "empty", "it is empty")
        # A pipe that ends early, and one that does not end.
        writer = subprocess.Popen(["sh", "-c", f"printf '{{\"segments\": [{{' > '{pipe}'"])
        refused(run(memprof, *reader, pipe), "pipe")
        writer.wait()
        with open("/dev/zero", "rb") as zero, subprocess.Popen(["cat"], stdin=zero, stdout=subprocess.PIPE) as endless:
            refused(run(memprof, *reader, "-", stdin=endless.stdout), "'-'", "it is neither text nor a known recording")
            endless.kill()


def samples():
    """A small file of each format that needs no other program to be made."""
    frames = [{"name": "f", "filename": "f.py", "line": 1}]
    event = {"action": "alloc", "addr": 512, "size": 100, "stream": 0, "time_us": 5, "frames": frames}
    block = {"address": 512, "size": 512, "requested_size": 100, "state": "active_allocated", "frames": frames}
    snapshot = {"segments": [{"device": 0, "address": 512, "total_size": 2 * MB, "stream": 0, "blocks": [block]}], "device_traces": [[event]],
                "allocator_settings": {"max_split_size": -1, "nested": {"a": [1, 0.5, None, True, "x"]}}}
    nodes = [{"counter": 0, "node_type": "capture_start", "params": {}, "connections": [1]},
             {"counter": 1, "node_type": "buffer_allocate", "params": {"type": "L1", "size": "64"}, "connections": [2]}]
    tensor = {"tensor_id": 512, "size_bytes": 100, "shape": [25], "dtype": "torch.float32", "requires_grad": True, "allocated_by": "f", "purpose": "weight"}
    session = {"metadata": {"generated_at": "2025-01-13T10:30:00", "num_snapshots": 1},
               "snapshots": [{"timestamp": "2025-01-13T10:29:45", "checkpoint_name": "a", "total_bytes": 512,
                              "device_breakdown": {"mps": {"total_bytes": 512, "count": 64, "tensors": [tensor]}}}],
               "operation_allocations": {"f": [{"memory_delta_mb": 1.000, "pre_total_mb": 64, "timestamp": "2025-01-13T10:29:44"}]},
               "operation_summary": {"f": {"invocation_count": 100, "total_memory_delta_mb": 1.5, "max_memory_delta_mb": 64}},
               "tensor_lifecycle": {"512": {"events": [{"event_type": "allocated"}]}},
               "pytorch_operations": [{"op_name": "aten::mm", "count": 64, "cpu_time_us": 100, "input_shapes": [[1, 2], [2, 1]]}],
               "operation_log": [{"operation_id": 1, "timestamp": "2025-01-13T10:29:46", "name": "Linear.0"}]}
    state = ("RuntimeTTNN | Executing operation: \"ttnn.add\"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc(\"a\")\n"
             "RuntimeTTNN | Device memory state before operation AnOp\n" +
             "".join(f"RuntimeTTNN | Device {kind} memory state: MemoryView{{numBanks: 2, totalBytesPerBank: 9.000 MB, totalBytesAllocatedPerBank: "
                     "1.000 MB, totalBytesFreePerBank: 8.000 MB, largestContiguousBytesFreePerBank: 8.000 MB}\n" for kind in ("DRAM", "L1", "L1 SMALL", "TRACE")))
    return {"torch-snapshot": [pickle.dumps(snapshot, 4), json.dumps(snapshot).encode()], "ttnn-graph": [json.dumps(nodes).encode()],
            "rmm": [b"Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x10,64,0x0\n"], "tt-mlir": [state.encode()],
            "session": [json.dumps(session).encode()]}


def check_formats(memprof, folder):
    out, path = folder / "out.memtrace", folder / "input"

    def imported(form, content, expected):
        path.write_bytes(content)
        out.unlink(missing_ok=True)
        done = run(memprof, "import", form, path, "-o", out)
        assert done.returncode in expected, (form, content[:60], done)
        assert done.returncode == 0 or "input" in done.stderr, done
        return done

    files = samples()
    for form, contents in files.items():
        for content in contents:
            imported(form, content, {0})
            whole = run(memprof, "show", out).stdout
            imported("auto", content, {0})
            assert run(memprof, "show", out).stdout == whole
            # Of texts, the ends of lines and a byte order mark change nothing.
            if b"\x80" not in content:
                imported("auto", b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"), {0})
                assert run(memprof, "show", out).stdout == whole
            # Another format's name.
            for other in files:
                if other != form:
                    refused(imported(other, content, {2}), "input")
            # Cut off anywhere.
            for cut in range(0, len(content), max(1, len(content) // 23)):
                done = imported(form, content[:cut], {0, 2})
                if out.exists():
                    assert run(memprof, "show", out).returncode in (0, 2)
            # Zeros, and numbers beyond all limits, at each of many places.
            for at in range(0, len(content), max(1, len(content) // 17)):
                imported(form, content[:at] + b"\0" + content[at + 1:], {0, 2})
            for number in (b"-1", b"1e999", b"9" * 30, b"18446744073709551615", b"1.5"):
                for old in (b"100", b"512", b"64", b"1.000", b"0x10"):
                    if old in content and content[:1] != b"\x80":
                        imported(form, content.replace(old, number, 1), {0, 2})
    # What needs no import says so, and so does a pickle that is too old.
    imported("auto", files["rmm"][0], {0})
    profile = folder / "input.json"
    assert run(memprof, "profile", out, "-o", profile).returncode == 0
    trace, profile = out.read_bytes(), profile.read_bytes()
    for form in ("auto", *files):
        assert "is already a memprof trace; use memprof show" in imported(form, trace, {2}).stderr
        assert "is already a memprof profile; use memprof show" in imported(form, profile, {2}).stderr
    for protocol in (0, 1):
        assert "expected 2 to 5: rewrite it" in imported("auto", pickle.dumps({"segments": [], "device_traces": []}, protocol), {2}).stderr
    # A failed allocation of which no more is known has no zeros for what is not.
    for form, content in (("rmm", files["rmm"][0] + b"1,00:00:00.000002,allocate failure,(nil),1024,0x0\n"),
                          ("torch-snapshot", b'{"segments": [], "device_traces": [[{"action": "oom", "size": 1024}]]}')):
        imported(form, content, {0})
        shown = run(memprof, "show", out, "--all").stdout + run(memprof, "show", out).stdout
        failure = next(line for line in shown.splitlines() if "out of memory" in line)
        assert "1.00 KiB" in failure and "free on the device" not in failure and "reserved" not in failure, failure
        assert "device_free" not in run(memprof, "trace", "--json", out).stdout
    # What follows another file is neither's.
    for (first, one), (second, two) in itertools.permutations(files.items(), 2):
        imported(first, one[-1] + two[-1], {0, 2})


def check_output(memprof, folder):
    log = folder / "log.csv"
    log.write_bytes(samples()["rmm"][0])
    trace = folder / "log.memtrace"
    assert run(memprof, "import", "rmm", log, "-o", trace).returncode == 0

    def fails(done, name):
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and name in done.stderr, done

    for out in ("/dev/full", folder / "absent" / "out", folder):
        fails(run(memprof, "import", "rmm", log, "-o", out), str(out))
    for form in ("collapsed", "speedscope", "pprof", "dhat", "massif", "heaptrack", "chrome", "perfetto", "torch-snapshot", "session"):
        for out in ("/dev/full", folder / "absent" / "out", folder):
            done = run(memprof, "export", trace, "--format", form, "-o", out)
            assert done.returncode == 1 and str(out) in done.stderr.splitlines()[-1], done
    for form in ("csv", "jsonl"):
        fails(run(memprof, "export", trace, "--format", form, "-o", log), str(log))  # a file where a folder should be
    # A trace is not packed onto itself.
    before = trace.read_bytes()
    done = run(memprof, "trace", trace, "--pack", "-o", trace)
    assert done.returncode == 2 and ("it is the input file" in done.stderr or "without zstd" in done.stderr), done
    assert trace.read_bytes() == before
    assert "Exit status: 0 on success; 1 if the output" in run(memprof, "import", "--help").stdout.replace("\n", " ")
    # What was there stays, if its owner has made it read-only.
    kept = folder / "kept"
    kept.write_bytes(b"")
    kept.chmod(0o444)
    if not os.access(kept, os.W_OK):
        fails(run(memprof, "export", trace, "--format", "pprof", "-o", kept), "kept")
        fails(run(memprof, "import", "rmm", log, "-o", kept), "kept")
        assert kept.read_bytes() == b""
    assert not list(folder.glob("*.tmp*")), list(folder.iterdir())


def main():
    memprof, what = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](memprof, pathlib.Path(folder))


if __name__ == "__main__":
    main()
