"""Which modules are installed packages, and so the same in each trial. A script's own may do anything when they are imported."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig


def is_installed(origin: str, script: str) -> bool:
    """Whether a module of that file is of Python or of a package, and not of the script: as in `site-packages`, or in another folder
    with packages that `sys.path` names, as that of `pip install --target` and Debian's `dist-packages`."""
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    if "site-packages" in origin or any(origin.startswith(folder + os.sep) for folder in folders):
        return True
    own = {os.path.dirname(os.path.realpath(script)), os.path.realpath(os.getcwd())}
    for entry in sys.path:
        folder = os.path.realpath(entry)
        if folder not in own and os.path.realpath(origin).startswith(folder + os.sep) and _has_packages(folder):
            return True
    return False


def is_package(name: str, script: str) -> bool:
    """Whether an import of that name finds an installed package."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None and is_installed(found.origin, script)


@functools.cache
def _has_packages(folder: str) -> bool:
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False
