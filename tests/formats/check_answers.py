#!/usr/bin/env python3
"""check_answers.py MEMPROF SAMPLE_TRACE: what every subcommand that answers a question prints with --json is small, has a verdict and
caveats, and is valid by docs/answer.schema.json, which refers to a schema for each.

Exit status 4: skipped, with the reason.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import check_heaptrack
import check_tt_mlir
import check_xplane

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
MOST_BYTES = 8192


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace")
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def validator():
    import jsonschema
    import referencing
    import referencing.jsonschema

    schemas = [json.loads(path.read_text()) | {"$id": f"https://memprof.invalid/{path.name}"} for path in DOCS.glob("*.schema.json")]
    resources = [(schema["$id"], referencing.jsonschema.DRAFT7.create_resource(schema)) for schema in schemas]
    (answer,) = (schema for schema in schemas if schema["$id"].endswith("/answer.schema.json"))
    return jsonschema.Draft7Validator(answer, registry=referencing.Registry().with_resources(resources))


def xla_profile(path):
    program = check_xplane.Program("jit_step")
    values = [program.value(20_000, "params['a']"), program.value(30_000, "jit(f)/dot")]
    program.allocation(values[0], parameter=True)
    program.allocation(values[1])
    program.live(values[1])
    path.write_bytes(check_xplane.space_of(check_xplane.metadata_plane((1, "jit_step", program.encode()))))
    return path


def check_refusals(memprof, folder, before):
    """What cannot be compared ends with status 2 and says what is possible; other devices can be, if a space is named."""
    run(memprof, "profile", before, "-o", folder / "first.json")
    first = json.loads((folder / "first.json").read_text())
    space = max(first["spaces"], key=lambda each: each["cumulative_peak"])["name"]

    def changed(name, change):
        profile = json.loads(json.dumps(first))
        change(profile)
        (folder / name).write_text(json.dumps(profile))
        return folder / name

    def on_device(profile, device):
        profile["device"] = device

    def rename(profile, names):
        for each in profile["spaces"]:
            each["name"] = names.get(each["name"], each["name"])

    def refused(*command):
        done = subprocess.run([memprof, *map(str, command)], capture_output=True, text=True)
        assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, (command, done)
        return done.stderr

    one = changed("one.json", lambda profile: on_device(profile, "gpu-24gb"))
    two = changed("two.json", lambda profile: on_device(profile, "gpu-80gb"))
    for command in (["compare", one, two], ["check", two, "--compare", one]):
        message = refused(*command)
        assert "'gpu-24gb'" in message and "'gpu-80gb'" in message and "--space NAME" in message, message
        run(memprof, *command, "--space", space)
    assert "the runs' devices differ: before gpu-24gb, after gpu-80gb" in run(memprof, "compare", one, two, "--space", space)

    fewer = changed("fewer.json", lambda profile: rename(profile, {space: "other"}))
    message = refused("compare", before, fewer)
    others = [each["name"] for each in first["spaces"] if each["name"] != space]
    assert f"no memory space '{space}'" in message and "both have another: --space " in message, message
    run(memprof, "compare", before, fewer, "--space", others[0])
    assert f"it has '{others[0]}'" in refused("compare", before, fewer, "--space", space) or len(others) > 1
    none = changed("none.json", lambda profile: rename(profile, {each["name"]: each["name"] + "2" for each in first["spaces"]}))
    assert "no memory space in common" in refused("compare", before, none)

    def of_another_program(profile):
        names = {each["name"] for each in profile["segments"]}
        names |= {each[key] for each in profile["operations"] for key in ("name", "path")}

        def renamed(value):
            if isinstance(value, dict):
                return {key: each if key == "by_category" else renamed(each) for key, each in value.items()}
            if isinstance(value, list):
                return [renamed(each) for each in value]
            return f"other {value}" if isinstance(value, str) and value in names else value

        profile.update(renamed(profile))

    stranger = changed("stranger.json", of_another_program)
    for command in (["compare", before, stranger], ["check", stranger, "--compare", before]):
        message = refused(*command)
        assert "different programs" in message and "--any-program" in message, message
    run(memprof, "compare", before, stranger, "--any-program")


def growing_snapshot(path):
    """A PyTorch snapshot in JSON: segments of 100 to 140 MiB, each for a block that the one before has no room for, and one of 150
    that is in use. Expandable segments take 8 pages of 20 MiB."""
    mebibyte = 1 << 20
    events, segments = [], []
    for index, size in enumerate((100, 110, 120, 130, 140, 150)):
        address, size, is_last = (1 << 40) + index * 1000 * mebibyte, size * mebibyte, size == 150
        actions = ["segment_alloc", "alloc"] + ([] if is_last else ["free_requested", "free_completed"])
        events += [{"action": action, "addr": address, "size": size, "stream": 0, "time_us": len(events) + place, "frames": []}
                   for place, action in enumerate(actions)]
        block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated" if is_last else "inactive"}
        used = size if is_last else 0
        segments.append({"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
                         "requested_size": used, "stream": 0, "segment_type": "large", "blocks": [block | {"frames": []}]})
    path.write_text(json.dumps({"segments": segments, "device_traces": [events]}))
    return path


def check_reserved_causes(memprof, check, folder):
    """Why more is reserved than allocated is in the answers of show and analyze, and adds up."""
    mebibyte = 1 << 20
    run(memprof, "convert", growing_snapshot(folder / "growing.json"), "-o", folder / "growing.memtrace")
    for command in ("show", "analyze"):
        (causes,) = check(command, folder / "growing.memtrace")["reserved_causes"]
        peak = causes["at_peak"]
        assert peak["unused_bytes"] == peak["soft_bytes"] == 600 * mebibyte == peak["reserved_bytes"] - peak["allocated_bytes"], peak
        assert causes["helps"] == "expandable_segments:True", causes
        assert causes["trials"][0]["reserved_peak_bytes"] == 160 * mebibyte, causes
        text = run(memprof, command, folder / "growing.memtrace")
        assert "600 MiB soft" in text and "160 MiB reserved in place of 750 MiB" in text, text


def main():
    memprof, writer = sys.argv[1:]
    try:
        valid = validator()
    except ImportError:
        print("skipped: jsonschema of PyPI")
        return 4
    formats = set()

    def check(*command, expected=0):
        text = run(memprof, *command, "--json", expected=expected)
        document = json.loads(text)
        faults = [f"{fault.json_path}: {fault.message} {[each.message for each in fault.context][:12]}" for fault in valid.iter_errors(document)]
        assert not faults, f"{command}: {faults}\n{text}"
        assert len(text) <= MOST_BYTES, f"{command}: {len(text)} bytes"
        assert document["verdict"] and "\n" not in document["verdict"], document["verdict"]
        formats.add(document["format"])
        return document

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        before, after = folder / "before.memtrace", folder / "after.memtrace"
        run(writer, before, 3000, 1)
        run(writer, after, 3000, 2)
        # What only the reading of the file shows is a caveat, too.
        long, cut = folder / "long.memtrace", folder / "cut.memtrace"
        run(writer, long, 40_000, 3)
        cut.write_bytes(long.read_bytes()[: long.stat().st_size * 3 // 4])
        known = check("show", cut, expected=2)["caveats"]
        assert any("had not ended" in each for each in known) and any("cut.memtrace" in each for each in known), known
        check_reserved_causes(memprof, check, folder)
        for command in (
            ["leaks", cut],
            ["compare", cut, after],
            ["compare", after, cut],
            ["what-if", cut, "--rank"],
            ["what-if", cut, "--target", "1GiB"],
            ["what-if", cut, "--category", "gradient"],
            ["waterfall", cut, after],
            ["check", cut, "--peak-at-most", "1TiB"],
            ["merge", cut],
            ["analyze", cut],
        ):
            caveats = check(*command, expected=2)["caveats"]
            assert all(any(each in own for own in caveats) for each in known), (command, caveats, known)
            text = run(memprof, *command, expected=2)
            assert "had not ended" in text, (command, text)
        summary = check("show", before)
        assert "callers" not in summary, summary["callers"]
        # Who asked for it, of a recording with stacks.
        (folder / "recording").write_bytes(check_heaptrack.made(2)[0])
        run(memprof, "convert", folder / "recording", "-o", folder / "stacks.memtrace")
        asked = check("show", folder / "stacks.memtrace")["callers"]
        assert asked["rows"] and sum(row["bytes"] for row in asked["rows"]) + asked["others"]["bytes"] == asked["peak_bytes"], asked
        space = summary["spaces"][0]["space"]
        short = check("leaks", before)
        run(memprof, "leaks", before, "--json-out", folder / "leaks.json")
        whole = json.loads((folder / "leaks.json").read_text())
        assert set(short) == set(whole) | {"left_out"} and short["left_out"], short.keys()
        for key, count in short["left_out"].items():
            assert short[key] == whole[key][: len(short[key])] and len(short[key]) + count == len(whole[key]), key
        assert check("compare", before, after)["change_bytes"] != 0
        check_refusals(memprof, folder, before)
        ranking = check("what-if", before, "--rank")
        first = ranking["ranking"][0]["owner"]
        assert f" without {first}: " in ranking["verdict"], ranking["verdict"]
        check("what-if", before, "--without", first)
        check("what-if", before, "--target", ranking["ranking"][0]["peak_bytes"])
        failed = check("check", before, "--limit", f"space:{space}=1", expected=1)
        assert not failed["passed"]
        check("merge", before)  # both are of rank 3
        analysis = check("analyze", before)
        assert [each["file"] for each in analysis["summaries"]] == [str(before)] and "peak " in analysis["verdict"], analysis
        assert json.loads(run(memprof, "analyze", "--json", before))["verdict"] == analysis["verdict"]
        tables = run(memprof, "analyze", before, "--json", folder / "analysis.json")
        whole = json.loads((folder / "analysis.json").read_text())
        assert "Analysis complete" in tables and whole["verdict"] == analysis["verdict"], tables
        check("waterfall", before, after)
        check("fit", "--config", "gpt2-124m", "--device", "gpu-24gb", "--seq-len", 64)

        forward = check("estimate", "--config", "gpt2-124m")
        assert forward["step"] is None and forward["forward"]["parameters"] == 124_439_808  # as published, with tied embeddings
        for size in ("fp32_bytes", "bf16_bytes"):
            assert sum(bucket[size] for bucket in forward["forward"]["buckets"]) == forward["forward"][size]
        step = check("estimate", "--config", "llama-7b", "--step", "--dtype", "bf16", "--device", "gpu-80gb")
        run(memprof, "estimate", "--config", "llama-7b", "--step", "--dtype", "bf16", "--profile-out", folder / "step.json")
        peak = json.loads((folder / "step.json").read_text())["spaces"][0]["cumulative_peak"]
        assert step["step"]["summary"]["spaces"][0]["peak_bytes"] == peak and f"({peak:,} B)" in step["verdict"], step["verdict"]
        assert step["verdict"].endswith(" GiB with all parts do not fit 79.2 GiB"), step["verdict"]

        log = folder / "made_profile.log"
        log.write_text("\n".join(check_tt_mlir.made(0).lines) + "\n")
        analysis = check("tt-mlir", "analyze", log)
        assert {pathlib.Path(path).name for path in analysis["written"]} == {
            "made.memtrace", "made_memory.json", "made_operations.json", "made_inputs_registry.json"}
        operations = json.loads((folder / "made_operations.json").read_text())
        assert [rank["operations"] for rank in analysis["ranks"]] == [len(operations)] and analysis["ranks"][0]["rank"] is None
        run(memprof, "profile", folder / "made.memtrace", "-o", folder / "made.json")
        spaces = {each["name"]: each["cumulative_peak"] for each in json.loads((folder / "made.json").read_text())["spaces"]}
        for memory in analysis["memories"]:
            assert memory["peak_bytes"] == spaces.get(memory["space"], 0) == memory["banks"] * memory["peak_bank_bytes"], memory

        if "xplane" in run(memprof, "--help"):
            profile = xla_profile(folder / "made.xplane.pb")
            (program,) = check("xplane", profile)["programs"]
            assert program["program"] == "jit_step(1)" and program["peak_bytes"] == 50_000 and program["parameter_bytes"] == 20_000
            module = check("xplane", profile, "--module", "jit_step")
            (worker,) = module["workers"]
            assert {each["class"]: each["bytes"] for each in worker["classes"]} == {"model_params": 20_000, "Temporary": 30_000}
            assert [block["bytes"] for block in module["blocks"]] == [30_000, 20_000] and "Temporary has 60.0 %" in module["verdict"]
            assert check("xplane", profile, "--module", "jit_step", "--rows", 1)["block_count"] == 2
            formats.discard("memprof-xplane")

    known = {json.loads(path.read_text()).get("properties", {}).get("format", {}).get("const") for path in DOCS.glob("*.schema.json")}
    # Those of scripts are tested in python/tests.
    elsewhere = {None, "memprof-profile", "memprof-baseline", "memprof-xplane", "memprof-script-fit"}
    assert known - elsewhere <= formats, known - elsewhere - formats
    return 0


if __name__ == "__main__":
    sys.exit(main())
