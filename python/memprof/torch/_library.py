"""The libraries that record libtorch and simulate it: compiled for the installed torch when first needed, and kept."""

from __future__ import annotations

import os

from .. import _core


def load(no_dispatch: bool = False) -> None:
    """Loads the library that records, or with `no_dispatch` the one that simulates, for the torch of this process. Raises `Error`
    if there is none and none can be made."""
    if _core._is_torch_library_loaded(no_dispatch):
        return
    import torch

    kind = "simulation" if no_dispatch else "torch"
    kept = os.path.join(_cache_folder(), f"{kind}-{torch.__version__}-{_checksum_of_sources():08x}.so")
    if not os.path.exists(kept):
        _compile(kept, no_dispatch)
    _core._load_torch_library(kept, no_dispatch)


def cuda_headers() -> list[str]:
    """The folders with the headers of CUDA's runtime for the installed torch: none where it was built without CUDA, or they are missing."""
    import glob

    import torch

    root = os.path.dirname(torch.__file__)
    if not torch.version.cuda or not os.path.exists(os.path.join(root, "lib", "libc10_cuda.so")):
        return []
    # Those that the wheels of torch bring along are of its version.
    folders = glob.glob(os.path.join(glob.escape(os.path.dirname(root)), "nvidia", "*", "include"))
    folders += [os.path.join(os.environ[name], "include") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders.append("/usr/local/cuda/include")
    for folder in folders:
        if os.path.exists(os.path.join(folder, "cuda_runtime_api.h")):
            if os.path.exists(os.path.join(folder, "crt", "host_defines.h")):
                return [folder]
            return [folder, os.path.join(os.path.dirname(__file__), "cuda_headers")]
    return []


def _cache_folder() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "memprof")


def _sources() -> tuple[str, str]:
    """The file to compile, and the folder of memprof's headers."""
    here = os.path.dirname(__file__)
    return os.path.join(here, "backend.cpp"), os.path.join(os.path.dirname(here), "include")


def _checksum_of_sources() -> int:
    """Of what the library is compiled from: a library is only right for the memprof that it is of."""
    import zlib

    backend, headers = _sources()
    files = [backend, backend[: -len("cpp")] + "h"]
    for top in (headers, os.path.join(os.path.dirname(backend), "cuda_headers")):
        for folder, _, names in os.walk(top):
            files += (os.path.join(folder, name) for name in names)
    checksum = 0
    for path in sorted(files):
        with open(path, "rb") as file:
            checksum = zlib.crc32(file.read(), checksum)
    return checksum


def command(output: str, no_dispatch: bool = False) -> list[str]:
    """The call of the compiler; $CXX names another."""
    import torch

    backend, headers = _sources()
    root = os.path.dirname(torch.__file__)
    # The kind of std::string that this torch was built with.
    kind = int(torch.compiled_with_cxx11_abi())
    cuda = [] if no_dispatch else cuda_headers()
    return [
        *(os.environ.get("CXX") or "c++").split(),
        *("-std=c++20", "-O1", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-DMEMPROF_SEPARATE_COMPILATION=1"),
        *(f"-D_GLIBCXX_USE_CXX11_ABI={kind}", f"-DMEMPROF_TORCH_CXX11_ABI={kind}"),
        *(["-DMEMPROF_TORCH_SIMULATION"] if no_dispatch else []),
        *(["-DMEMPROF_TORCH_CUDA"] if cuda else []),
        *("-I", headers),
        *("-isystem", os.path.join(root, "include")),
        *("-isystem", os.path.join(root, "include", "torch", "csrc", "api", "include")),
        *(word for folder in cuda for word in ("-isystem", folder)),
        *(backend, "-o", output),
        *("-L" + os.path.join(root, "lib"), "-ltorch_cpu", "-lc10"),
        *(["-lc10_cuda"] if cuda else []),
    ]


def _compile(kept: str, no_dispatch: bool) -> None:
    import subprocess
    import sys

    import torch

    os.makedirs(os.path.dirname(kept), exist_ok=True)
    # Of several processes, each compiles a file of its own, and the last to finish wins.
    made = f"{kept}.{os.getpid()}"
    call = command(made, no_dispatch)
    seconds = 60 if no_dispatch else 15
    print(f"memprof: compiling for torch {torch.__version__}, once; about {seconds} s", file=sys.stderr, flush=True)
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
