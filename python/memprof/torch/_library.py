"""The library that records libtorch: compiled for the installed torch when it is first needed, and kept."""

from __future__ import annotations

import os

from .. import _core


def load() -> None:
    """Loads the library for the torch that this process has imported. Raises `Error` if there is none and none can be made."""
    if _core._is_torch_library_loaded():
        return
    import torch

    kept = os.path.join(_cache_folder(), f"torch-{torch.__version__}-{_checkchecksumof_sources():08x}.so")
    if not os.path.exists(kept):
        _compile(kept)
    _core._load_torch_library(kept)


def _cache_folder() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "memprof")


def _sources() -> tuple[str, str]:
    """The file to compile, and the folder of memprof's headers."""
    here = os.path.dirname(__file__)
    return os.path.join(here, "backend.cpp"), os.path.join(os.path.dirname(here), "include")


def _checkchecksumof_sources() -> int:
    """Of what the library is compiled from: a library is only right for the memprof that it is of."""
    import zlib

    backend, headers = _sources()
    files = [backend, backend[: -len("cpp")] + "h"]
    for folder, _, names in os.walk(headers):
        files += (os.path.join(folder, name) for name in names)
    checksum = 0
    for path in sorted(files):
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(), checksum)
    return checksum


def command(output: str) -> list[str]:
    """The call of the compiler; $CXX names another."""
    import torch

    backend, headers = _sources()
    root = os.path.dirname(torch.__file__)
    # The kind of std::string that this torch was built with.
    kind = int(torch.compiled_with_cxx11_abi())
    return [
        *(os.environ.get("CXX") or "c++").split(),
        *("-std=c++20", "-O1", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-DMEMPROF_SEPARATE_COMPILATION=1"),
        *(f"-D_GLIBCXX_USE_CXX11_ABI={kind}", f"-DMEMPROF_TORCH_CXX11_ABI={kind}"),
        *("-I", headers),
        *("-isystem", os.path.join(root, "include")),
        *("-isystem", os.path.join(root, "include", "torch", "csrc", "api", "include")),
        *(backend, "-o", output),
        *("-L" + os.path.join(root, "lib"), "-ltorch_cpu", "-lc10"),
    ]


def _compile(kept: str) -> None:
    import subprocess
    import sys

    import torch

    os.makedirs(os.path.dirname(kept), exist_ok=True)
    # Of several processes, each compiles a file of its own, and the last to finish wins.
    made = f"{kept}.{os.getpid()}"
    call = command(made)
    print(f"memprof: compiling for torch {torch.__version__}, once; about 15 s", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(call, capture_output=True, text=True)
    except OSError as fault:
        raise _core.Error(
            f"memprof.torch: no compiler '{call[0]}' ({fault.strerror}) to make the library for torch {torch.__version__}; "
            "install g++ 12 or later, name one in $CXX, or use capture(torch=False)"
        ) from None
    if done.returncode != 0:
        if os.path.exists(made):
            os.remove(made)
        reason = next((line for line in done.stderr.splitlines() if "error" in line), f"status {done.returncode}")
        raise _core.Error(f"memprof.torch: '{call[0]}' cannot compile for torch {torch.__version__}: {reason}")
    os.replace(made, kept)
