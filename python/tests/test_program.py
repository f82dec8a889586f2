from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig

import memprof


def memprof_run(*arguments: str | os.PathLike[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "memprof", *arguments], capture_output=True, text=True)


def test_module_and_script_are_the_program() -> None:
    expected = f"memprof {memprof.__version__}\n"
    assert memprof_run("--version").stdout == expected
    script = os.path.join(sysconfig.get_path("scripts"), "memprof")
    assert subprocess.run([script, "--version"], check=True, capture_output=True, text=True).stdout == expected


def test_the_program_shows_what_python_wrote(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.save(tmp_path / "run.memtrace")
    done = memprof_run("show", tmp_path / "run.memtrace")
    assert done.returncode == 0 and "(1,500 B) of dram" in done.stdout


def test_the_programs_exit_status_is_its_own(tmp_path: pathlib.Path) -> None:
    done = memprof_run("show", tmp_path / "absent")
    assert done.returncode == 2 and "absent" in done.stderr


def unread(*arguments: str | os.PathLike[str], stderr: bool = False) -> subprocess.CompletedProcess[str]:
    """A run whose standard output, or both outputs, nobody reads any more when it begins."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        call = [sys.executable, "-m", "memprof", *arguments]
        return subprocess.run(call, stdout=writer, stderr=writer if stderr else subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writer)


def test_a_closed_pipe_ends_every_subcommand_without_a_word(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.memtrace"
    recorded.trace.save(path)
    for call in (("show", path), ("show", "--json", path), ("trace", path), ("analyze", path), ("help",), ("completion", "bash"), ("leaks", path)):
        done = unread(*call)
        assert done.stderr == "" and done.returncode == -signal.SIGPIPE, call  # as any program of the shell's
    for call in (("fit", "--help"), ("config", "--help")):
        done = unread(*call)
        assert (done.stderr, done.returncode) == ("", 0), call


def test_a_script_keeps_its_exit_status_where_nobody_reads(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nsys.exit(7)\n")
    assert unread("run", script).returncode == 7
    assert unread("run", script, stderr=True).returncode == 7


def test_a_program_finds_the_signal_of_closed_pipes_as_it_was() -> None:
    script = "import signal; print(open('/proc/self/status').read().split('SigIgn:')[1].split()[0])"
    done = memprof_run("run", "--", sys.executable, "-c", script)
    plain = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == plain.stdout


def test_help_of_fit_has_the_options_of_scripts_and_of_models() -> None:
    from memprof._fit import _request

    for call in (("fit", "--help"), ("fit", "-h"), ("help", "fit"), ("fit", "--device", "gpu-24gb", "--help", "train.py")):
        done = memprof_run(*call)
        assert done.returncode == 0, done.stderr
        for option in (*_request._VALUES, *_request._FLAGS, "--d-model"):
            assert re.search(rf"^  {option}\b", done.stdout, re.MULTILINE), (call, option)
        assert max(map(len, done.stdout.splitlines())) <= 80
