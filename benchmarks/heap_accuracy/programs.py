"""The programs that are compared. Each needs no preparation but files in a scratch folder, takes seconds, and prints little."""

from __future__ import annotations

import dataclasses
import pathlib
import random
import shutil
import subprocess
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Program:
    command: list[str]
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    version: str = ""


class Missing(Exception):
    """What a program needs is not installed."""


def _found(name: str, package: str) -> str:
    path = shutil.which(name, path="/usr/bin:/bin")
    if path is None:
        raise Missing(f"{name} ({package})")
    return path


def _first_line(*command: str | pathlib.Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()


def _cc1plus(folder: pathlib.Path, _: pathlib.Path) -> Program:
    compiler = _found("g++", "g++")
    source = folder / "words.cpp"
    source.write_text("""#include <map>
#include <string>
int main() {
  std::map<std::string, int> words;
  for (const char* each : {"a", "b", "a"}) ++words[each];
  return words["a"];
}
""", encoding="utf-8")
    own = _first_line(compiler, "-print-prog-name=cc1plus")
    return Program([own, "-quiet", "-O1", "-imultiarch", _first_line(compiler, "-print-multiarch"), "-D_GNU_SOURCE", str(source), "-o", str(folder / "words.s")], version=_first_line(compiler, "--version"))


def _xz(folder: pathlib.Path, _: pathlib.Path) -> Program:
    packer = _found("xz", "xz-utils")
    data = folder / "data"
    data.write_bytes(random.Random(2026).randbytes(500_000))
    # Two blocks for two threads: the first thread is still at work when the second block is there.
    return Program([packer, "-T2", "-3", "--block-size=256KiB", "--keep", "--stdout", str(data)], version=_first_line(packer, "--version"))


def _sqlite3(_: pathlib.Path, __: pathlib.Path) -> Program:
    shell = _found("sqlite3", "sqlite3")
    rows = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 4000)"
    return Program([shell, ":memory:", f"create table t(a, b); insert into t {rows} select x, hex(x * 7919) from c; "
                    "create index i on t(b); select count(*), sum(a) from t group by a % 7 order by 1"],
                   version="SQLite " + _first_line(shell, "--version").split()[0])


def _numpy(folder: pathlib.Path, _: pathlib.Path) -> Program:
    python = _found("python3", "python3")
    version = subprocess.run([python, "-c", "import numpy; print(numpy.__version__)"], capture_output=True, text=True, check=False)
    if version.returncode != 0:
        raise Missing("numpy (python3-numpy)")
    script = folder / "eigenvalues.py"
    script.write_text("""import numpy
a = numpy.random.default_rng(1).random((200, 200))
print(numpy.linalg.eigvalsh(a @ a.T)[-1] > 0, numpy.sort(a, axis=None)[5] > 0)
""", encoding="utf-8")
    return Program([python, str(script)], {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
                   f"{_first_line(python, '--version')}, numpy {version.stdout.strip()}")


def _test_suite(folder: pathlib.Path, _: pathlib.Path) -> Program:
    compiler = _found("g++", "g++")
    source = pathlib.Path("/usr/src/googletest/googlemock/test/gmock-more-actions_test.cc")
    if not source.exists():
        raise Missing("googletest's own tests (googletest, libgmock-dev)")
    program = folder / "suite"
    subprocess.run([compiler, "-std=c++17", "-o", program, source, "-lgmock_main", "-lgmock", "-lgtest"], check=True, capture_output=True)
    # Times would be texts of different lengths.
    return Program([str(program), "--gtest_print_time=0", "--gtest_filter=-*Death*"], version="googletest's gmock-more-actions_test")


def _training(name: str, size: str) -> Callable[[pathlib.Path, pathlib.Path], Program]:
    def program(_: pathlib.Path, trainings: pathlib.Path) -> Program:
        path = trainings / f"training_{name}"
        if not path.exists():
            raise Missing(f"examples/trainings/{name}.cpp, built")
        return Program([str(path), size], {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}, f"size {size}")

    return program


#: By name, what writes the program's files into a folder and returns it. Raises Missing.
PROGRAMS: dict[str, Callable[[pathlib.Path, pathlib.Path], Program]] = {
    "cc1plus": _cc1plus,
    "xz": _xz,
    "sqlite3": _sqlite3,
    "numpy": _numpy,
    "test suite": _test_suite,
    "LightGBM": _training("lightgbm", "0.02"),
    "faiss": _training("faiss", "0.1"),
    "dlib": _training("dlib", "0.1"),
}
