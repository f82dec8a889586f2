"""`memprof fit` of Python scripts: the largest number that fits, found by simulated runs."""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import memprof
import pytest
from memprof._fit._outcome import Outcome
from memprof._fit._request import Number, Request
from memprof._fit._search import Edge, find_edge

MIB = 1 << 20
Fit = Callable[..., "subprocess.CompletedProcess[str]"]

# A step takes 2 MiB for small tensors (the pool that they share) and 4 MiB for each row, all in one block, in `inner`.
SCRIPT = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--extra-if-odd", type=int, default=0)
options = parser.parse_args()
print("the script's own words", flush=True)


class Inner(torch.nn.Module):
    def forward(self, weight):
        size = 4 * options.batch_size + (options.extra_if_odd if options.batch_size % 2 else 0)
        rows = torch.empty(size << 18, device="cuda")
        return (weight * 2).sum()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1024))
        self.inner = Inner()

    def forward(self):
        return self.inner(self.weight)


model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters())
for step in range(options.steps):
    optimizer.zero_grad()
    model().backward()
    optimizer.step()
    with open("steps.txt", "a") as file:
        file.write(".")
"""


@pytest.fixture
def fit(tmp_path: pathlib.Path) -> Fit:
    """Runs `memprof fit OPTIONS train.py ARGUMENTS`."""
    pytest.importorskip("torch")

    def run(text: str, *options: str, arguments: tuple[str, ...] = (), device: str = "100MiB") -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "memprof", "fit", "--device", device, *options, "train.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


def test_the_edge_is_that_of_arithmetic(fit: Fit, tmp_path: pathlib.Path) -> None:
    done = fit(SCRIPT, "--json-out", "fit.json", arguments=("--batch-size", "16"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and "the script's own words" not in done.stdout
    # 2 + 4 * 24 of 100 MiB.
    lines = done.stdout.splitlines()
    assert lines[0] == "fits 100MiB: 66.0 of 100.0 MiB"
    assert "Largest   --batch-size 24: fits, 98.0 of 100.0 MiB" in lines
    assert "          --batch-size 25: does not fit, 102.0 of 100.0 MiB, in forward of inner" in lines
    assert "Device    gpu-24gb is the smallest preset that it fits" in lines
    document = json.loads((tmp_path / "fit.json").read_text())
    assert document["given"]["reserved"] == 66 * MIB
    assert document["largest"]["value"] == 24 and document["largest"]["outcome"]["reserved"] == 98 * MIB
    assert document["largest"]["one_more"]["requested"] == 100 * MIB
    # Each trial made two steps, the second of which was not ended.
    assert set((tmp_path / "steps.txt").read_text()) == {"."}
    assert document["given"]["optimizer_steps"] == 2


@pytest.mark.parametrize("batch, status", [(16, 0), (40, 3)])
@pytest.mark.parametrize("lines", [0, 1])
def test_a_reader_who_has_seen_enough_ends_the_search(fit: Fit, tmp_path: pathlib.Path, batch: int, status: int, lines: int) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    call = [sys.executable, "-m", "memprof", "fit", "--device", "100MiB", "train.py", "--batch-size", str(batch)]
    with subprocess.Popen(call, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        for _ in range(lines):
            assert "fit" in running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == status


def test_a_file_has_the_whole_answer_though_nobody_reads(fit: Fit, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    reader, writer = os.pipe()
    os.close(reader)
    call = [sys.executable, "-m", "memprof", "fit", "--device", "100MiB", "--json-out", "fit.json", "train.py", "--batch-size", "16"]
    done = subprocess.run(call, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "fit.json").read_text())["largest"]["value"] == 24


def test_packages_are_imported_once_wherever_they_are(fit: Fit, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = "with open('imports.txt', 'a') as file:\n    file.write(__name__ + ' ')\n"
    target = tmp_path / "target"  # as of `pip install --target`
    (target / "framework-1.0.dist-info").mkdir(parents=True)
    (target / "framework.py").write_text(noted)
    (target / "late.py").write_text(noted)
    (tmp_path / "own.py").write_text(noted)
    monkeypatch.setenv("PYTHONPATH", str(target))
    done = fit("import framework\nimport own\n" + SCRIPT + "    import late\n", arguments=("--batch-size", "4"))
    assert done.returncode == 0, done.stderr
    counts = {name: (tmp_path / "imports.txt").read_text().split().count(name) for name in ("framework", "late", "own")}
    # Before all trials; in the first trial, and then for all others; in each trial.
    assert counts["framework"] == 1 and counts["late"] == 2 and counts["own"] > 2


def test_the_edge_is_that_of_independent_runs(fit: Fit, tmp_path: pathlib.Path) -> None:
    """Of the live bytes, which the simulation itself compares with the device at each allocation."""
    done = fit(SCRIPT, "--json", arguments=("--batch-size=40",))
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert not document["fits"] and document["largest"]["value"] == 24
    device = {"cuda:0": 100 * MIB}
    (tmp_path / "device.json").write_text(
        json.dumps(
            {
                "format": "memprof-device",
                "version": 1,
                "name": "card",
                "spaces": [{"name": name, "capacity": capacity, "size_multiple": 512} for name, capacity in device.items()],
            }
        )
    )
    alone = "import memprof, runpy, sys\nwith memprof.no_dispatch(device='device.json', raise_out_of_memory=True):\n"
    alone += "    sys.argv = ['train.py', '--steps', '2', '--batch-size', sys.argv[1]]\n"
    alone += "    runpy.run_path('train.py', run_name='__main__')\n"
    status = {}
    for batch in (24, 25):
        run = subprocess.run([sys.executable, "-c", alone, str(batch)], cwd=tmp_path, capture_output=True, text=True)
        status[batch] = run.returncode
        assert ("OutOfMemoryError" in run.stderr) == (batch == 25), run.stderr
    assert status[24] == 0 and status[25] == 1


def test_what_does_not_fit_hears_what_would_help(fit: Fit) -> None:
    text = """
    import os
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

        def forward(self, x):
            return self.second(torch.sigmoid(self.first(x)))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.nn.ModuleList(Block() for _ in range(8))

        def forward(self, x):
            for block in self.h:
                x = block(x)
            return x

    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for step in range(100):
        x = torch.empty(int(os.environ.get("ROWS", 1 << 16)), 64, device="cuda")
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    """
    done = fit(text, "--json", "--vary", "env:ROWS", device="200MiB")
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    # 16 MiB a tensor: input, and in each block the sigmoid and the output.
    assert document["given"]["live"] > 17 * 16 * MIB
    assert document["varied"] == {"name": "env:ROWS", "given": None}
    assert document["largest"]["outcome"]["fits"] and not document["largest"]["one_more"]["fits"]
    changes = {tuple(change["changes"]): change for change in document["changes"]}
    recomputed = changes[("recompute __main__.Block",)]
    assert recomputed["text"] == "recomputing each Block (8 in h; torch.utils.checkpoint)"
    # 9 inputs and outputs of blocks, and what is in one block and its backward pass: 9 + 4 tensors at most.
    assert recomputed["ran"] and 9 * 16 * MIB < recomputed["outcome"]["live"] < 14 * 16 * MIB
    assert recomputed["outcome"]["live"] < document["given"]["live"]
    # Each activation in half the bytes; the input in both.
    assert changes[("autocast",)]["outcome"]["live"] < 0.75 * document["given"]["live"]


def test_the_parts_add_up_and_the_context_takes_its_share(fit: Fit) -> None:
    done = fit(SCRIPT, "--json", "--context", "10MiB", arguments=("--batch-size", "16"))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    given, parts = document["given"], {part["part"]: part for part in document["given"]["parts"]}
    assert given["total"] == sum(part["bytes"] for part in given["parts"]) == given["reserved"] + 10 * MIB == 76 * MIB
    assert given["fits"] and given["certain"]
    context = {"part": "CUDA context", "bytes": 10 * MIB, "least_bytes": 10 * MIB, "most_bytes": 10 * MIB, "source": ""}
    assert parts.pop("CUDA context") == context
    # The rows, in forward; weight, its gradient and so on.
    assert parts["parameters"]["bytes"] == 4096
    assert sum(part["bytes"] for name, part in parts.items() if name != "rounding and fragmentation") == given["live"]
    assert parts["rounding and fragmentation"]["bytes"] == 66 * MIB - given["live"]
    # 10 + 2 + 4 * 22 of 100 MiB.
    assert document["largest"]["value"] == 22 and document["largest"]["one_more"]["total"] == 104 * MIB


@pytest.mark.parametrize(
    "rows, verdict",
    [
        # Of 24,207 MiB, an RTX 4090's context takes 473 to 504; the rest 4 a row, and 2.
        (5925, "fits gpu-24gb: "),
        (5926, "probably does not fit gpu-24gb: "),
        (5933, "probably does not fit gpu-24gb: "),
        (5934, "does not fit gpu-24gb: "),
    ],
)
def test_where_the_context_decides_the_answer_is_uncertain(fit: Fit, rows: int, verdict: str) -> None:
    done = fit(SCRIPT, "--only-as-given", arguments=("--batch-size", str(rows)), device="gpu-24gb")
    assert done.returncode == (0 if verdict.startswith("fits") else 3), done.stderr
    assert done.stdout.startswith(verdict)
    said = " ".join(done.stdout.split())
    assert " Parts CUDA context 0.492, " in said and "rounding and fragmentation < 0.01 GiB" in said
    assert " Besides CUDA context 473 MiB to 504 MiB: 3 published out-of-memory messages, RTX 4090 " in said


def test_the_workspaces_of_cublas_are_a_part(fit: Fit) -> None:
    text = """
    import torch

    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for step in range(2):
        model(torch.randn(4096, 512, device="cuda")).sum().backward()
        optimizer.step()
    """
    done = fit(text, "--json", "--only-as-given", device="gpu-24gb")
    assert done.returncode == 0, done.stderr
    given = json.loads(done.stdout)["given"]
    parts = {part["part"]: part["bytes"] for part in given["parts"]}
    # In the forward and the backward pass, as PyTorch gives them to cuBLAS before Hopper; and cuBLASLt's, for the bias.
    assert parts["cuBLAS workspaces"] == 2 * (2 * 4096 + 8 * 16) * 1024 + MIB
    assert sum(parts.values()) == given["total"] == given["reserved"] + parts["CUDA context"]


def test_what_is_not_known_is_said_and_not_counted(fit: Fit) -> None:
    text = """
    import torch

    model = torch.nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for step in range(2):
        model(torch.randn(4, 3, 64, 64, device="cuda")).sum().backward()
        optimizer.step()
    """
    done = fit(text, "--only-as-given")
    assert done.returncode == 0, done.stderr
    assert "Besides   CUDA context: not known for this device, and not counted\n" in done.stdout
    assert "          cuDNN workspaces: not known for this device, and not counted\n" in done.stdout
    done = fit(text, "--json", "--only-as-given", device="gpu-40gb")
    given = json.loads(done.stdout)["given"]
    cudnn = given["parts"][-1]
    assert cudnn["part"] == "cuDNN workspaces" and "A100" in cudnn["source"]
    assert cudnn["least_bytes"] < cudnn["bytes"] < cudnn["most_bytes"]
    assert given["total"] == sum(part["bytes"] for part in given["parts"])


def test_the_json_has_the_keys_of_its_schema(fit: Fit) -> None:
    schema = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "fit_script.schema.json").read_text())
    done = fit(SCRIPT, "--json", arguments=("--batch-size", "40"))
    document = json.loads(done.stdout)
    outcome, part = schema["definitions"]["outcome"], schema["definitions"]["part"]
    change = schema["definitions"]["change"]
    assert set(schema["required"]) <= set(document) <= set(schema["properties"])
    assert set(document["given"]) == set(outcome["properties"]) == set(outcome["required"])
    assert set(document["largest"]) == set(schema["definitions"]["largest"]["properties"])
    assert document["changes"] and all(set(each) == set(change["properties"]) for each in document["changes"])
    assert all(set(each) == set(part["properties"]) == set(part["required"]) for each in document["given"]["parts"])
    assert (schema["properties"]["format"]["const"], schema["properties"]["version"]["const"]) == (
        document["format"],
        document["version"],
    )


def test_a_script_whose_memory_is_not_monotone_gets_a_true_edge(fit: Fit) -> None:
    done = fit(SCRIPT, "--json", arguments=("--batch-size", "8", "--extra-if-odd", "8"))
    assert done.returncode == 0, done.stderr
    largest = json.loads(done.stdout)["largest"]
    # 2 + 4 n MiB, 8 more where n is odd: 21, 22 and 24 fit into 100; 23 and 25 do not.
    assert largest["value"] in (22, 24)
    assert largest["outcome"]["fits"] and not largest["one_more"]["fits"]


@pytest.mark.parametrize(
    "end, status", [("sys.exit(5)", 5), ("sys.exit('in words')", 1), ("raise KeyError('lost')", 1), ("os._exit(6)", 6)]
)
def test_a_script_that_fails_ends_the_run_as_it_does(fit: Fit, end: str, status: int) -> None:
    done = fit(f"import os, sys\nprint('before', flush=True)\n{end}\n")
    assert done.returncode == status and done.stdout == ""
    assert done.stderr.startswith("before\n") and "memprof fit: train.py " in done.stderr.splitlines()[-1]
    if "KeyError" in end:
        assert 'File "' in done.stderr and "train.py" in done.stderr and "_fit" not in done.stderr
        assert "failed under simulation after no optimizer steps: KeyError: 'lost'" in done.stderr


def test_a_script_that_forks_answers_once(fit: Fit) -> None:
    forks = "import os, sys\nif os.fork() == 0:\n    sys.exit(7)\nassert os.waitstatus_to_exitcode(os.wait()[1]) == 7\n"
    done = fit(forks + SCRIPT, "--only-as-given")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fits 100MiB: 18.0 of 100.0 MiB\n")  # 2 + 4 * 4


def test_two_optimizers_both_make_their_steps(fit: Fit) -> None:
    text = """
    import torch

    often, seldom = (torch.nn.Parameter(torch.ones(1024, device="cuda")) for _ in range(2))
    optimizers = torch.optim.SGD([often]), torch.optim.SGD([seldom])
    for step in range(1, 1000):
        for optimizer, parameter in zip(optimizers, (often, seldom)):
            if optimizer is optimizers[0] or step % 3 == 0:
                parameter.sum().backward()
                optimizer.step()
    """
    done = fit(text, "--json", "--only-as-given")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["given"]["optimizer_steps"] == 6  # two of the one that steps in every third


def test_prints_are_shown_where_that_is_asked_for(fit: Fit) -> None:
    done = fit(SCRIPT, "--show-output", "--only-as-given")
    assert done.returncode == 0 and done.stderr == "the script's own words\n" and "own words" not in done.stdout


def test_a_number_that_the_script_refuses_is_the_end(fit: Fit) -> None:
    text = SCRIPT.replace("print(", "assert options.batch_size <= 10, 'the data set has ten rows'\nprint(")
    done = fit(text)
    assert done.returncode == 0, done.stderr
    assert "Largest   --batch-size 10: fits, 42.0 of 100.0 MiB" in done.stdout
    assert "--batch-size 11: it failed under simulation" in " ".join(done.stdout.split())
    assert "the data set has ten rows" in " ".join(done.stdout.split())


def test_only_multiples_are_tried_where_the_script_refuses_all_others(fit: Fit, tmp_path: pathlib.Path) -> None:
    text = SCRIPT.replace("print(", "assert options.batch_size % 5 == 0, 'rows come in fives'\nprint(").replace("default=4", "default=5")
    done = fit(text)
    words = " ".join(done.stdout.split())
    assert re.search(r"--batch-size \d*[1-46-9]: it failed under simulation", words) and "rows come in fives" in words
    assert "if it must be a multiple of some number, --multiple-of N tries those alone" in words
    done = fit(text, "--multiple-of", "5", "--json-out", "fit.json")
    assert done.returncode == 0, done.stderr
    # 2 + 4 * 20 of 100 MiB.
    assert "Largest   --batch-size 20: fits, 82.0 of 100.0 MiB" in done.stdout
    assert "          --batch-size 25: does not fit, 102.0 of 100.0 MiB" in done.stdout
    largest = json.loads((tmp_path / "fit.json").read_text())["largest"]
    assert (largest["value"], largest["multiple_of"], largest["one_more_is_refused"]) == (20, 5, False)
    # As it is given it is no multiple: that run says whether it fits, the others what the largest multiple is.
    done = fit(SCRIPT, "--multiple-of", "5", arguments=("--batch-size", "16"))
    assert "fits 100MiB: 66.0 of 100.0 MiB" in done.stdout and "Largest   --batch-size 20: fits" in done.stdout


def test_a_number_that_the_script_does_not_know_gets_its_own_complaint(fit: Fit) -> None:
    done = fit(SCRIPT, "--vary", "width")
    words = " ".join(done.stdout.split())
    assert "Largest --width 1 cannot be run: it ended with exit status 2 after no optimizer steps: train.py: error:" in words
    assert "unrecognized arguments: --width 1" in words


def test_a_script_without_a_batch_hears_what_to_name(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCRIPT.replace("--batch-size", "--rows").replace("batch_size", "rows")
    done = fit(text)
    assert done.returncode == 0 and "no number to vary was found" in done.stdout and "--vary OPTION" in done.stdout
    monkeypatch.setenv("BATCH", "8")
    assert "--vary OPTION or --vary env:BATCH" in " ".join(fit(text).stdout.split())
    done = fit(text, "--vary", "--rows")
    assert "Largest   --rows 24: fits, 98.0 of 100.0 MiB" in done.stdout


def test_the_help_of_a_script_is_shown(fit: Fit) -> None:
    script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n"
    done = fit(script, arguments=("--help",))
    assert done.returncode == 2 and done.stderr.startswith("usage: train.py [-h] [--lr LR]")
    assert done.stderr.endswith("; --help follows the script, which got it: options of memprof fit stand before it\n")
    done = fit(script, arguments=("--json",))
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == (
        "memprof fit: train.py ended with exit status 2 after no optimizer steps; "
        "--json follows the script, which got it: options of memprof fit stand before it"
    )


def test_a_script_without_the_device_is_one_line(fit: Fit) -> None:
    done = fit("import torch\ntorch.ones(3).sum()\n")
    assert done.returncode == 2 and done.stdout == ""
    assert "used no memory of cuda:0" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["train.py", "--device", "gpu-24gb"], "--device is missing; --device follows the script, which got it: options of memprof fit"),
        (["--device", "gpu-24g", "train.py"], "unknown device 'gpu-24g'; the nearest is 'gpu-24gb'"),
        (["--device", "wormhole-12gb", "train.py"], "wormhole-12gb is no CUDA device with a limit"),
        (["train.py"], "--device is missing"),
        (["--device", "gpu-24gb"], "expected a script or a program"),
        (["--device", "gpu-24gb", "absent.py"], "cannot open 'absent.py'"),
        (["--device", "gpu-24gb", "--show-outputs", "train.py"], "unknown option '--show-outputs'; the nearest is '--show-output'"),
        (["--device", "gpu-24gb", "--context", "little", "train.py"], "--context is 'little'; expected a size as 700MiB, or 0"),
        (["--device", "1GiB", "--context", "1GiB", "train.py"], "--context 1GiB leaves nothing of the device"),
        (["--device", "gpu-24gb", "--multiple-of", "8x", "train.py"], "--multiple-of is '8x'; expected a whole number from 1 on"),
        (["--device", "gpu-24gb", "--steps", "0", "train.py"], "--steps is '0'; expected a whole number from 1 on"),
        (["--device", "gpu-24gb", "train.py", "--batch-size", "auto"], "--batch-size is 'auto', not a whole number"),
    ],
)
def test_bad_arguments_are_named(
    arguments: list[str], complaint: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(memprof.Error) as fault:
        Request(arguments)
    assert complaint in str(fault.value)


@pytest.mark.parametrize(
    "arguments, name, given, with_nine",
    [
        (["--batch-size", "16"], "--batch-size", 16, ["--batch-size", "9"]),
        (["--lr", "1", "--batch_size=16", "-v"], "--batch_size", 16, ["--lr", "1", "--batch_size=9", "-v"]),
        (["train.batch_size=16"], "train.batch_size=", 16, ["train.batch_size=9"]),
        (["--batch", "3", "--batch-size", "4"], "--batch-size", 4, ["--batch", "3", "--batch-size", "9"]),
        (["-b", "4"], "-b", 4, ["-b", "9"]),
    ],
)
def test_the_batch_is_found_in_the_arguments(
    arguments: list[str], name: str, given: int, with_nine: list[str], tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    request = Request(["--device", "gpu-24gb", str(script), *arguments])
    assert request.number is not None
    assert (request.number.name, request.number.given) == (name, given)
    assert request.arguments(9) == [str(script), *with_nine]


def test_the_batch_is_found_among_what_argparse_knows(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("")
    request = Request(["--device", "gpu-24gb", str(tmp_path / "train.py"), "--epochs", "3"])
    request.choose_number([(["-e", "--epochs"], 3), (["-n", "--batch-size"], 32)])
    assert request.number is not None and request.number.given == 32
    assert request.arguments(9)[1:] == ["--epochs", "3", "--batch-size", "9"]


def test_a_variable_is_set_and_arguments_stay(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.setenv("ROWS", "12")
    request = Request(["--device=gpu-24gb", "--vary=env:ROWS", str(tmp_path / "train.py"), "--batch-size", "16"])
    assert request.number is not None and request.number.given == 12
    assert request.environment(9) == {"ROWS": "9"} and request.arguments(9)[1:] == ["--batch-size", "16"]
    assert Number("env:ROWS", 12, None).text(9) == "ROWS=9"


def searched(
    allocated: Callable[[int], int], given: int, capacity: int, fits: Callable[[int], bool] | None = None
) -> tuple[Edge, dict[int, bool]]:
    """The edge, and what each number that was tried was told."""
    tried: dict[int, bool] = {}

    def run(number: int) -> Outcome:
        tried[number] = allocated(number) <= capacity if fits is None else fits(number)
        return Outcome(ended="steps", steps=2, allocated=allocated(number), fits=tried[number])

    return find_edge(run, capacity, given, run(given)), tried


@pytest.mark.parametrize("given", [1, 16, 1000, 10**6])
@pytest.mark.parametrize("fixed, each, capacity", [(2000, 250, 24000), (0, 1, 10**9), (23999, 1, 24000), (100, 7, 24001)])
def test_a_line_takes_few_trials(given: int, fixed: int, each: int, capacity: int) -> None:
    edge, tried = searched(lambda number: fixed + each * number, given, capacity)
    assert edge.largest == (capacity - fixed) // each and not edge.is_refused
    assert len(tried) <= 8


def test_of_multiples_the_edge_is_one_and_the_next_does_not_fit() -> None:
    for given in (None, 1, 64, 640, 700):
        tried: dict[int, bool] = {}

        def run(number: int, tried: dict[int, bool] = tried) -> Outcome:
            tried[number] = number % 64 == 0 and 2000 + 3 * number <= 24000
            kind: Any = "steps" if number % 64 == 0 else "raised"
            return Outcome(ended=kind, steps=2, allocated=2000 + 3 * number, fits=tried[number])

        edge = find_edge(run, 24000, given, Outcome(ended="steps", steps=2, allocated=2000 + 3 * (given or 1), fits=True), 64)
        # (24000 - 2000) / 3 = 7333, of which 114 * 64 = 7296 is a multiple.
        assert (edge.largest, edge.next, edge.is_refused) == (7296, 7360, False)
        assert all(number % 64 == 0 for number in tried) and len(tried) <= 8


def test_a_square_takes_few_trials() -> None:
    for given in (1, 100, 2400, 10**5):
        edge, tried = searched(lambda number: 2000 + number * number, given, 2000 + 2401**2)
        assert edge.largest == 2401
        assert len(tried) <= 20


@pytest.mark.parametrize("seed", range(20))
def test_no_number_tried_above_the_edge_fits(seed: int) -> None:
    """With an allocator whose waste is anything, the answer is still an edge."""
    waste = random.Random(seed)
    known: dict[int, int] = {}

    def fits(number: int) -> bool:
        return 2000 + 125 * number + known.setdefault(number, waste.randrange(6000)) <= 24000

    edge, tried = searched(lambda number: 2000 + 125 * number, 16, 24000, fits)
    assert tried[edge.largest] and not tried[edge.largest + 1]
    assert not any(found for number, found in tried.items() if number > edge.largest)
    assert len(tried) <= 24


@pytest.mark.parametrize(
    "path, place",
    [
        ("GPT/h.11/h.11.mlp/aten::gelu", "forward of h.11.mlp"),
        ("GPT/h.1/fc1/aten::linear/aten::addmm", "forward of fc1"),
        ("gradients of h.11.mlp/GeluBackward0/aten::gelu_backward", "backward of h.11.mlp"),
        ("Optimizer.step#AdamW.step/aten::_foreach_sqrt", "the optimizer's step (AdamW)"),
        ("epoch/Optimizer.step#SGD.step/aten::add", "the optimizer's step (SGD)"),
        ("aten::to/aten::_to_copy", "aten::to, outside of every module"),
        ("", "no operation"),
        ("PowBackward0/aten::mul", "backward (PowBackward0), outside of every module"),
    ],
)
def test_a_place_is_said_as_one_would(path: str, place: str) -> None:
    pytest.importorskip("torch")
    from memprof._fit._report import place_of

    assert place_of(path) == place


def test_amounts_have_the_digits_that_tell_them_apart() -> None:
    pytest.importorskip("torch")
    from memprof._fit._report import amount_of

    assert amount_of(233 * 2**30 // 10, 225 * 2**30 // 10) == "23.3 of 22.5 GiB"
    assert amount_of(1000 * MIB + MIB // 100, 1000 * MIB) == "1000.01 of 1000.00 MiB"
    assert amount_of(22 * MIB, 24 * 2**30) == "22 MiB of 24 GiB"


def test_nothing_fits() -> None:
    edge, tried = searched(lambda number: 30000 + number, 64, 24000)
    assert edge.largest == 0 and edge.below is None and edge.above is not None and not edge.above.fits
    assert len(tried) <= 4


def test_memory_that_stops_growing_ends_the_search() -> None:
    edge, tried = searched(lambda number: 2000 + min(number, 77), 16, 24000)
    assert edge.above is None and edge.same_from >= 77 and tried[edge.largest]
    assert len(tried) <= 8


def test_a_peak_that_a_greater_number_exceeds_does_not_end_the_search() -> None:
    def run(number: int) -> Outcome:
        allocated = 4000 + max(2000, 3 * number)  # the optimizer's step, or the activations
        return Outcome(ended="steps", steps=2, allocated=allocated, taken=9000 + number, fits=allocated <= 24000)

    edge = find_edge(run, 24000, 16, run(16))
    assert edge.largest == 6666 and edge.same_from == 0


def test_a_run_with_fewer_steps_is_no_answer() -> None:
    def run(number: int) -> Outcome:
        return Outcome(ended="end" if number > 50 else "steps", steps=1 if number > 50 else 2, allocated=number, fits=True)

    edge = find_edge(run, 24000, 16, run(16))
    assert edge.largest == 50 and edge.is_refused


PROGRAM = """
#include <memprof/memprof.hpp>
#include <memprof/record/session.hpp>

#include <cstdio>
#include <cstdlib>

// trainer SPACE --batch-size N
int main(int, char** arguments) {
  const memprof::session session;
  const long rows = std::atol(arguments[3]);
  if (rows > 1000) return 9;
  std::puts("the program's own words");
  memprof::memory_resource memory{arguments[1]};
  void* const weights = memory.allocate(4096);
  {
    auto scope = memprof::track_operation<"forward">();
    auto inner = memprof::track_operation<"attention">();
    memory.deallocate(memory.allocate(rows << 22), rows << 22);
  }
  memory.deallocate(weights, 4096);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("program")
    compiler = (os.environ.get("CXX") or "c++").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip("no compiler")
    (folder / "trainer.cpp").write_text(PROGRAM)
    headers = pathlib.Path(memprof.__file__).parent / "include"
    subprocess.run([*compiler, "-std=c++20", "-pthread", "-I", str(headers), "trainer.cpp", "-o", "trainer"], cwd=folder, check=True)
    return folder / "trainer"


def test_a_file_of_another_kind_is_kept(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(memprof.Error, match="is not an answer of memprof fit"):
        Request(["--device", "gpu-24gb", "--json-out", str(tmp_path / "notes.txt"), str(tmp_path / "train.py")])
    with pytest.raises(memprof.Error, match="cannot write .*No such file or directory"):
        Request(["--device", "gpu-24gb", "--json-out", str(tmp_path / "absent" / "a.json"), str(tmp_path / "train.py")])
    assert (tmp_path / "notes.txt").read_text() == "mine"


def fit_program(
    program: pathlib.Path, *arguments: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memprof", "fit", "--device", "100MiB", *options, "--", str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_program_with_a_session_is_solved_for(program: pathlib.Path) -> None:
    done = fit_program(program, "cuda:0", "--batch-size", "30")
    assert done.returncode == 3 and done.stderr == "", done.stderr
    lines = done.stdout.splitlines()
    # Through the allocator: 2 MiB for the small block, 4 for each row.
    assert lines[0] == "does not fit 100MiB: 122.0 of 100.0 MiB, in forward/attention"
    assert "Largest   --batch-size 24: fits, 98.0 of 100.0 MiB" in lines
    assert "          --batch-size 25: does not fit, 102.0 of 100.0 MiB, in forward/attention" in lines


def test_the_parts_of_a_program_add_up(program: pathlib.Path) -> None:
    done = fit_program(program, "cuda:0", "--batch-size", "20", options=("--json", "--context", "30MiB"))
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    given = document["given"]
    assert given["total"] == sum(part["bytes"] for part in given["parts"]) == (2 + 4 * 20 + 30) * MIB
    assert document["largest"]["value"] == 17  # 2 + 4 * 17 + 30 = 100


def test_a_space_that_is_not_the_devices_is_compared_as_it_is(program: pathlib.Path) -> None:
    done = fit_program(program, "dram", "--batch-size", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    # 4 KiB and 4 MiB for each row.
    assert "Largest   --batch-size 24: fits, 96.0 of 100.0 MiB" in lines
    assert "          --batch-size 25: does not fit, 100.004 of 100.000 MiB, in forward/attention" in lines


def test_a_program_that_fails_ends_the_run_as_it_does(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = fit_program(program, "cuda:0", "--batch-size", "1001")
    assert done.returncode == 9 and done.stdout == "" and "ended with exit status 9" in done.stderr
    done = fit_program(tmp_path / "absent")
    assert done.returncode == 2 and "cannot run" in done.stderr and "No such file" in done.stderr
    done = fit_program(pathlib.Path("/bin/true"))
    assert done.returncode == 2 and done.stderr.startswith("memprof fit: true ended and recorded nothing: ")
    assert "a program that was built with memprof: does it have a memprof::session" in done.stderr
    assert done.stderr.endswith(": memprof run -- /bin/true\n") and "optimizer step" not in done.stderr
    done = fit_program(pathlib.Path(sys.executable), "-c", "pass")
    assert done.returncode == 2 and "memprof fit --device NAME SCRIPT.py" in done.stderr
