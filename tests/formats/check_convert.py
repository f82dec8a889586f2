#!/usr/bin/env python3
"""check_convert.py MEMPROF SAMPLE_TRACE WHAT: `memprof convert`, for every format that it reads and every one that it writes.

WHAT is `pairs` (each pair is, byte for byte, what the import and the export give with a trace in between), `refused` (what cannot be
converted: one line, and nothing is left), `outputs` (what an output may replace) or `given_back` (each format that is written, read again).
"""
import gzip
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import check_heaptrack
import check_hostile
import check_trace_format
import check_xplane

WRITERS = ("collapsed", "speedscope", "pprof", "dhat", "massif", "heaptrack", "chrome", "perfetto", "torch-snapshot", "session", "csv", "jsonl", "parquet",
           "profile", "trace", "packed-trace")
OF_A_PROFILE = ("collapsed", "speedscope", "pprof", "massif", "chrome", "perfetto", "session", "csv", "jsonl", "parquet", "profile")
OF_TABLES = ("csv", "jsonl", "parquet")
ENDINGS = {".collapsed": "collapsed", ".folded": "collapsed", ".speedscope.json": "speedscope", ".pb.gz": "pprof", ".pprof": "pprof", ".dhat": "dhat",
           ".massif": "massif", ".heaptrack": "heaptrack", ".trace.json": "chrome", ".pftrace": "perfetto", ".perfetto-trace": "perfetto", ".perfetto": "perfetto", ".pickle": "torch-snapshot",
           ".pkl": "torch-snapshot", ".json": "profile", ".memtrace": "trace"}


def run(*command, expected=0, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, **more)
    done.stderr = done.stderr.decode(errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stderr}"
    return done


def content(path):
    """Of a file, or of each file in a folder."""
    if path.is_dir():
        return {each.name: each.read_bytes() for each in path.iterdir()}
    return path.read_bytes()


def sources(memprof, writer, folder):
    """A small recording of each kind: its name, the format's name for `import`, and the file."""
    for form, contents in check_hostile.samples().items():
        for number, data in enumerate(contents):
            path = folder / f"{form}{number}"
            path.write_bytes(data)
            yield form, path
    path = folder / "heaptrack"
    path.write_bytes(check_heaptrack.made(1, events=300)[0])
    yield "heaptrack", path
    program = check_xplane.Program("jit_step")
    value = program.value(4096, "params['w']")
    program.allocation(value, parameter=True)
    program.live(program.value(1024, "jit(step)/add"))
    path = folder / "xplane"
    path.write_bytes(check_xplane.space_of(check_xplane.metadata_plane((1, "jit_step", program.encode()))))
    if "protozero" not in subprocess.run([memprof, "import", "xplane", path, "-o", os.devnull], capture_output=True, text=True).stderr:
        yield "xplane", path
    path = folder / "own.memtrace"
    run(writer, path, 3000, 1)
    yield None, path


def can_pack(memprof, trace, folder):
    done = subprocess.run([memprof, "trace", trace, "--pack", "-o", folder / "packed"], capture_output=True, text=True)
    assert done.returncode == 0 or "without zstd" in done.stderr, done.stderr
    return done.returncode == 0


def check_pairs(memprof, writer, folder):
    between, after, direct = folder / "between", folder / "after", folder / "direct"
    for each in (between, after, direct):
        each.mkdir()
    pairs = 0
    for form, source in sources(memprof, writer, folder):
        trace = source
        if form:
            trace = between / f"{source.name}.memtrace"
            run(memprof, "import", form, source, "-o", trace)
        for target in WRITERS:
            wanted, found = after / f"{source.name}.{target}", direct / f"{source.name}.{target}"
            options = ["--run", "one"] if target in (*OF_TABLES, "speedscope") else []
            if target == "packed-trace" or target == "trace" and not form:
                if not can_pack(memprof, trace, folder):
                    continue
                run(memprof, "trace", trace, "--pack" if target == "packed-trace" else "--unpack", "-o", wanted)
            elif target == "trace":
                wanted = trace
            elif target == "profile":
                run(memprof, "profile", trace, "-o", wanted)
            else:
                run(memprof, "export", trace, "--format", target, "-o", wanted, *options)
            said = run(memprof, "convert", source, "-o", found, "--format", target, *options).stderr
            assert content(found) == content(wanted), (source.name, target)
            assert all(line.startswith("memprof convert: ") for line in said.splitlines()), said
            pairs += 1
            if found.is_dir():
                continue
            # Through pipes it is the same.
            with open(source, "rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as pipe:
                assert run(memprof, "convert", "-", "-o", "-", "--format", target, *options, stdin=pipe.stdout).stdout == content(found), (source.name, target)
    assert pairs >= 7 * len(WRITERS) or not can_pack(memprof, folder / "own.memtrace", folder), pairs

    # A profile, as far as it goes; and by the endings of names.
    trace, profile = folder / "own.memtrace", folder / "own.json"
    run(memprof, "profile", trace, "-o", profile)
    for target in OF_A_PROFILE:
        wanted, found = after / f"own.json.{target}", direct / f"own.json.{target}"
        run(memprof, "profile" if target == "profile" else "export", profile, "-o", wanted, *([] if target == "profile" else ["--format", target]))
        run(memprof, "convert", profile, "-o", found, "--format", target)
        assert content(found) == content(wanted), target
    sorted_keys = folder / "sorted.json"
    document = json.loads(profile.read_text())
    first = document.pop("spaces")  # long enough that the format's name stands late
    sorted_keys.write_text(json.dumps({"spaces": first, **document}))
    assert sorted_keys.read_text().index("memprof-profile") > 4096
    run(memprof, "convert", sorted_keys, "-o", folder / "again.json")
    assert (folder / "again.json").read_bytes() == profile.read_bytes()
    for ending, target in ENDINGS.items():
        out = direct / ("named" + ending)
        options = ["--run", "own"] if target == "speedscope" else []
        run(memprof, "convert", trace, "-o", out, *options)
        run(memprof, "convert", trace, "-o", after / ("named" + ending), "--format", target, *options)
        assert content(out) == content(after / ("named" + ending)), ending
    facets = folder / "facets.json"
    run(memprof, "convert", folder / "heaptrack", "-o", facets, "--facets")
    run(memprof, "profile", between / "heaptrack.memtrace", "--facets", "-o", folder / "facets2.json")
    assert facets.read_bytes() == (folder / "facets2.json").read_bytes() and json.loads(facets.read_text())["spaces"][0]["facets"]

    # A recording whose trace is larger than what is kept in memory, without a file that is named: 40 operations begin and end with each allocation.
    large = folder / "large"
    deep = "".join(f"i {number:x} 1 2 3 {number:x}\nt {number:x} {number - 1:x}\n" for number in range(1, 41))
    large.write_bytes(b"v 10400 3\ns 1 a\ns 1 f\ns 1 f\n" + deep.encode() + b"a 8 28\n" + b"+ 0\n- 0\n" * 130_000 + b"# ips: 0\n")
    found = folder / "large.pb.gz"
    run(memprof, "convert", large, "-o", found, "--frames", "own")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert check_hostile.INSTRUMENTED or used < 100 << 10, f"{used >> 10} MiB"
    run(memprof, "import", "heaptrack", large, "-o", folder / "large.memtrace", "--frames", "own")
    assert (folder / "large.memtrace").stat().st_size > 80 << 20, "else it would fit into memory"
    run(memprof, "export", folder / "large.memtrace", "--format", "pprof", "-o", folder / "between.pb.gz")
    assert found.read_bytes() == (folder / "between.pb.gz").read_bytes()


def refused(memprof, folder, *arguments, said, status=2):
    before = {each: content(each) for each in folder.rglob("*") if each.is_file()}
    done = run(memprof, "convert", *arguments, expected=status)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("memprof convert: "), done.stderr
    for part in said:
        assert part in done.stderr, (part, done.stderr)
    assert not done.stdout
    assert {each: content(each) for each in folder.rglob("*") if each.is_file()} == before, arguments


def check_refused(memprof, writer, folder):
    trace, profile, text = folder / "run.memtrace", folder / "run.json", folder / "text.log"
    run(writer, trace, 3000, 1)
    run(memprof, "convert", trace, "-o", profile)
    text.write_text("step 1\n")
    out = folder / "out"
    refuse = lambda *arguments, **more: refused(memprof, folder, *arguments, **more)
    possible = "a profile becomes " + ", ".join(OF_A_PROFILE[:-1]) + " or profile"
    for target in WRITERS:
        if target not in OF_A_PROFILE:
            refuse(profile, "-o", out, "--format", target, said=["is a profile", f"{target} needs a trace, which has", possible])
    refuse(profile, "-o", out, "--format", "profile", "--facets", said=["--facets needs a trace"])
    refuse(trace, "-o", out, said=["--output: the name", "use --format", ".pb.gz (pprof)"])
    refuse(trace, "-o", folder / "out.pb.gz", "--of", "end", said=["--of: it applies to collapsed, but the format is pprof"])
    refuse(trace, "-o", out, "--format", "pprof", "--from", "rmm", said=["is already a memprof trace"])
    refuse(text, "-o", folder / "out.json", said=["cannot recognise", "expected a memprof trace or profile, a PyTorch memory snapshot"])
    refuse(folder / "absent", "-o", folder / "out.json", said=["cannot read", "No such file"])
    for target in OF_TABLES:
        refuse(trace, "-o", "-", "--format", target, said=[f"{target} is a folder of tables; name a folder"])
    rmm = folder / "log.csv"
    rmm.write_bytes(check_hostile.samples()["rmm"][0])
    refuse(rmm, "-o", out, "--format", "pprof", "--frames", "all", said=["--frames applies to heaptrack and torch-snapshot"])

    # The output is never the input, whatever it is called.
    os.link(trace, folder / "link.memtrace")
    for name in (trace, folder / "." / "run.memtrace", folder / "link.memtrace"):
        refuse(trace, "-o", name, "--format", "trace", said=["it is the input file"])
    with open(trace, "rb") as file:
        done = run(memprof, "convert", "-", "-o", trace, "--format", "trace", stdin=file, expected=2)
        assert "it is the input file" in done.stderr, done.stderr

    # What is damaged gives the part before that and status 2; where there is none, nothing.
    cut = folder / "cut.csv"
    cut.write_bytes(rmm.read_bytes() + b"1,00:00:00.000002,allo")
    damaged = folder / "damaged.memtrace"
    whole = trace.read_bytes()
    damaged.write_bytes(whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1:])
    for target in WRITERS:
        done = run(memprof, "convert", cut, "-o", out, "--format", target, expected=2)
        assert f"everything before that is in '{out}'" in done.stderr.splitlines()[-1], (target, done.stderr)
        assert out.exists()
        run("rm", "-r", out)
        refuse(damaged, "-o", out, "--format", target, said=["damaged.memtrace", "is damaged after 0 of"])
        refuse(text, "-o", out, "--format", target, said=["cannot recognise"])
        assert not out.exists(), target
    done = run(memprof, "convert", cut, "-o", "-", "--format", "profile", expected=2)
    assert "everything before that is in the standard output" in done.stderr and json.loads(done.stdout)["exact"] is False

    # An output that cannot be written is status 1, and leaves nothing either.
    for target in WRITERS:
        if target in OF_TABLES:
            refuse(trace, "-o", text, "--format", target, said=["cannot create the folder"], status=1)
            limited = "ulimit -f 4; trap '' XFSZ; exec \"$@\""
            for shell in (limited, "ulimit -f 4; exec \"$@\""):  # whether the signal SIGXFSZ is ignored or not
                done = run("sh", "-c", shell, "sh", memprof, "convert", trace, "-o", out, "--format", target, expected=1)
                assert not out.exists() and "File too large (for RLIMIT_FSIZE: ulimit -f)" in done.stderr, done.stderr
            continue
        for place in ("/dev/full", folder / "absent" / "out", folder):
            done = run(memprof, "convert", trace, "-o", place, "--format", target, expected=1)
            assert str(place) in done.stderr.splitlines()[-1], done.stderr
        with open("/dev/full", "wb") as full:
            done = subprocess.run([memprof, "convert", trace, "-o", "-", "--format", target], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and "cannot write to the standard output" in done.stderr, (target, done)
    assert not list(folder.glob("*.tmp*")), list(folder.iterdir())


def check_outputs(memprof, writer, folder):
    """An existing file is replaced if it is empty or of the kind that is written. Status 2, and nothing has changed, if not."""
    trace, other = folder / "run.memtrace", folder / "other.memtrace"
    run(writer, trace, 300, 1)
    run(writer, other, 500, 2)
    kinds = {}
    for target in WRITERS:
        out = folder / f"out.{target}"
        out.parent.mkdir(exist_ok=True)
        run(memprof, "convert", trace, "-o", out, "--format", target)
        run(memprof, "convert", other, "-o", out, "--format", target)  # of its own kind
        if out.is_file():
            kinds[target] = out.read_bytes()
    foreign = {"a snapshot of PyTorch": check_hostile.samples()["torch-snapshot"][0], "an RMM log": check_hostile.samples()["rmm"][0],
               "a program": b"int main() {}\n", "JSON": b'{"a": 1}\n', "a picture": b"\x89PNG\r\n\x1a\n", "text": b"precious\n",
               "a recording of heaptrack": check_heaptrack.made(1, events=20)[0],
               "gzip": gzip.compress(b"precious" * 100)}
    same = {frozenset(("trace", "packed-trace"))}

    def try_all(command, own, status_of_own=0):
        out = folder / "out"
        for name, data in {**kinds, **foreign}.items():
            out.write_bytes(data)
            is_own = name == own or frozenset((name, own)) in same
            done = run(*command, out, expected=status_of_own if is_own else 2)
            if not is_own:
                assert "it exists and is not" in done.stderr and done.stderr.count("\n") == 1, done.stderr
                assert out.read_bytes() == data, (command, name)
        out.write_bytes(b"")
        run(*command, out)

    for target in kinds:
        try_all((memprof, "convert", trace, "--format", target, "-o"), target)
    # The other spellings, and whatever else writes a profile, a trace or an answer.
    try_all((memprof, "profile", trace, "-o"), "profile")
    try_all((memprof, "export", trace, "--format", "massif", "-o"), "massif")
    rmm = folder / "log.csv"
    rmm.write_bytes(check_hostile.samples()["rmm"][0])
    try_all((memprof, "import", "rmm", rmm, "-o"), "trace")
    if can_pack(memprof, trace, folder):
        try_all((memprof, "trace", trace, "--pack", "-o"), "packed-trace")
    small = ("--d-model", "8", "--layers", "1", "--n-heads", "1", "--seq-len", "4", "--batch-size", "1")
    for option, own in (("--profile-out", "profile"), ("--trace-out", "trace")):
        try_all((memprof, "estimate", *small, "--step", option), own)
    for command, option in ((("estimate", *small), "--json-out"), (("fit", *small, "--device", "1GB"), "--json-out")):
        out = folder / "answer.json"
        out.unlink(missing_ok=True)
        run(memprof, *command, option, out)
        kinds["answer"] = out.read_bytes()
        try_all((memprof, *command, option), "answer")
    # Tables: each file in their folder.
    tables = folder / "tables"
    tables.mkdir()
    (tables / "blocks.csv").write_text("precious\n")
    done = run(memprof, "convert", trace, "-o", tables, "--format", "csv", expected=2)
    assert "blocks.csv': it exists and is not" in done.stderr and [each.name for each in tables.iterdir()] == ["blocks.csv"], done.stderr


def check_given_back(memprof, writer, folder):
    """What memprof writes is read, or refused with what it is, what it lacks and what to give instead."""
    trace = folder / "run.memtrace"
    run(writer, trace, 3000, 1)
    run(memprof, "convert", trace, "-o", folder / "run.json")
    exports = {"collapsed": "flame graphs", "speedscope": "speedscope", "pprof": "pprof", "dhat": "dh_view", "massif": "massif", "chrome": "Chrome", "perfetto": "Perfetto",
               "csv": "a table of a run", "jsonl": "a table of a run", "parquet": "a table of a run"}
    # Those of other programs are of no more use.
    others = {"DHAT, valgrind": (b'{"dhatFileVersion":2,"mode":"heap"}', "dh_view"), "massif, valgrind": (b"desc: --tool=massif\ncmd: ls\n", "massif"),
              "Kineto": (b'{\n  "schemaVersion": 1,\n  "deviceProperties": [],\n  "traceEvents": []}\n', "Chrome")}

    def refuse(path, what, commands):
        for command in commands:
            done = run(memprof, *command, path, expected=2)
            assert not done.stdout and done.stderr.count("\n") == 1, done.stderr
            for part in (f"cannot read '{path}': it is ", what, "an export", "which lacks ", "give the recording "):
                assert part in done.stderr, (part, done.stderr)

    out = folder / "out.json"
    asking = (("convert", "-o", out), ("show",), ("analyze",), ("leaks",), ("report", "-o", folder / "out.html"), ("import", "torch-snapshot", "-o", out), ("check", "--grow-at-most", "0"))
    for target in WRITERS:
        path = folder / f"again.{target}"
        run(memprof, "convert", trace, "-o", path, "--format", target)
        if target not in exports:
            run(memprof, "convert", path, "-o", out, "--format", "profile")
            continue
        for file in sorted(path.iterdir()) if path.is_dir() else (path,):
            if file.stat().st_size == 0:  # JSON lines of no labels
                continue
            refuse(file, exports[target], asking)
        if path.is_dir():
            refuse(path, "a folder of tables", (("convert", "-o", out), ("show",)))
        else:  # and through a pipe
            with open(path, "rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as pipe:
                assert exports[target] in run(memprof, "show", "-", expected=2, stdin=pipe.stdout).stderr
    stored = folder / "stored.pb.gz"  # as Python writes it
    stored.write_bytes(gzip.compress(gzip.decompress((folder / "again.pprof").read_bytes()), 0))
    refuse(stored, "pprof", asking)
    for name, (data, what) in others.items():
        path = folder / name
        path.write_bytes(data)
        refuse(path, what, asking)
    # Numbers at the ends of lines are no stacks.
    log = folder / "log"
    log.write_text("step 1\nloss; 2\n")
    assert "cannot recognise" in run(memprof, "convert", log, "-o", out, expected=2).stderr


def main():
    memprof, writer, what = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        globals()["check_" + what](memprof, writer, pathlib.Path(folder))


if __name__ == "__main__":
    main()
