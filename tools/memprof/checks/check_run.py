#!/usr/bin/env python3
"""check_run.py MEMPROF PROGRAM CASE: runs run_subject.cpp by `memprof run` and compares what was recorded with arithmetic, or with
what valgrind's DHAT counts. Without CASE, prints the cases."""

import base64
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

PAGE = os.sysconf("SC_PAGESIZE")
EARLY = 111  # of the program's constructor
FAMILY = 4095  # of family(), in 12 blocks
CHURN = 500_500  # of churn(), in 1,000 blocks


def skip(why):
    print("skipped: " + why)
    sys.exit(0)


def expect(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what} is {seen}; expected {wanted}")


def built(folder, name, text, *options):
    """The program or library of a source, by the compiler for its language; skips if there is none."""
    source = folder / name
    source.write_text(text)
    output = source.with_suffix(".so" if "-shared" in options else "")
    if not shutil.which("c++" if source.suffix == ".cpp" else "cc"):
        skip("there is no compiler")
    subprocess.run(["c++" if source.suffix == ".cpp" else "cc", "-fno-builtin", "-o", output, source, *options], check=True)
    return output


class Run:
    """A finished `memprof run`."""

    def __init__(self, command, *options, wanted_status=0, needs_profile=True, variables=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_"))
        try:
            (self.folder / "temporary").mkdir()
            profile = self.folder / "run.json"
            ran = subprocess.run(
                [TOOL, "run", "--profile", profile, "--trace", self.folder / "run.memtrace", *options, "--", *command],
                capture_output=True, text=True, check=False,
                env={**os.environ, "TMPDIR": str(self.folder / "temporary"), **(variables or {})})
            self.output, self.said = ran.stdout, ran.stderr
            if ran.returncode != wanted_status:
                sys.exit(f"status {ran.returncode}; expected {wanted_status}\n{self.said}")
            expect("what is left in the temporary folder", os.listdir(self.folder / "temporary"), [])
            self.traces = sorted(each.name for each in self.folder.glob("*.memtrace"))
            self.disk_blocks = sum(each.stat().st_blocks for each in self.folder.glob("*.memtrace")) * 512
            self.length = sum(each.stat().st_size for each in self.folder.glob("*.memtrace"))
            if needs_profile:
                self.profile = json.loads(profile.read_text())
                self.heap = self.space("cpu")
        finally:
            shutil.rmtree(self.folder)

    def expect(self, allocated, blocks, peak=None, is_whole=True):
        expect("allocated", self.heap["allocations"], allocated)
        expect("blocks", self.heap["allocation_count"], blocks)
        if peak is not None:
            expect("peak", self.heap["cumulative_peak"], peak)
        if is_whole:
            expect("live at the end", self.heap["cumulative_current"], 0)
        expect("unmatched frees", self.heap["anomalies"]["unmatched_frees"]["count"], 0)
        expect("exact", self.profile["exact"], True)
        expect("reentrant events", self.profile["anomalies"]["reentrant_events"], 0)

    def space(self, name):
        return next((each for each in self.profile["spaces"] if each["name"] == name), None)

    def missing(self):
        """What the profile says was not captured: the reason by source."""
        return {each["source"]: each["reason"] for each in self.profile.get("facts", {}).get("not_captured", [])}


def named_missing(run):
    """What was not captured, but for the pages of what is named, whose size differs."""
    return {source: why for source, why in run.missing().items() if source != "memory past malloc"}


def check_family():
    Run([PROGRAM, "family"]).expect(EARLY + FAMILY + PAGE, 14, EARLY + PAGE)


def check_empty():
    Run([PROGRAM]).expect(EARLY, 1, EARLY)


def check_threads():
    run = Run([PROGRAM, "threads"])
    if run.heap["allocation_count"] < 2000 * 1000 or run.heap["allocation_count"] > 2000 * 1001 + 1000:
        sys.exit(f"{run.heap['allocation_count']} blocks of 2,000 threads")
    expect("exact", run.profile["exact"], True)
    expect("reentrant events", run.profile["anomalies"]["reentrant_events"], 0)


def check_forks():
    Run([PROGRAM, "forks"]).expect(EARLY, 1, EARLY)


def check_bare_forks():
    for options in [[], ["--mmap"], ["--children"]]:
        run = Run([PROGRAM, "bare_forks"], *options)
        run.expect(EARLY + 2 * CHURN, 1 + 2 * 1000, EARLY + 1000)
        expect("number of traces", len(run.traces), 27 if options == ["--children"] else 1)
    peaks = peaks_of_others(run)
    expect("peaks of the children, 7,777 bytes", [each for each in peaks if each != "0 B"], ["7.59 KiB"] * 20)


def check_interrupted():
    Run([PROGRAM, "interrupted"]).expect(EARLY + 200 * CHURN, 1 + 200 * 1000, EARLY + 1000)


def check_closed():
    run = Run([PROGRAM, "closed"])
    run.expect(EARLY + 300 * CHURN, 1 + 300 * 1000, EARLY + 1000)
    if run.length > 4 * 600_000:
        sys.exit(f"{run.length} bytes for 600,000 events")


def check_limited():
    run = Run([PROGRAM, "limited"])  # the trace ends there, not the program
    expect("exact", run.profile["exact"], False)
    for mode in ("limited_to_0", "limited_to_a_page"):
        expect(f"the first line with {mode}", Run([PROGRAM, mode], needs_profile=False).said.split("\n")[0][:7], "memprof")
        with tempfile.TemporaryFile() as errors:  # it cannot grow either
            ran = subprocess.run([TOOL, "run", "--", PROGRAM, mode], stdout=errors, stderr=errors, check=False)
        expect(f"status of {mode}", ran.returncode, 0)


def check_limit_of_the_size_of_files():
    """What says why the trace ends names that limit, not a trace_limit."""
    run = Run([PROGRAM, "limited"])
    if "RLIMIT_FSIZE: ulimit -f" not in run.said or "trace_limit" in run.said:
        sys.exit("the limit on the size of files is not named:\n" + run.said)
    none = Run(["/bin/sh", "-c", f"ulimit -f 1; exec '{PROGRAM}' family"], needs_profile=False)
    if "ulimit -f" not in none.said or "trace_limit" in none.said:
        sys.exit("the limit on the size of files is not named:\n" + none.said)


def check_unshare():
    if subprocess.run([PROGRAM, "unshare"], check=False).returncode != 0:
        skip("the system does not let a process have a user namespace")
    Run([PROGRAM, "unshare"]).expect(EARLY, 1, EARLY)


def check_status():
    Run([PROGRAM, "status"], wanted_status=7)


def check_leave():
    run = Run([PROGRAM, "leave"], wanted_status=3)
    run.expect(EARLY + CHURN, 1001, EARLY + 1000, is_whole=False)
    expect("complete", run.profile["complete"], True)


def check_kill():
    run = Run([PROGRAM, "kill"], wanted_status=-signal.SIGKILL)
    run.expect(EARLY + 1234, 2, EARLY + 1234, is_whole=False)
    expect("complete", run.profile["complete"], False)
    if run.disk_blocks > 64 * 1024:
        sys.exit(f"{run.disk_blocks} bytes on the disk for two events")


def check_signal():
    with subprocess.Popen([TOOL, "run", "--", PROGRAM, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        expect("the first line", running.stdout.readline(), "ready\n")
        running.send_signal(signal.SIGTERM)
        running.communicate()
        expect("status", running.returncode, -signal.SIGTERM)


def check_killed_launcher():
    """What a killed `memprof run` leaves is removed by the next one, but not while its program goes on."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        environment = {**os.environ, "TMPDIR": folder}

        def left_after_another():
            subprocess.run([TOOL, "run", "--", PROGRAM], capture_output=True, check=True, env=environment)
            return len(os.listdir(folder))

        with subprocess.Popen([TOOL, "run", "--", PROGRAM, "wait"], stdout=subprocess.PIPE, text=True, env=environment) as running:
            expect("the first line", running.stdout.readline(), "ready\n")
            traces = [each.name for each in pathlib.Path(folder).glob("*/*.memtrace")]
            program = int(traces[0].split(".")[0])
            expect("folders beside a run", left_after_another(), 1)
            running.kill()
            running.wait()
            expect("folders while the program runs", left_after_another(), 1)
            os.kill(program, signal.SIGKILL)
            running.stdout.read()  # until the program has ended
        expect("folders", left_after_another(), 0)


def check_exec():
    run = Run([PROGRAM, "exec"])
    run.expect(EARLY + FAMILY + PAGE, 14, EARLY + PAGE)
    expect("number of traces", len(run.traces), 2)
    if not re.search(r"^ *\d+ +1\.08 KiB .*  \(replaced by exec\) ", run.said, re.MULTILINE):  # 111 + 1,000 bytes
        sys.exit("nothing is said about the program before exec:\n" + run.said)
    if run.disk_blocks > 64 * 1024:
        sys.exit(f"{run.disk_blocks} bytes on the disk for some 2,000 events")


def check_exec_of_children():
    """A shell in parentheses is a child, which here becomes the program after it has recorded itself."""
    run = Run(["/bin/sh", "-c", f"(exec '{PROGRAM}' family); true"], "--children")
    expect("number of traces", len(run.traces), 3)
    rows = [line for line in run.said.splitlines() if re.match(r"^ *\d+ +\d", line)]
    expect("which of the child's programs was replaced, and which has the 14 blocks of the program",
           sorted(("(replaced by exec)" in row, " 14  " in row) for row in rows), [(False, True), (True, False)])


def check_removed_folder():
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        ran = subprocess.run([TOOL, "run", "--", "/bin/sh", "-c", f"rm -r '{folder}'/memprof_run_*; exit 7"], capture_output=True, text=True,
                             check=False, env={**os.environ, "TMPDIR": folder})
    expect("the program's status", ran.returncode, 7)
    expect("the last line", re.sub(r"'.*'", "FOLDER", ran.stderr.splitlines()[-1]),
           "memprof run: FOLDER was removed while the program ran, and what was recorded with it")


def check_exec_without_library():
    run = Run(["/usr/bin/env", "-i", PROGRAM, "family"])
    expect("what was not captured", list(run.missing()), [pathlib.Path(PROGRAM).name[:15]])
    if not re.search(r"^Accuracy +incomplete", run.said, re.MULTILINE) or "the process became this program" not in run.said:
        sys.exit("nothing is said about the program that was not recorded:\n" + run.said)
    # An interpreter is called after its script, and what leaves by _exit under its own name went on as no other.
    left = Run([PROGRAM, "leave"], wanted_status=3)
    expect("sources not captured", left.missing(), {})
    script = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_")) / "leaves_early"
    try:
        script.write_text(f"#!{sys.executable}\nimport os\nos._exit(0)\n")
        script.chmod(0o755)
        expect("sources not captured", Run([script], variables={"PYTHONMALLOC": "malloc"}).missing(), {})
    finally:
        shutil.rmtree(script.parent)


def check_recorded_bytes():
    """Known to the reader of the trace alone."""
    with tempfile.TemporaryDirectory() as folder:
        text = "#include <stdlib.h>\nint main(void) { return malloc(54321) == NULL || malloc(1000) == NULL; }\n"
        run = Run([built(pathlib.Path(folder), "leak.c", text)])
    recorded = {row["moment"]: row["recorded_bytes"] for row in run.profile["facts"]["process_memory"]}
    expect("recorded bytes", (recorded["first"], recorded["last"]), (0, 55321))


def check_exec_of_a_long_command():
    """The table of processes fits a terminal whatever their commands are."""
    run = Run([PROGRAM, "exec", "x" * 300])
    lines = [line for line in run.said.splitlines() if "(replaced by exec)" in line]
    expect("rows of the table", len(lines), 1)
    if len(lines[0]) > 100 or "…" not in lines[0].split(")")[1]:
        sys.exit("the command does not fit: " + lines[0])


def check_child_that_goes_on():
    run = Run([PROGRAM, "leaves_a_child"], "--children")
    if not re.search(r"^ *\d+ +1\.21 KiB .*  \(still running\) ", run.said, re.MULTILINE):  # 1,234 bytes
        sys.exit("the child that goes on is not in the summary as such:\n" + run.said)
    expect("number of traces", len(run.traces), 2)
    if run.disk_blocks > 64 * 1024:
        sys.exit(f"{run.disk_blocks} bytes on the disk for some events")


def check_closed_pipe():
    with tempfile.TemporaryDirectory() as folder:
        reader, writer = os.pipe()
        os.close(reader)
        subprocess.run([TOOL, "run", "--", PROGRAM], stdout=writer, stderr=writer, check=False, env={**os.environ, "TMPDIR": folder})
        os.close(writer)
        expect("what is left in the temporary folder", os.listdir(folder), [])


def peaks_of_others(run):
    """Of the table of further processes."""
    return re.findall(r"^ *\d+ +(\d[\d.]* \w+) +\d[\d.]* \w+ +[\d,]+  ", run.said, re.MULTILINE)


def check_children():
    run = Run(["/bin/sh", "-c", f"'{PROGRAM}' family; '{PROGRAM}' leave; true"], "--children")
    expect("number of traces", len(run.traces), 3)
    expect("processes in the summary", len(peaks_of_others(run)), 2)
    forks = Run([PROGRAM, "forks"], "--children")
    expect("number of traces", len(forks.traces), 51)
    expect("peaks of the children, 7,777 bytes", peaks_of_others(forks), ["7.59 KiB"] * 20)
    if not re.search(r"^ +7\.59 KiB +0 B +30  30 further processes", forks.said, re.MULTILINE):
        sys.exit("the other 30 children are not in one row:\n" + forks.said)


def check_children_without_a_trace():
    unlimited = f"'{PROGRAM}' family; '{PROGRAM}' empty"
    run = Run(["/bin/sh", "-c", unlimited + f"; (ulimit -f 0; '{PROGRAM}' family; exec '{PROGRAM}' family); true"], "--children")
    expect("what was not captured", run.missing(), {"2 processes": "no trace could be written, as after setuid or chroot"})
    expect("complete", run.profile["complete"], True)
    if not re.search(r"^Accuracy +incomplete", run.said, re.MULTILINE):
        sys.exit("the summary is not incomplete:\n" + run.said)
    expect("what was not captured", Run(["/bin/sh", "-c", unlimited + "; true"], "--children").missing(), {})
    if os.getuid() == 0:
        leaves = f"import os; os.setuid(65534); os.execv('/bin/true', ['true'])"
        run = Run(["/bin/sh", "-c", f"'{sys.executable}' -c \"{leaves}\"; true"], "--children")
        expect("what was not captured", list(run.missing()), ["1 process"])


def check_no_children():
    run = Run(["/bin/sh", "-c", f"'{PROGRAM}' family; '{PROGRAM}' environment"])
    expect("number of traces", len(run.traces), 1)
    if "libmemprof_preload" in run.output:
        sys.exit("a child has the library in its environment:\n" + run.output)


def check_words():
    words = ["--trace", "--with_underscore=a_b", "", "a b", "--", "-x"]
    expect("the program's arguments", Run([PROGRAM, "words", *words]).output.split("\n")[:-1], words)


def check_options_of_scripts():
    for option in ("--uses", "--infer-operations"):
        said = Run([PROGRAM, "empty"], option, wanted_status=126, needs_profile=False).said
        if "--uses and --infer-operations are for Python scripts" not in said:
            sys.exit(said)
    said = Run([PROGRAM, "empty"], "--mmap", wanted_status=126, needs_profile=False, variables={"RUN_BY_MEMPROF_ITSELF": "1"}).said
    if "--mmap is for programs" not in said:
        sys.exit(said)


def check_refusals():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_"))
    try:
        script = folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        other = folder / "other"
        header = bytearray(pathlib.Path(PROGRAM).read_bytes())
        header[18:20] = (243 if os.uname().machine != "riscv64" else 62).to_bytes(2, "little")  # e_machine
        other.write_bytes(header)
        other.chmod(0o755)
        here = folder / "here"
        here.mkdir()
        (here / "trainer").write_text("")
        done = subprocess.run([TOOL, "run", "--", "trainer"], cwd=here, capture_output=True, text=True, check=False)
        expect("the message", (done.returncode, done.stderr),
               (127, "memprof run: 'trainer' cannot be recorded: it is not in PATH; the file in this folder is ./trainer\n"))
        for name, status, why in [("no_such_program", 127, "there is no such program"),
                                  ("/no/such/program", 127, "there is no such program"),
                                  (str(script), 126, "No such file or directory"),
                                  (str(folder), 126, "it is not an executable file"),
                                  (str(other), 126, "it is for another architecture than this memprof")]:
            said = Run([name], wanted_status=status, needs_profile=False).said
            expect("the message", said, f"memprof run: '{name}' cannot be recorded: {why}\n")
        alone = folder / "alone" / "memprof"
        alone.parent.mkdir()
        shutil.copy(TOOL, alone)
        done = subprocess.run([alone, "run", "--", "true"], capture_output=True, text=True, check=False)
        expect("the status", done.returncode, 126)
        wanted = f"the library that belongs to this memprof is neither '{alone.parent}/libmemprof_preload.so' nor '"
        if wanted not in done.stderr:
            sys.exit(f"{done.stderr!r} does not say where the library is missing")
        static = folder / "static"
        source = folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        if subprocess.run(["cc", "-static", "-o", static, source], capture_output=True, check=False).returncode == 0:
            if "it is linked statically" not in Run([static], wanted_status=126, needs_profile=False).said:
                sys.exit("a static program is not refused for that")
    finally:
        shutil.rmtree(folder)


def check_refusals_of_rights():
    """A program that the system would start without the preloaded library is not started at all."""
    if os.getuid() != 0:
        skip("only root can make a program that runs with rights of its own")
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            skip("the temporary folder is on a mount with nosuid")
        program = folder / "program"
        link = folder / "link"
        link.symlink_to(program)

        def expect_refused(expected, what):
            for path in (program, link):
                ran = Run([path, "words", "it has begun"], wanted_status=126 if expected else 0, needs_profile=False)
                wanted = (f"memprof run: '{path}' cannot be recorded: it runs with rights of its own (setuid, setgid or capabilities), "
                          "and then preloaded libraries are ignored\n")
                expect("the output of " + what, ran.output, "" if expected else "it has begun\n")
                if expected:
                    expect("the message for " + what, ran.said, wanted)

        for mode, user, group, refused in [(0o4755, 65534, 0, True), (0o2755, 0, 65534, True), (0o6755, 65534, 65534, True),
                                           (0o6755, 0, 0, False), (0o755, 65534, 65534, False)]:  # the last ones change nobody
            shutil.copy(PROGRAM, program)
            os.chown(program, user, group)
            program.chmod(mode)
            expect_refused(refused, f"a program of {user}:{group} with mode {mode:o}")
        shutil.copy(PROGRAM, program)
        try:
            os.setxattr(program, "security.capability", b"\x00\x00\x00\x02\x00\x20" + bytes(14))  # VFS_CAP_REVISION_2, CAP_NET_RAW
        except OSError as why:
            print(f"capabilities of files are left out: {why}")
            return
        expect_refused(True, "a program with a capability")


def check_comparison():
    """Recordings without operations and segments are of the programs that their files' names tell."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "copy").mkdir()
        shutil.copy(PROGRAM, folder / "copy" / pathlib.Path(PROGRAM).name)
        shutil.copy(PROGRAM, folder / "renamed")
        traces = []
        for number, program in enumerate([PROGRAM, folder / "copy" / pathlib.Path(PROGRAM).name, folder / "renamed"]):
            traces.append(folder / f"{number}.memtrace")
            subprocess.run([TOOL, "run", "--trace", traces[-1], "--", program, "family"], check=True, capture_output=True)

        def answer(*arguments):
            ran = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
            return ran.returncode, ran.stderr

        for ask in (["compare", traces[0]], ["check", traces[0], "--compare"]):
            expect(f"{ask[0]} of a program in two folders", answer(*ask, traces[1]), (0, ""))
            status, said = answer(*ask, traces[2])
            expect(f"{ask[0]} of two programs", status, 2)
            if f"are of '{pathlib.Path(PROGRAM).name}' and 'renamed'" not in said or said.count("\n") != 1:
                sys.exit(f"{ask[0]} says {said}")
            expect(f"{ask[0]} --any-program", answer(*ask, traces[2], "--any-program"), (0, ""))


def check_outputs():
    """One that cannot be written is refused before the program begins, whose recording could not be had again."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        source = folder / "notes.txt"
        for option in ("--trace", "--profile", "--page", "--json"):
            for output, why in [(source, "it exists and is not a memprof "), (folder, "it is a directory; name a file in it"),
                                (folder / "no" / "folder", "No such file or directory")]:
                source.write_text("not to be lost")
                begun = folder / "begun"
                ran = subprocess.run([TOOL, "run", option, output, "--", "/bin/sh", "-c", f": >'{begun}'"], capture_output=True,
                                     text=True, check=False)
                expect(f"status for {option} {output}", ran.returncode, 2)
                expect("the message", ran.stderr[:len(f"memprof run: cannot write '{output}': {why}")],
                       f"memprof run: cannot write '{output}': {why}")
                expect("lines", ran.stderr.count("\n"), 1)
                expect("whether the program has begun", begun.exists(), False)
                expect("the file that was there", source.read_text(), "not to be lost")
            for again in range(2):  # one of its kind is replaced
                output = folder / option.strip("-")
                ran = subprocess.run([TOOL, "run", option, output, "--", PROGRAM, "family"], capture_output=True, check=False)
                expect(f"status for {option}", ran.returncode, 0)
                expect("whether there is an output", output.stat().st_size > 0, True)
        # The summary is that of `show` for the same trace, but for the times and names of the files.
        subprocess.run([TOOL, "run", "--trace", folder / "a.memtrace", "--json", folder / "a.json", "--", PROGRAM, "family"], capture_output=True, check=True)
        written = json.loads((folder / "a.json").read_text())
        shown = json.loads(subprocess.run([TOOL, "show", folder / "a.memtrace", "--json"], capture_output=True, check=True).stdout)
        expect("the summary", {**written, "file": None}, {**shown, "file": None})
        expect("who asked, without stacks", written.get("callers"), None)
        subprocess.run([TOOL, "run", "--stacks=all", "--trace", folder / "s.memtrace", "--json", folder / "s.json", "--", PROGRAM, "stacks"],
                       capture_output=True, check=True)
        asked = json.loads((folder / "s.json").read_text())["callers"]
        shown = json.loads(subprocess.run([TOOL, "show", folder / "s.memtrace", "--json"], capture_output=True, check=True).stdout)
        expect("who asked", asked, shown["callers"])
        expect("the bytes of who asked", [row["bytes"] for row in asked["rows"] if "innermost" in row["caller"]], [75_000])
        same = folder / "same"
        ran = subprocess.run([TOOL, "run", "--trace", same, "--profile", same, "--", PROGRAM, "family"], capture_output=True, text=True,
                             check=False)
        expect("the last line", ran.stderr.splitlines()[-1],
               f"memprof run: cannot write '{same}': it exists and is not a memprof profile; remove it or choose another name")
        expect("whether the trace is still there", same.read_bytes()[:7], b"\x89MEMTRC")


def check_stacks():
    """Stacks change no number, whatever the program does, and say who asked."""
    Run([PROGRAM, "family"], "--stacks=all").expect(EARLY + FAMILY + PAGE, 14, EARLY + PAGE)
    Run([PROGRAM, "closed"], "--stacks=all").expect(EARLY + 300 * CHURN, 1 + 300 * 1000, EARLY + 1000)
    Run([PROGRAM, "forks"], "--stacks=all", "--children").expect(EARLY, 1, EARLY)
    for option in ("--stacks", "--stacks=all"):
        run = Run([PROGRAM, "stacks"], option)
        run.expect(EARLY + 75_000, 3, EARLY + 75_000)
        expect("blocks without a stack", run.profile["facts"]["stacks"][0]["missing_blocks"], 0)
        # Exactly; of a sample, 5,000 bytes may be there as an estimate.
        if not re.search(r"^ *(73\.2 KiB|68\.4 KiB|~\d.*) .*innermost" if option == "--stacks" else r"^ *73\.2 KiB .*innermost",
                         run.said, re.MULTILINE):
            sys.exit("nobody is said to have asked for 70,000 bytes:\n" + run.said)


def check_stacks_on_small_stacks():
    """The first stack of a process, which takes more than the later ones, may be that of a thread with few bytes."""
    for option in ("--stacks", "--stacks=all"):
        run = Run([PROGRAM, "small_stack"], option)
        if not re.search(r"^ *68\.4 KiB .*innermost", run.said, re.MULTILINE):
            sys.exit("nobody is said to have asked for 70,000 bytes:\n" + run.said)


def check_stacks_under_a_limit_of_the_stack():
    """Reading the lines of a file takes more stack than this, and neither the program nor memprof may end by it."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        functions = "".join(f"inline int f{n}(int x) {{\n  return x + {n};\n}}\n" for n in range(5000))
        calls = "".join(f"  sum += f{n}(sum);\n" for n in range(5000))
        program = built(pathlib.Path(name), "lines.cpp", f"#include <stdlib.h>\n{functions}int main() {{\n  void* volatile p = malloc(70000);\n"
                        f"  int sum = 0;\n{calls}  free(p);\n}}\n", "-g", "-O0")
        limit = 128 << 10
        ran = subprocess.run([TOOL, "run", "--stacks=all", "--", program], capture_output=True, text=True, check=False,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (limit, limit)))
        expect("the exit status", ran.returncode, 0)
        if not re.search(r"^ *68\.4 KiB .*main \(lines\.cpp:", ran.stderr + ran.stdout, re.MULTILINE):
            sys.exit("nobody is said to have asked for 70,000 bytes:\n" + ran.stderr + ran.stdout)


def check_full_folder_of_traces():
    """The program is not begun: it would run for hours for nothing."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        command = f"mount -t tmpfs -o size=1m none {name} || exit 77; TMPDIR={name} exec '{TOOL}' run -- '{PROGRAM}' words"
        ran = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False)
        if ran.returncode == 77 or "unshare" in ran.stderr:
            skip("no file system can be mounted here")
        expect("the exit status", ran.returncode, 126)
        expect("what was said", ran.stderr + ran.stdout,
               f"memprof run: cannot record: '{name}' has 1.00 MiB left, and a trace takes 9.00 MiB at least; set TMPDIR to a folder with more\n")


FILLS_A_DISK = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char bytes[1 << 16];
int main(int count, char** words) {
  void* volatile first = malloc(54321);
  if (count > 2)  // the trace fills the disk by itself
    for (int i = 0; i < 2000000; ++i) free(malloc(100 + i % 50));
  const int file = open(words[1], O_CREAT | O_WRONLY, 0600);
  while (write(file, bytes, sizeof bytes) > 0 || write(file, bytes, 1) > 0) {}
  close(file);
  _exit(first == NULL);
}
"""


def check_disk_that_the_program_fills():
    """What was recorded until then is in the summary and the outputs, though the trace cannot be written anew beside itself."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        program = built(folder, "fill.c", FILLS_A_DISK)
        (folder / "small").mkdir()
        for option, is_exact in [("", True), ("events", False)]:
            command = (f"mount -t tmpfs -o size=12m none {folder}/small || exit 77; TMPDIR={folder}/small exec '{TOOL}' run "
                       f"--json {folder}/{option}run.json --trace {folder}/{option}run.memtrace -- {program} {folder}/small/file {option}")
            ran = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False)
            if ran.returncode == 77 or "unshare" in ran.stderr:
                skip("no file system can be mounted here")
            expect("the exit status", ran.returncode, 0)
            if "No space left on device; the trace stays as its process left it\n" not in ran.stderr:
                sys.exit("nothing is said about the full disk:\n" + ran.stderr)
            written = json.loads((folder / f"{option}run.json").read_text())
            expect("exact", written["exact"], is_exact)
            peak = written["spaces"][0]["peak_bytes"]
            # Where the disk was full, frees may be missing, so that blocks add up which never lived together.
            expect("the peak", peak if is_exact else peak > 54321, 54321 if is_exact else True)
            shown = json.loads(subprocess.run([TOOL, "show", folder / f"{option}run.memtrace", "--json"], capture_output=True, check=False).stdout)
            expect("the peak of the trace", shown["spaces"][0]["peak_bytes"], peak)


def check_relative_temporary_folder():
    """A program may change its folder, and run another one there."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        summary = pathlib.Path(name) / "run.json"
        (pathlib.Path(name) / "traces").mkdir()
        subprocess.run([TOOL, "run", "--json", summary, "--", "/bin/sh", "-c", f"cd /; exec '{PROGRAM}' family"], cwd=name, check=True,
                       capture_output=True, env={**os.environ, "TMPDIR": "traces"})
        written = json.loads(summary.read_text())
        expect("the peak", written["spaces"][0]["peak_bytes"], EARLY + PAGE)
        expect("caveats", written["caveats"], [])
        expect("what is left in the temporary folder", os.listdir(pathlib.Path(name) / "traces"), [])


def check_outputs_beside_one_that_fails():
    """An output that cannot be written keeps no other from being written."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        (folder / "gone").mkdir()
        ran = subprocess.run([TOOL, "run", "--trace", folder / "gone" / "run.memtrace", "--json", folder / "run.json", "--", "/bin/sh", "-c",
                              f"rmdir {folder}/gone"], capture_output=True, text=True, check=False)
        expect("the last line", ran.stderr.splitlines()[-1],
               f"memprof run: cannot write '{folder}/gone/run.memtrace': No such file or directory")
        expect("the verdict's beginning", json.loads((folder / "run.json").read_text())["verdict"][:4], "peak")


def check_limit_of_the_address_space():
    """Where there is no memory to record an allocation, the program goes on, and what was lost is said, however it ends."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        for end in ("exit", "_exit"):
            text = ("#include <stdlib.h>\n#include <sys/resource.h>\n#include <unistd.h>\nint main(void) {\n"
                    "  const struct rlimit least = {1 << 20, 1 << 20};\n  setrlimit(RLIMIT_AS, &least);\n"
                    f"  for (int i = 0; i < 100; ++i) free(malloc(100));\n  {end}(0);\n}}\n")
            ran = Run([built(pathlib.Path(name), "limited.c", text)])
            if ran.heap is not None:
                ran.expect(10_000, 100, 100)
                continue
            expect("exact", ran.profile["exact"], False)
            lost = re.search(r"no allocation of '.*' was recorded; (\d+) events were lost, as where", ran.said)
            # 200, and few of others' ends; a process that says no more at its end has said so at a power of two.
            if not lost or not (200 if end == "exit" else 128) <= int(lost[1]) < 210:
                sys.exit(f"what was lost is not said after {end}:\n" + ran.said)


def check_stacks_value():
    said = Run([PROGRAM], "--stacks=none", wanted_status=2, needs_profile=False).said
    if "'none' is not a value; expected sampled or all" not in said:
        sys.exit("the message is: " + said)


def check_stacks_of_a_killed_program():
    run = Run([PROGRAM, "stacks_and_kill"], "--stacks=all", wanted_status=-signal.SIGKILL)
    run.expect(EARLY + 70_000, 2, EARLY + 70_000, is_whole=False)
    if not re.search(r"^ *68\.4 KiB .*innermost", run.said, re.MULTILINE):
        sys.exit("nobody is said to have asked for 70,000 bytes:\n" + run.said)


def call_paths(page):
    """The paths of the nodes in a page's table `stack_nodes`, which viewer/DATA.md describes."""
    block = {name: gzip.decompress(base64.b64decode(re.search(f'id="memprof-{name}">([^<]*)<', page)[1])) for name in ("run", "columns")}
    detail = json.loads(block["run"])["detail"]
    table = next(each for each in detail["tables"] if each["name"] == "stack_nodes")
    values = {}
    for column in table["columns"]:
        numbers = values[column["name"]] = [0]
        shift = 0
        for byte in block["columns"][column["begin"]:column["begin"] + column["bytes"]]:
            numbers[-1] |= (byte & 0x7F) << shift
            shift = shift + 7 if byte >= 0x80 else 0
            if byte < 0x80:
                numbers.append(0)
    paths = []
    for parent, name in zip(values["parent"][:-1], values["name"][:-1], strict=True):
        paths.append((paths[parent - 1] if parent else []) + [detail["strings"][name]])
    return paths


def check_inlined():
    """Functions that the compiler inlined are calls like others, where debug information is read."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_"))
    try:
        source = folder / "inlined.cpp"
        source.write_text("#include <stdlib.h>\n"
                          "[[gnu::always_inline]] static inline void* inner(size_t n) { return malloc(n); }\n"
                          "[[gnu::always_inline]] static inline void* outer(size_t n) { return inner(n); }\n"
                          "int main() {\n  void* volatile p = outer(70000);\n  free(p);\n}\n")
        program = folder / "inlined"
        if subprocess.run(["c++", "-g", "-O2", "-o", program, source], capture_output=True, check=False).returncode != 0:
            skip("there is no C++ compiler")
        trace = folder / "run.memtrace"
        said = subprocess.run([TOOL, "run", "--stacks", "--trace", trace, "--", program], capture_output=True, text=True, check=True).stderr
        if "without libdw" in said:
            skip("this memprof reads no debug information")
        if "inner (inlined.cpp:2)" not in said:
            sys.exit("the inlined function is not named:\n" + said)
        stacks = folder / "stacks.txt"
        subprocess.run([TOOL, "export", trace, "--format", "collapsed", "-o", stacks], capture_output=True, check=True)
        wanted = "main (inlined.cpp:5);outer (inlined.cpp:3);inner (inlined.cpp:2) 70000\n"
        if wanted not in stacks.read_text():
            sys.exit("the calls are not in order:\n" + stacks.read_text())
        page = folder / "run.html"
        subprocess.run([TOOL, "report", trace, "-o", page], capture_output=True, check=True)
        path = ["main (inlined.cpp:5)", "outer (inlined.cpp:3)", "inner (inlined.cpp:2)"]
        if not any(each[-3:] == path for each in call_paths(page.read_text())):
            sys.exit("the page does not have the calls in order")
    finally:
        shutil.rmtree(folder)


def check_inlined_constructor():
    """Debug information has no linkage name for one, but its class has one that says whose it is."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        text = ("#include <stdlib.h>\n"
                "namespace std { struct room { void* p; template <class T> [[gnu::always_inline]] room(size_t n, T) : p(malloc(n)) {} }; }\n"
                "namespace { struct layer { void* p; [[gnu::always_inline]] layer(size_t n) : p(malloc(n)) {} }; }\n"
                "int main() {\n  std::room first(70000, [] {});\n  layer second(80000);\n"
                "  void* volatile p = first.p;\n  free(p);\n  p = second.p;\n  free(p);\n}\n")
        program = built(pathlib.Path(name), "inlined.cpp", text, "-g", "-O2")
        said = subprocess.run([TOOL, "run", "--stacks", "--", program], capture_output=True, text=True, check=True).stderr
        if "without libdw" in said:
            skip("this memprof reads no debug information")
        asked = sorted(line.split("  ")[-1] for line in said.splitlines() if "inlined.cpp:" in line)
        expect("who asked", asked, ["(anonymous namespace)::layer::layer (inlined.cpp:3)", "std::room::room in main (inlined.cpp:5)"])


def check_own_malloc():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_"))
    try:
        source = folder / "own.c"
        source.write_text("#include <stddef.h>\nstatic char store[1 << 20]; static size_t used;\n"
                          "void* malloc(size_t n) { void* p = store + used; used += (n + 15) & ~15ul; return p; }\n"
                          "void free(void* p) { (void)p; }\nint main(void) { return malloc(10) == NULL; }\n")
        program = folder / "own"
        if subprocess.run(["cc", "-fno-builtin", "-o", program, source], capture_output=True, check=False).returncode != 0:
            skip("there is no C compiler")
        if "malloc not captured: the program has a malloc of its own" not in Run([program]).said:
            sys.exit("nothing is said about the program's own malloc")
    finally:
        shutil.rmtree(folder)


def check_memory_past_malloc():
    """100 MiB from mmap alone: the summary and its caveats say so, whether they are there in the end or not."""
    text = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
void* NAME(size_t n) { return mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(int count, char** words) {
  (void)words;
  void* p = NAME(100 << 20);
  free(malloc(1000));
  memset(p, 1, 100 << 20);
  return count > 1 ? munmap(p, 100 << 20) : 0;
}
"""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        plain = built(folder, "plain.c", text.replace("NAME", "take"))
        for words in ([plain], [plain, "unmap"]):
            run = Run(words, "--json", folder / "run.json", needs_profile=True)
            reason = run.missing().get("memory past malloc", "nothing")
            if not re.fullmatch(r"100 MiB of 10\d MiB resident, such as mappings, which --mmap records, static data or stacks", reason):
                sys.exit("the reason is: " + reason)
            if not re.search(r"^Accuracy +incomplete", run.said, re.MULTILINE):
                sys.exit("the summary is not incomplete:\n" + run.said)
            expect("the caveats", json.loads((folder / "run.json").read_text())["caveats"], ["memory past malloc not captured: " + reason])
        expect("what was not captured with --mmap", Run([plain], "--mmap").missing(), {})
        expect("what was not captured of another program", Run([PROGRAM, "family"]).missing(), {})
        for function in ("je_malloc", "mi_malloc", "tc_malloc", "_rjem_malloc"):
            run = Run([built(folder, "own.c", text.replace("NAME", function))])
            expect("what was not captured", list(run.missing()), [function, "memory past malloc"])
            library = text.replace("NAME", function).split("int main")[0]
            built(folder, "libown.c", library, "-shared", "-fPIC")
            user = text.replace("void* NAME(size_t n) {", "void* NAME(size_t n); void* other(size_t n) {").replace("NAME", function)
            run = Run([built(folder, "linked.c", user, f"-L{folder}", "-lown", f"-Wl,-rpath,{folder}")])
            expect("why it was not captured", run.missing()[function],
                   "that of libown.so does not call malloc; --mmap records the pages that it maps")


def check_address_of_malloc():
    """An executable that cannot be moved has its own address for `malloc`, behind which is the library's."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        program = built(pathlib.Path(folder), "address.c",
                        "#include <stdlib.h>\nvoid* (*volatile take)(size_t) = malloc;\n"
                        "int main(void) { free(take(5000)); free(malloc(70000)); return 0; }\n", "-no-pie", "-fno-pie")
        run = Run([program])
        run.expect(75_000, 2, 70_000)
        expect("what was not captured", run.missing(), {})
        python = "/usr/bin/python3"  # Debian's is such a program
        if os.path.exists(python):
            run = Run([python, "-c", ""], variables={"PYTHONMALLOC": "malloc"})
            expect("what was not captured", run.missing(), {})


def check_constructors():
    """They run once, though the recording ends after the libraries' destructors."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memprof_check_run_"))
    try:
        (folder / "library.c").write_text("#include <stdlib.h>\n#include <unistd.h>\n"
                                          "__attribute__((constructor)) static void begin(void) { free(malloc(7)); (void)!write(1, \"begun\\n\", 6); }\n"
                                          "__attribute__((destructor)) static void end(void) { (void)!write(1, \"ended\\n\", 6); }\n"
                                          "void use(void) {}\n")
        (folder / "program.c").write_text("void use(void);\nint main(void) { use(); return 0; }\n")
        if subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", "liblibrary.so", "library.c"], cwd=folder, capture_output=True,
                          check=False).returncode != 0:
            skip("there is no C compiler")
        subprocess.run(["cc", "-o", "program", "program.c", "-L.", "-llibrary", f"-Wl,-rpath,{folder}"], cwd=folder, check=True)
        run = Run([folder / "program"])
        run.expect(7, 1, 7)
        expect("what the library printed", run.output, "begun\nended\n")
    finally:
        shutil.rmtree(folder)


def check_program_with_memprof():
    """Its blocks are recorded once, with the operations and segments of its own capture."""
    include = pathlib.Path(__file__).resolve().parents[3] / "include"
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        program = built(pathlib.Path(folder), "itself.cpp", """
#include <memprof/memprof.hpp>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <thread>
int main(int count, char**) {
  if (count > 1) return 0;
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"forward">();
    void* volatile block = std::malloc(5'000'000);
    std::free(block);
    for (int round = 0; round < 2; ++round) {
      auto inner = memprof::track_operation("inner");
      block = std::malloc(3);
      std::free(block);
    }
    const pid_t child = fork();
    if (child == 0) return 0;  // ends what its parent began
    waitpid(child, nullptr, 0);
  }
  memprof::snapshot("STEP");
  std::thread{[] {
    auto scope = memprof::track_operation<"elsewhere">();
    void* volatile block = std::malloc(7);
    std::free(block);
  }}.join();
  memprof::operation_handle ended;
  {
    auto scope = memprof::track_operation<"led">();
    ended = memprof::current_operation();
    std::thread{[handle = ended] {
      auto adopted = memprof::adopt_operation(handle);
      void* volatile block = std::malloc(1000);
      std::free(block);
      std::thread{[again = memprof::current_operation()] {
        auto adopted_again = memprof::adopt_operation(again);
        auto nested = memprof::track_operation<"nested">();
        void* volatile inner = std::malloc(200);
        std::free(inner);
      }}.join();
    }}.join();
  }
  {
    auto late = memprof::adopt_operation(ended);
    void* volatile block = std::malloc(30);
    std::free(block);
  }
  capture.end();
  return capture.profile().operations.size() == 5 ? 0 : 1;
}
""", "-std=c++20", f"-I{include}", "-pthread", "-ldl")  # exports nothing
        subprocess.run(["strip", program], check=False)
        run = Run([program])
        expect("what was not captured", run.missing(), {})
        seen = {each["name"]: (each["invocations"], each["usage"][0]["allocated"]) for each in run.profile["operations"]}
        # A thread that works for an operation is part of it; what the C library takes for the threads that it begins counts there, too.
        led = seen.pop("led")
        expect("operations", seen, {"elsewhere": (1, 7), "forward": (1, 5_000_006), "inner": (2, 6), "nested": (1, 200)})
        expect("the invocations of led", led[0], 1)
        if led[1] < 1000 + 200 + 30 or led[1] > 10_000:
            sys.exit(f"adopted operations have {led[1]} bytes")
        expect("segments", [each["name"] for each in run.profile["segments"]], ["STEP", "END_TRACE"])
        children = Run([program], "--children", "--stacks=all")
        expect("operations and traces with children", (len(children.profile["operations"]), len(children.traces)), (5, 2))
        expect("anomalies of scopes", children.profile["anomalies"]["unbalanced_scopes"], 0)
        if run.heap["cumulative_peak"] < 5_000_000 or run.heap["cumulative_peak"] >= 10_000_000:
            sys.exit(f"the peak is {run.heap['cumulative_peak']}")
        expect("what was not captured without a capture", Run([program, "none"]).missing(), {})


def expect_mappings(run, pages, blocks, peak_pages):
    seen = run.space("mmap")
    expect("pages, blocks, greatest number of pages and bytes at the end",
           (seen["allocations"] / PAGE, seen["allocation_count"], seen["cumulative_peak"] / PAGE, seen["cumulative_current"]),
           (pages, blocks, peak_pages, 0))
    expect("anomalies", [name for name, each in seen["anomalies"].items() if each["count"] != 0 and name != "cross_thread_frees"], [])
    expect("exact", run.profile["exact"], True)


def check_mappings():
    run = Run([PROGRAM, "mappings"], "--mmap")
    run.expect(EARLY, 1, EARLY)
    expect_mappings(run, 53, 14, 16)
    expect_mappings(Run([PROGRAM, "mappings"], "--mmap", "--stacks=all"), 53, 14, 16)
    expect("the space without --mmap", Run([PROGRAM, "mappings"]).space("mmap"), None)
    expect("the space of a program without mappings", Run([PROGRAM, "family"], "--mmap").space("mmap"), None)


def check_mappings_of_threads():
    run = Run([PROGRAM, "mapping_threads"], "--mmap")
    expect_mappings(run, 8000, 8000, run.space("mmap")["cumulative_peak"] // PAGE)
    if run.space("mmap")["cumulative_peak"] > 8 * PAGE:
        sys.exit(f"the peak of 8 threads is {run.space('mmap')['cumulative_peak']}")


def check_mappings_of_children():
    expect_mappings(Run([PROGRAM, "mapping_forks"], "--mmap"), 2, 1, 2)
    run = Run([PROGRAM, "mapping_forks"], "--mmap", "--children")
    expect_mappings(run, 2, 1, 2)
    children = peaks_of_others(run)
    expect("the peaks of the children", children, ["12.0 KiB" if PAGE == 4096 else children[0]] * 20)


def check_mappings_of_an_allocator():
    """What `malloc` takes from the system is not counted again."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        allocator = built(pathlib.Path(folder), "liballocator.cpp", ALLOCATOR, "-shared", "-fPIC")
        run = Run([PROGRAM, "mappings"], "--mmap", variables={"LD_PRELOAD": str(allocator)})
        expect_mappings(run, 53, 14, 16)


def check_python():
    """Its own allocator for small objects takes memory past `malloc`, unless PYTHONMALLOC says otherwise."""
    reason = "they are in memory from mmap; with PYTHONMALLOC=malloc they are recorded"
    for python in {os.path.realpath(sys.executable), os.path.realpath("/usr/bin/python3")}:
        if not os.path.exists(python):
            continue
        for value, missing in [(None, True), ("pymalloc", True), ("debug", True), ("malloc", False), ("malloc_debug", False)]:
            run = Run([python, "-c", ""], variables={"PYTHONMALLOC": value} if value else {})
            expect(f"what was not captured of {python} with {value}", named_missing(run), {"Python's small objects": reason} if missing else {})
        ignored = "they are in memory from mmap, which --mmap records: Python ignored PYTHONMALLOC (-E or -I)"
        for option in ("-E", "-I", "-sBE"):
            run = Run([python, option, "-c", ""], variables={"PYTHONMALLOC": "malloc"})
            expect(f"what was not captured of {python} {option}", named_missing(run), {"Python's small objects": ignored})
        run = Run([python, "-c", "", "-E"], variables={"PYTHONMALLOC": "malloc"})
        expect("what was not captured where -E is the program's", run.missing(), {})
        run = Run([python, "-c", ""], "--mmap")
        expect(f"what was not captured of {python} with --mmap", run.missing(), {})
        if run.space("mmap")["cumulative_peak"] < 256 * 1024:  # an arena, the least of all versions
            sys.exit(f"the mappings of {python} have a peak of {run.space('mmap')['cumulative_peak']}")


def check_other_malloc():
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    library = next((each for each in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2") if each in listed), None)
    if library is None:
        skip("neither jemalloc, tcmalloc nor mimalloc is installed")
    family, empty = (Run([PROGRAM, mode], variables={"LD_PRELOAD": library}).heap for mode in ("family", "empty"))
    # It brings the C++ library, which takes a block for itself.
    expect("allocated", family["allocations"] - empty["allocations"], FAMILY + PAGE)
    expect("blocks", family["allocation_count"] - empty["allocation_count"], 13)
    expect("blocks freed", family["deallocation_count"] - empty["deallocation_count"], 13)
    expect("unmatched frees", family["anomalies"]["unmatched_frees"]["count"], 0)
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as folder:
        program = built(pathlib.Path(folder), "vector.cpp", VECTOR)
        missing = Run([program], variables={"LD_PRELOAD": library}).missing()
        expect("sources not captured", list(missing), ["operator new"])


ALLOCATOR = """
#include <sys/mman.h>
#include <cstddef>
#include <cstring>
#include <new>
static const std::size_t size = 32 << 20;
static unsigned char* store;
static std::size_t used;
static void* take(std::size_t alignment, std::size_t bytes) {
  if (store == nullptr)
    store = static_cast<unsigned char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::size_t begin = (used + 16 + alignment - 1) / alignment * alignment;  // after the size
  if (bytes > size - begin) return nullptr;
  used = begin + bytes;
  std::memcpy(store + begin - 8, &bytes, 8);
  return store + begin;
}
extern "C" {
std::size_t malloc_usable_size(void* p) { std::size_t n = 0; if (p) std::memcpy(&n, static_cast<char*>(p) - 8, 8); return n; }
void* malloc(std::size_t n) { return take(16, n); }
void* memalign(std::size_t alignment, std::size_t n) { return take(alignment, n); }
void* calloc(std::size_t n, std::size_t each) { return std::memset(take(16, n * each), 0, n * each); }
void free(void*) {}
void* realloc(void* p, std::size_t n) {
  void* moved = take(16, n);
  std::size_t had = malloc_usable_size(p);
  if (moved == nullptr) return moved;
  return std::memcpy(moved, p, had < n ? had : n);
}
}
void* operator new(std::size_t n) { return take(16, n); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
"""
VECTOR = """
#include <vector>
int main() { std::vector<char> v(10'000'000); asm volatile("" : : "r"(v.data()) : "memory"); }
"""


def check_other_operator_new():
    """That of jemalloc, tcmalloc or mimalloc takes memory past `malloc`."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        allocator = built(folder, "liballocator.cpp", ALLOCATOR, "-shared", "-fPIC")
        program = built(folder, "vector.cpp", VECTOR)
        plain = Run([program])
        expect("what was not captured", plain.missing(), {})
        if plain.heap["cumulative_peak"] < 10_000_000:
            sys.exit(f"the peak is {plain.heap['cumulative_peak']}")
        wanted = {"operator new": "that of liballocator.so does not call malloc"}
        seen = named_missing
        run = Run([program], variables={"LD_PRELOAD": str(allocator)})
        expect("what was not captured", seen(run), wanted)
        if not re.search(r"^Accuracy +incomplete", run.said, re.MULTILINE):
            sys.exit("the summary is not incomplete:\n" + run.said)
        linked = built(folder, "linked.cpp", VECTOR, f"-L{folder}", "-lallocator", f"-Wl,-rpath,{folder}")
        expect("what was not captured", seen(Run([linked])), wanted)
        # A program of C does not call it, unless it loads a library of C++.
        run = Run([PROGRAM, "family"], variables={"LD_PRELOAD": str(allocator)})
        expect("what was not captured", run.missing(), {})
        plugin = built(folder, "libplugin.cpp", VECTOR, "-shared", "-fPIC")
        loader = built(folder, "loader.c", "#include <dlfcn.h>\nint main(int n, char** words) "
                                           "{ return n != 2 || !dlopen(words[1], RTLD_NOW | RTLD_LOCAL); }\n", "-ldl")
        run = Run([loader, plugin], variables={"LD_PRELOAD": str(allocator)})
        expect("what was not captured", seen(run), wanted)


def check_deep_binding():
    """A library that is opened so calls the C library's `malloc`, which is said, but not of one that is opened as usual."""
    with tempfile.TemporaryDirectory(prefix="memprof_check_run_") as name:
        folder = pathlib.Path(name)
        built(folder, "libplugin.c", "#include <stdlib.h>\nvoid work(void) { void* volatile block = malloc(10000); free(block); }\n", "-shared", "-fPIC")
        program = built(folder, "program.c", """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char** words) {
  void* library = dlopen(words[1], RTLD_LAZY | (count > 2 ? RTLD_DEEPBIND : 0));
  if (library == NULL) return 1;
  ((void (*)(void))dlsym(library, "work"))();
  return 0;
}
""", "-ldl")
        usual = Run([program, folder / "libplugin.so"])
        expect("what was not captured", usual.missing(), {})
        deep = Run([program, folder / "libplugin.so", "deep"])
        expect("the bytes that only the usual one recorded", usual.heap["allocations"] - deep.heap["allocations"], 10_000)
        expect("what was not captured", deep.missing(), {"libplugin.so": "it was opened with RTLD_DEEPBIND, by which it calls the malloc of libc.so.6"})
        if not re.search(r"^Accuracy +incomplete", deep.said, re.MULTILINE):
            sys.exit("the summary is not incomplete:\n" + deep.said)


def counted_by_dhat(command):
    """Bytes, blocks and the greatest number of live bytes, according to valgrind."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(["valgrind", "--tool=dhat", f"--dhat-out-file={folder}/out", *command], capture_output=True, text=True,
                             check=True)
    number = lambda pattern: int(re.search(pattern, ran.stderr)[1].replace(",", ""))
    return number(r"Total: +([\d,]+) bytes"), number(r"Total: .* in ([\d,]+) blocks"), number(r"At t-gmax: ([\d,]+) bytes")


def check_dhat():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    expect("bytes, blocks and peak of a program by DHAT", counted_by_dhat([PROGRAM, "standard"]),
           (EARLY + FAMILY, 13, EARLY + 2048))
    rows = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)"
    query = f"create table t(a); insert into t {rows} select x from c; select sum(a) from t order by 1"
    for command in [["sqlite3", ":memory:", query], ["ls", "-lR", "/usr/share/doc/gcc"], ["sort", "-R", "/etc/services"]]:
        if not shutil.which(command[0]):
            print(f"{command[0]} is not installed")
            continue
        heap = Run(command).heap
        if command[0] == "sort":  # in random order, but of the same size
            expect("blocks of sort", heap["allocation_count"], counted_by_dhat(command)[1])
            continue
        expect(f"bytes, blocks and peak of {command[0]}",
               (heap["allocations"], heap["allocation_count"], heap["cumulative_peak"]), counted_by_dhat(command))


CASES = {name.removeprefix("check_"): case for name, case in list(globals().items()) if name.startswith("check_")}

if len(sys.argv) < 4:
    print("\n".join(CASES))
    sys.exit(0)
TOOL, PROGRAM = sys.argv[1], sys.argv[2]
CASES[sys.argv[3]]()
