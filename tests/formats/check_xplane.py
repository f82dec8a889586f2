#!/usr/bin/env python3
"""check_xplane.py MEMPROF WHAT [DATA]: profiles of XLA, imported and analyzed.

WHAT is `samples` (real profiles in the folder DATA, with what a reference implementation of xprof's memory viewer finds in them, and
xprof itself where Python has it), `made` (profiles made here), `random` (programs made here, against xprof), `cut` (those of DATA at every
hundredth of their length) or `large`.
Exit status 4: skipped, with the reason.
"""
import importlib.metadata
import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

MIB = 2**20


def run(*command, expected=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", **options)
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


# --- Protocol Buffers -------------------------------------------------------------------------------------------------


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def message(*fields):
    """Of pairs: a number is a varint, text and bytes have a length, a list of numbers is packed."""
    out = bytearray()
    for field, value in fields:
        if isinstance(value, (bool, int)):
            out += varint(field << 3) + varint(int(value))
        else:
            data = value.encode() if isinstance(value, str) else b"".join(map(varint, value)) if isinstance(value, list) else value
            out += varint(field << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def shape(dimensions, kind=2):
    layout = message((1, list(reversed(range(len(dimensions))))))
    return message((2, kind), (3, dimensions), (5, layout))


class Program:
    """An HloProto. Bytes are s8 vectors; each value has its own instruction."""

    def __init__(self, name):
        self.name, self.instructions, self.buffers, self.allocations, self.events, self.traces = name, [], [], [], [], []

    def value(self, size, op_name="", space=0, padding=0):
        number = len(self.buffers) + 1
        metadata = message((2, op_name), (3, "train.py"), (4, 10 + number)) if op_name else b""
        self.instructions.append(
            message((1, f"value.{number}"), (2, "fusion"), (3, shape([size - padding])), (7, metadata), (35, number << 32)))
        self.buffers.append(message((1, number), (2, size), (3, message((4, number << 32))), (4, space)))
        return number, size

    def allocation(self, *values, size=None, space=0, **flags):
        names = {"parameter": 5, "output": 7, "constant": 12, "thread": 3}
        assigned = [(9, message((1, number), (2, 0), (3, bytes_))) for number, bytes_ in values]
        total = sum(bytes_ for _, bytes_ in values) if size is None else size
        set_flags = [(names[flag], True) for flag in flags]
        self.allocations.append(message((1, len(self.allocations)), (2, total), (8, space), *set_flags, *assigned))

    def live(self, *values):
        """Allocates all, then frees all."""
        for kind in (0, 1):
            self.events += [message((1, kind), (2, number), (4, f"value.{number}")) for number, _ in values]

    def encode(self):
        module = message((1, self.name), (2, "main"), (3, message((1, "main"), *[(2, each) for each in self.instructions])))
        assignment = message(*[(1, each) for each in self.buffers], *[(3, each) for each in self.allocations],
                             *[(4, message(*[(1, each) for each in trace])) for trace in [self.events, *self.traces] if trace])
        return message((1, module), (3, assignment))


def metadata_plane(*programs, stat_name="Hlo Proto", ids_are_names=False):
    """Programs as pairs of an id and an HloProto; the names of statistics come last, where no reader expects them."""
    entries = []
    for index, (number, name, proto) in enumerate(programs):
        key = index + 1 if ids_are_names else number
        value = message((1, key), (2, f"{name}({number})"), (5, message((1, 7), (6, proto))))
        entries.append((4, message((1, key), (2, value))))
    return message((2, "/host:metadata"), *entries, (5, message((1, 7), (2, message((1, 7), (2, stat_name))))))


def tpu_plane(number, *runs):
    """Names of programs, in order of their runs."""
    names = sorted(set(runs))
    line = message((2, "XLA Modules"), *[(4, message((1, names.index(run) + 1), (3, 5))) for run in runs])
    entries = [(4, message((1, index + 1), (2, message((1, index + 1), (2, name))))) for index, name in enumerate(names)]
    return message((1, number), (2, f"/device:TPU:{number}"), (3, line), *entries)


def space_of(*planes):
    return message(*[(1, plane) for plane in planes], (4, "host-1"))


# --- what is checked --------------------------------------------------------------------------------------------------


class Checker:
    def __init__(self, memprof, folder):
        self.memprof, self.folder = memprof, pathlib.Path(folder)

    def profile(self, source, *options, expected=0, form="auto"):
        trace, out = self.folder / "in.memtrace", self.folder / "in.json"
        trace.unlink(missing_ok=True)
        self.said = run(self.memprof, "import", form, source, *options, "-o", trace, expected=expected).stderr
        run(self.memprof, "profile", trace, "-o", out)
        return json.loads(out.read_text())

    def write(self, data, name="made.xplane.pb"):
        path = self.folder / name
        path.write_bytes(data)
        return path


def facts(profile, name):
    return profile["facts"][name]


def bytes_of(mib):
    exact = float(mib) * MIB
    assert exact == int(exact), mib
    return int(exact)


def compare(profile, module, expected, space="device"):
    """One program of a profile with the JSON of xprof's memory viewer, to the byte."""
    found = next(each for each in facts(profile, "xla_programs") if each["program"] == module and each["space"] == space)
    assert found["peak"] == bytes_of(expected.get("peakHeapMib", 0)), (module, found, expected["peakHeapMib"])
    assert found["unpadded_peak"] == bytes_of(expected.get("peakUnpaddedHeapMib", 0)), module
    assert found["parameters"] == bytes_of(expected.get("entryComputationParametersMib", 0)), module
    assert found["outputs"] == bytes_of(expected.get("maybeLiveOutMib", 0)), module
    assert found["all_allocations"] == bytes_of(expected.get("totalBufferAllocationMib", 0)), module
    # xprof says how much memory of threads there is only together with tuples.
    assert found["thread_local"] <= bytes_of(expected.get("nonReusableMib", 0)), module
    # The ledger, which knows nothing of XLA, comes to the same peak from the events alone.
    names = [segment["name"] for segment in profile["segments"]]
    spaces = {each["name"]: each for each in profile["spaces"]}
    assert spaces[space]["segments"][names.index(module)]["segment_peak"] == found["peak"], module
    assert spaces[space]["reserved"]["segments"][names.index(module)]["peak"] == found["all_allocations"], module
    ours = [(row["bytes"], row["unpadded_bytes"], row["instruction"], row["op_name"], row["shape"], row["group"], row["opcode"])
            for row in facts(profile, "xla_live_at_peak")
            if row["program"] == module and row["space"] == space and row["bytes"] >= 16384
            # In other spaces xprof does not list what is there from begin to end.
            and (space == "device" or row["group"] == "Temporary")]
    theirs = [(bytes_of(row["logicalBufferSizeMib"]), bytes_of(row.get("unpaddedShapeMib", 0)), row["instructionName"],
               row.get("tfOpName", ""), row["shapeString"], row["groupName"], row["opCode"])
              for row in expected.get("maxHeapBySize", []) if int(row.get("logicalBufferId", 0)) != -1]
    assert sorted(ours) == sorted(theirs), (module, ours, theirs)
    sources = {(row["instruction"], row["source"]) for row in facts(profile, "xla_live_at_peak")}
    for row in expected.get("maxHeapBySize", []):
        if "sourceInfo" in row:
            source = f"{row['sourceInfo']['fileName']}:{row['sourceInfo']['lineNumber']}"
            assert (row["instructionName"], source) in sources, row


def from_xprof(sample, space=0):
    """Results of xprof's memory viewer by module, if Python has one that leaves the memory of threads out of all sums."""
    try:
        if tuple(map(int, importlib.metadata.version("xprof").split(".")[:2])) < (2, 24):
            return None
        from xprof.convert import _pywrap_profiler_plugin as plugin
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(sample, folder)
        plugin.xspace_to_tools_data([copy], "tool_names", {"use_saved_result": True})
        found = {}
        for proto in pathlib.Path(folder).glob("*.hlo_proto.pb"):
            module = proto.name.removesuffix(".hlo_proto.pb")
            options = {"module_name": module, "memory_space": str(space), "view_memory_allocation_timeline": False}
            raw, is_good = plugin.xspace_to_tools_data([copy], "memory_viewer", options)
            assert is_good, (module, raw)
            found[module] = json.loads(raw)
        return found


def check_samples(check, data):
    samples = sorted(data.glob("tracelens*.xplane.pb"))
    if not samples:
        print(f"skipped: no samples in {data}")
        return 4
    for sample in samples:
        profile = check.profile(sample)
        assert profile["exact"] and not check.said, check.said
        assert profile["provenance"]["planned"], profile["provenance"]
        name = sample.name.removesuffix(".xplane.pb")
        goldens = list((data / "golden").glob(f"{name}.*.color0.json"))
        for golden in goldens:
            compare(profile, golden.name.removesuffix(".color0.json").removeprefix(name + "."), json.loads(golden.read_text()))
        theirs = from_xprof(sample)
        for module, expected in (theirs or {}).items():
            compare(profile, module, expected)
        print(f"{name}: {len(goldens)} expected results and {'no xprof 2.24' if theirs is None else f'{len(theirs)} of xprof'}")
    for proto in (data / "hlo_proto").glob("*.hlo_proto.pb"):
        whole = check.profile(proto)
        assert facts(whole, "xla_programs")[0]["program"] == proto.name.removesuffix(".hlo_proto.pb")
        alone = check.profile(samples[-1], "--module", proto.name.removesuffix(".hlo_proto.pb"))
        assert facts(whole, "xla_live_at_peak") == facts(alone, "xla_live_at_peak")
    corrupt = data / "corrupt_tpu_inference_2.xplane.pb"
    said = run(check.memprof, "import", "auto", corrupt, "-o", check.folder / "no.memtrace", expected=2).stderr
    assert "byte 27, in XPlane" in said, said
    return 0


def check_cut(check, data):
    samples = sorted(data.glob("tracelens*.xplane.pb"))
    if not samples:
        print(f"skipped: no samples in {data}")
        return 4
    for sample in samples:
        whole = sample.read_bytes()
        programs = facts(check.profile(sample), "xla_programs")
        seen = 0
        for percent in range(1, 100):
            size = len(whole) * percent // 100
            cut = check.write(whole[:size], "cut.xplane.pb")
            trace = check.folder / "cut.memtrace"
            trace.unlink(missing_ok=True)
            done = subprocess.run([check.memprof, "import", "auto", cut, "-o", trace], capture_output=True, text=True)
            assert done.returncode == 2 and f"cut off after {size} bytes" in done.stderr, (percent, done)
            if not trace.exists():
                assert seen == 0, percent
                continue
            profile = check.profile(cut, expected=2)
            assert not profile["exact"], percent
            found = facts(profile, "xla_programs")
            assert found == programs[:len(found)] and len(found) >= seen, percent
            seen = len(found)
        assert seen > 0
    return 0


def gemma():
    """The published numbers of a run of Gemma 3 in JAX, as one program."""
    program = Program("jit_run_scan")
    cache = 2_893_021_184 // 2
    parameters = [program.value(874_698_752, "params['layers']['w']"), program.value(cache, "init_carry[2]"),
                  program.value(cache, "init_carry[3]"), program.value(2_098_176, "init_carry[5]"), program.value(12_800, "xs")]
    for each in parameters:
        program.allocation(each, parameter=True)
    program.allocation(program.value(2_895_119_360, "jit(run_scan)/while"), output=True)
    temporary = [program.value(4_058_439_680, "jit(run_scan)/while/body/dot", padding=1000), program.value(39_936, "")]
    temporary[1] = program.value(39_936 - 30_000), program.value(30_000 - 16_000), program.value(16_000)
    values = [temporary[0], *temporary[1]]
    program.allocation(*values)
    program.live(*values)
    return program


def check_made(check, _):
    def table(*arguments, expected=0):
        done = run(check.memprof, "xplane", *arguments, expected=expected)
        return done.stdout, done.stderr

    # Two workers, the second with a program of its own: each is told by its own metadata.
    folder = check.folder / "workers"
    folder.mkdir()
    small = Program("jit_run_scan")
    small.allocation(small.value(2**30, "init_carry[2]"), parameter=True)
    value = small.value(2**30, "jit(run_scan)/transpose(jvp())/grad/mul")
    small.allocation(value)
    small.live(value)
    key, other = 4925098873813018656, 2**64 - 5
    ran = f"jit_run_scan({other})"
    first = space_of(metadata_plane((key, "jit_run_scan", gemma().encode())), tpu_plane(0, f"jit_run_scan({key})"))
    second = space_of(tpu_plane(0, ran, ran, "jit_f(1)"), tpu_plane(1, ran),
                      metadata_plane((1, "jit_run_scan", gemma().encode()), (other, "jit_run_scan", small.encode()),
                                     stat_name="HLO Proto", ids_are_names=True))
    (folder / "run-w-0.xplane.pb").write_bytes(first)
    (folder / "run-w-1.xplane.pb").write_bytes(second)
    (folder / "run-w-2.xplane.pb").write_bytes(space_of(tpu_plane(0)))
    out, said = table(folder, "--module", "jit_run_scan(", "--tsv")
    assert "run-w-2.xplane.pb' has no program 'jit_run_scan('" in said and "2 programs" in said and ran in said, said
    assert "warning" not in said, said
    gib = 2**30
    rows = [("run-w-0", 10_723_442_688, 3_769_830_912, 2_893_021_184, 874_698_752, 4_058_439_680, 2_895_119_360, 0),
            ("run-w-1", 2 * gib, gib, gib, 0, gib, 0, 1)]
    expected = ["workers analyzed: 2", "",
                "host\tpeak_GiB\tentry_params_GiB\tkv_cache_GiB\tmodel_params_GiB\ttemporary_GiB\toutput_GiB\tgradient_hits"]
    expected += ["\t".join([row[0]] + [f"{value / gib:.3f}" for value in row[1:-1]] + [str(row[-1])]) for row in rows]
    expected += ["", "Aggregate min/avg/max (GiB):"]
    for index, name in enumerate(("peak", "entry_params", "kv_cache", "model_params", "group_temporary", "group_output"), 1):
        values = [row[index] / gib for row in rows]
        expected.append(f"{name}_mib: {min(values):.3f}/{sum(values) / 2:.3f}/{max(values):.3f}")
    expected.append("gradient_marker_hits: 0 / 1")
    assert out.splitlines() == expected, out
    text, _ = table(folder, "--module", "jit_run_scan")
    assert "average" in text and "train.py:12" in text and "init_carry[2]" in text, text
    listed, _ = table(folder, "--tsv")
    assert f"{ran}\t1\t3\t{2 * gib}\t{gib}" in listed, listed
    out, said = table(folder, "--module", "jit_other", expected=2)
    assert "no profile has a program 'jit_other'" in said, said

    # Classes of one's own.
    rules = check.write(b"""gradients = 'while/body'
[[class]]
name = "cache"
op_name = '^init_carry'
category = "kv_cache"
[[class]]
name = "temporary"
group = "Temporary"
""", "classes.toml")
    done = subprocess.run([check.memprof, "xplane", folder, "--module", "jit_run_scan", "--tsv", "--classes", rules],
                          capture_output=True, text=True)
    if "built without toml++" in done.stderr:
        print("rules of one's own: skipped, this memprof has no toml++")
    else:
        assert done.stdout.splitlines()[2].split("\t")[3:5] == ["cache_GiB", "temporary_GiB"], done.stdout
        assert done.stdout.splitlines()[3].split("\t")[3:] == ["2.696", "3.780", "3.780", "2.696", "1"], done.stdout
        for text, fault in ((b"class = 3", "line 1: write each class"), (b"[[class]]\nname = 'x'\nop_name = '('", "line 3: '(' is no"),
                            (b"[[class]]\nop_name = 'x'", "has no name"), (b"x = ", "line 1"), (b"[[class]]\nhat = 1", "unknown key 'hat'"),
                            (b"[[class]]\nname = 'x'\ngroup = 'hats'", "line 3: unknown group"), (b"hats = 1", "unknown key 'hats'")):
            bad = check.write(text, "bad.toml")
            said = run(check.memprof, "xplane", folder, "--module", "jit_run_scan", "--classes", bad, expected=2).stderr
            assert fault in said, said
    profile = check.profile(folder / "run-w-1.xplane.pb", "--module", ran)
    assert [each["name"] for each in profile["segments"]] == [ran]
    assert facts(profile, "xla_programs")[0]["space"] == "hbm" and facts(profile, "xla_programs")[0]["runs"] == 3
    assert profile["process"]["host"] == "host-1"

    # Every memory space, with blocks of more than 4 GiB.
    spaces = Program("jit_spaces")
    for space, size in ((0, 5 * gib), (1, 3 * MIB), (5, 7 * gib)):
        spaces.allocation(spaces.value(size // 2, "params['a']", space), space=space, parameter=True, size=size // 2)
        value = spaces.value(size - size // 2, "jit(f)/dot", space)
        spaces.allocation(value, space=space)
    spaces.events = [message((1, 0), (2, 2))]
    path = check.write(space_of(tpu_plane(0), metadata_plane((3, "jit_spaces", spaces.encode()))))
    profile = check.profile(path)
    found = {each["space"]: each["peak"] for each in facts(profile, "xla_programs")}
    assert found == {"hbm": 5 * gib, "vmem": 3 * MIB // 2, "host": 7 * gib // 2}, found
    assert {each["name"] for each in profile["spaces"]} >= {"hbm", "vmem", "host"}

    # Blocks that are there from begin to end are listed in every space, with their classes.
    out, said = table(path, "--module", "jit_spaces", "--space", "5")
    assert not said and out.count("params['a']") == 1 and "3584.00  3584.00  model_params" in out, (out, said)
    out, said = table(path, "--module", "jit_spaces", "--space", "5", "--tsv")
    assert not said and out.splitlines()[3].split("\t")[1:] == ["3.500", "3.500", "0.000", "3.500", "0.000", "0.000", "0"], (out, said)

    # Memory of threads has a column, and a value in the facts; it is in no other.
    threads = Program("jit_threads")
    threads.allocation(threads.value(3 * MIB, "params['a']"), parameter=True)
    threads.allocation(threads.value(1536, "jit(f)/reduce_sum"), thread=True)
    value = threads.value(MIB, "jit(f)/dot")
    threads.allocation(value)
    threads.live(value)
    threaded = check.write(space_of(metadata_plane((1, "jit_threads", threads.encode()))), "threads.xplane.pb")
    profile = check.profile(threaded)
    found = facts(profile, "xla_programs")[0]
    assert (found["peak"], found["all_allocations"], found["thread_local"]) == (4 * MIB, 4 * MIB, 1536), found
    assert [row["group"] for row in facts(profile, "xla_live_at_peak")] == ["Parameter", "Temporary"], profile["facts"]
    space = next(each for each in profile["spaces"] if each["name"] == "device")
    assert space["segments"][0]["segment_peak"] == 4 * MIB, space
    listed, said = table(threaded, "--tsv")
    head, row = [line.split("\t") for line in listed.splitlines()]
    assert dict(zip(head, row))["thread_local"] == "1536" and dict(zip(head, row))["taken"] == str(4 * MIB), listed
    out, said = table(threaded, "--module", "jit_threads")
    head, row = out.splitlines()[:2]
    assert "thread_local" in head and " 1.50 KiB" in row and " 4.00" in row and "Thread-local" not in out and not said, (out, said)
    out, said = table(threaded, "--module", "jit_threads", "--tsv")
    assert "thread" not in out.splitlines()[2], out

    _, said = table(path, "--module", "jit_spaces", "--space", "9")
    assert "has nothing in memory space 9; it uses: 0, 1, 5" in said, said
    _, said = table(path, "--space", "9")
    assert "no program has anything in memory space 9; they use: 0, 1, 5" in said, said

    # Sums that do not add up are said with the reason.
    odd = Program("jit_odd")
    odd.allocation(odd.value(20_000, "params['a']"), size=10 * MIB, parameter=True)
    path = check.write(space_of(metadata_plane((1, "jit_odd", odd.encode()))))
    _, said = table(path, "--module", "jit_odd")
    assert "warning" in said and "allocations are larger than the largest value in them" in said, said
    assert f"the allocations of parameters to {10 * MIB}" in said, said

    # A program that contradicts itself costs no other.
    twice = Program("jit_twice")
    value = twice.value(20_000)
    twice.allocation(value)
    twice.live(value)
    twice.events.append(twice.events[-1])
    path = check.write(space_of(metadata_plane((1, "jit_twice", twice.encode()), (2, "jit_odd", odd.encode()))))
    profile = check.profile(path, expected=2)
    assert "jit_twice(1): buffer 1 is freed more than once" in check.said, check.said
    assert not profile["exact"] and "not exact" in run(check.memprof, "show", check.folder / "in.memtrace").stdout
    assert [each["program"] for each in facts(profile, "xla_programs")] == ["jit_odd(2)"]
    check.profile(path, "--module", "jit_odd")
    assert "planned by the compiler, not measured" in run(check.memprof, "show", check.folder / "in.memtrace").stdout
    _, said = table(path, "--module", "jit_twice", expected=2)
    assert "freed more than once" in said, said

    check_hostile(check)

    # What is no profile.
    for data, fault in ((b"", "it is empty"), (b"\n\n\n{}", "a snapshot has"), (b"\n{\"x\": 1}", "a snapshot has"),
                        (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f" + bytes(56), "Riegeli"),
                        (space_of(message((2, "/host:CPU"))), "it contains no XLA program"),
                        (message((1, message((2, "/host:metadata"), (4, message((2, message((5, 3)))))))), "field 5 is not a string"),
                        (message((1, message((2, "/host:metadata"), (4, b"\x0a\xff"))) ), "extends past the end"),
                        (message((1, message((2, "x"), (4, b"\x08" + b"\xff" * 11))), (1, b"\x0b")), "unknown wire type 3")):
        path = check.write(data, "bad.pb")
        said = run(check.memprof, "import", "auto", path, "-o", check.folder / "no.memtrace", expected=2).stderr
        assert fault in said and said.count("\n") == 1, (data, said)
    return 0


def processor_seconds():
    """Of the programs that have ended; on a busy machine the wall clock says nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_hostile(check):
    """Programs that mean harm, or have been damaged: one clear line and exit status 2, in bounded time and memory."""
    def tried(*programs, said, tool=False, written=None):
        path = check.write(space_of(metadata_plane(*programs)), "hostile.xplane.pb")
        out = check.folder / "hostile.memtrace"
        out.unlink(missing_ok=True)
        begin = processor_seconds()
        done = run(check.memprof, "import", "auto", path, "-o", out, expected=2 if said else 0)
        assert processor_seconds() - begin < 60, "it takes too long"
        assert not said or said in done.stderr and done.stderr.count("\n") == 1 and done.stderr.count("cannot read") <= 1, done.stderr
        assert not said or "hostile.xplane.pb" in done.stderr and len(done.stderr) < 2000, done.stderr
        if written is not None:
            assert out.exists() == written
            table = run(check.memprof, "profile", out, "-o", check.folder / "hostile.json") if written else None
            assert not written or not json.loads((check.folder / "hostile.json").read_text())["exact"] or not said
        return done

    def sound(name="jit_sound"):
        made = Program(name)
        value = made.value(20_000, "jit(f)/dot")
        made.allocation(value)
        made.live(value)
        return made

    good = sound().encode()
    # Ids and values that are not there, or twice.
    tried((1, "jit_sound", good), (1, "jit_sound", good), said="", written=True)
    tried((1, "jit_sound", good), (1, "jit_other", sound("jit_other").encode()), said="two programs have the number 1: the second, at byte",
          written=True)
    odd = sound()
    odd.allocation((77, 20_000))
    tried((1, "jit_sound", odd.encode()), said="values in its allocations that are not among its buffers", written=True)
    # Memory that is shared in a ring, and through many.
    ring = Program("jit_ring")
    values = [ring.value(20_000) for _ in range(3)]
    ring.allocation(*values)
    ring.events = [message((1, 2), (2, a), (5, b)) for a, b in ((1, 2), (2, 3), (3, 1))]
    tried((1, "jit_ring", ring.encode()), said="jit_ring(1): buffer 3 shares its own memory", written=False)
    chain = Program("jit_chain")
    values = [chain.value(8) for _ in range(4000)]
    chain.allocation(*values)
    chain.events = [message((1, 2), (2, number + 1), (5, number)) for number in range(1, 4000)]
    chain.events += [message((1, 0), (2, 4000)), message((1, 1), (2, 4000))] * 150_000
    tried((1, "jit_chain", chain.encode()), said="memory is shared through too many buffers", written=False)
    # Many faults are said once.
    bad = Program("jit_bad")
    bad.buffers.append(message((1, 1), (2, 2**60)))
    done = tried(*[(number, "jit_bad", bad.encode()) for number in range(1, 50)], (50, "jit_sound", good),
                 said=f"jit_bad(1): byte ", written=True)
    assert "and 45 more" in done.stderr and f"{2**60} is not a valid number of bytes" in done.stderr, done.stderr
    # Sizes, numbers of fields, wire types, lengths and varints.
    for proto, said in ((message((1, b"\x0a\x7fjit")), "extends past the end"), (message((1, message((1, "jit")))) + b"\x03", "invalid field number 0"),
                        (message((1, b"\x0b")), "unknown wire type 3"), (message((3, message((1, message((2, -1)))))), "is not a valid number of bytes"),
                        (message((3, message((1, b"\x10" + b"\xff" * 11)))), "longer than ten bytes"),
                        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "invalid field number"),
                        (message((3, message((1, message((3, message((3, b"\x80")))))))), "extends past the end"),
                        (message((3, message((4, message((1, message((1, 9)))))))), "unknown kind of event 9"),
                        (message((1, message((3, 7)))), "field 3 is not a string or a message")):
        if not proto.startswith(b"\x0a"):
            proto = message((1, message((1, "jit")))) + proto
        tried((1, "jit", proto), said=said, written=False)
    # Shapes within shapes, and many values of one large shape.
    nested = shape([8])
    for _ in range(200):
        nested = message((2, 13), (4, nested))
    deep = sound()
    deep.instructions = [message((1, "value.1"), (2, "tuple"), (3, nested), (35, 1 << 32))]
    tried((1, "jit_deep", deep.encode()), said="shapes are nested too deeply", written=False)
    wide = Program("jit_wide")
    wide.instructions = [message((1, "value.1"), (2, "tuple"), (3, message((2, 13)) + message((4, b"")) * 400_000), (35, 5))]
    wide.buffers = [message((1, number), (2, 8), (3, message((4, 5), (3, [number])))) for number in range(1, 200_000)]
    wide.allocations = [message((1, 0), (2, 8), (5, True), *[(9, message((1, number))) for number in range(1, 200_000)])]
    tried((1, "jit_wide", wide.encode()), said="", written=True)
    wide.buffers = [message((1, number), (2, 8), (3, message((4, 5)))) for number in range(1, 200_000)]
    tried((1, "jit_wide", wide.encode()), said="too many values have large shapes", written=False)
    # Memory spaces without end.
    spaces = Program("jit_spaces")
    for number in range(3000):
        spaces.allocation(spaces.value(8, space=number), space=number)
    tried((1, "jit_spaces", spaces.encode()), said="it has 3000 memory spaces, more than any device has", written=False)
    # Events of so many programs that no core ran.
    events = b"".join(message((4, message((1, number)))) for number in range(70_000))
    path = check.write(space_of(message((2, "/device:TPU:0"), (3, message((2, "XLA Modules")) + events)), metadata_plane((1, "jit_sound", good))))
    said = run(check.memprof, "import", "auto", path, "-o", check.folder / "no.memtrace", expected=2).stderr
    assert "more than 65536 programs ran on one core" in said, said


def random_program(choose, name):
    """Values in two spaces, some shared, some shared after they were freed, some there from begin to end."""
    program = Program(name)
    for space in (0, 1):
        values = [program.value(choose.choice((8, 500, 16_383, 16_384, 20_000, 50_000)) + choose.randrange(9), f"jit(f)/op{index}",
                                space, padding=choose.randrange(8)) for index in range(choose.randrange(2, 12))]
        for _ in range(choose.randrange(4)):
            held = [program.value(choose.randrange(40_000), "params['a']", space) for _ in range(choose.randrange(1, 3))]
            flags = choose.choice(({"parameter": True}, {"output": True}, {"constant": True}, {"thread": True},
                                   {"parameter": True, "output": True}))
            program.allocation(*held, space=space, size=max(size for _, size in held) + choose.randrange(3), **flags)
        program.allocation(*values, space=space)
        events, users, root = [], {}, {}
        happen = lambda kind, buffer, other=0: events.append(message((1, kind), (2, buffer), (5, other)))
        waiting, live, freed = [number for number, _ in values], [], []
        for _ in range(3 * len(values)):
            what = choose.random()
            if waiting and what < 0.4:
                number = waiting.pop()
                happen(0, number)
                live.append(number)
            elif waiting and (live or freed) and what < 0.6:
                number, other = waiting.pop(), choose.choice(live + freed)
                happen(2, number, other)
                live.append(number)
            elif live:
                number = live.pop(choose.randrange(len(live)))
                happen(1, number)
                freed.append(number)
        program.traces.append(events)
    return program


def check_random(check, _):
    choose = random.Random(1)
    programs = [random_program(choose, f"jit_random_{index}") for index in range(60)]
    path = check.write(space_of(metadata_plane(*[(index + 1, each.name, each.encode()) for index, each in enumerate(programs)])))
    compared = 0
    for number, name in ((0, "device"), (1, "device_space_1")):
        theirs = from_xprof(path, number)
        if theirs is None:
            print("skipped: Python has no xprof 2.24")
            return 4
        profile = check.profile(path)
        for module, expected in theirs.items():
            compare(profile, module, expected, name)
            compared += 1
    print(f"{compared} simulations as xprof's")
    return 0


def check_large(check, _):
    """A large file takes no memory of the process's own, and at least 1 GB in a second of a processor."""
    program = gemma().encode()
    event = message((4, message((1, 1), (2, 1000), (3, 5), (4, message((1, 2), (3, 7))))))
    line = (3, message((2, "python"), (4, b"")) + event * 100_000)
    lines = message((2, "/host:CPU"), line)
    whole = b""
    path = check.folder / "large.xplane.pb"
    with open(path, "wb") as file:
        file.write(space_of(metadata_plane((1, "jit_run_scan", program))))
        while file.tell() < 400 * MIB:
            file.write(message((1, lines)))
    whole_bytes = path.stat().st_size

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (64 * MIB, 64 * MIB))

    begin = processor_seconds()
    done = subprocess.run([check.memprof, "xplane", path, "--module", "jit_run_scan", "--tsv"], capture_output=True, text=True,
                          preexec_fn=limit)
    seconds = processor_seconds() - begin
    assert done.returncode == 0 and "9.987" in done.stdout, done
    rate = whole_bytes / seconds / 1e9
    print(f"{whole_bytes / 1e6:.0f} MB in {seconds:.2f} s of a processor, {rate:.1f} GB/s, with at most 64 MiB of its own")
    assert rate > 1, rate
    return 0


def main():
    memprof, what = sys.argv[1:3]
    data = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        return globals()[f"check_{what}"](Checker(memprof, folder), data)


if __name__ == "__main__":
    sys.exit(main())
