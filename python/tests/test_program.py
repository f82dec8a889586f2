from __future__ import annotations

import os
import pathlib
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
