from __future__ import annotations

import os
import pathlib
import re
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


def test_help_of_fit_has_the_options_of_scripts_and_of_models() -> None:
    from memprof._fit import _request

    for call in (("fit", "--help"), ("fit", "-h"), ("help", "fit"), ("fit", "--device", "gpu-24gb", "--help", "train.py")):
        done = memprof_run(*call)
        assert done.returncode == 0, done.stderr
        for option in (*_request._VALUES, *_request._FLAGS, "--d-model"):
            assert re.search(rf"^  {option}\b", done.stdout, re.MULTILINE), (call, option)
        assert max(map(len, done.stdout.splitlines())) <= 80
