"""Settings of a memory tracker from outside the program: those of a C++ session (docs/session.md), and pie's."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TRUTHS = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False, "": False}
_VARIABLES = {"MEMPROF": "enabled", "MEMPROF_OUTPUT_DIR": "output_dir", "MEMPROF_INTERVAL": "interval", "MEMPROF_TRACE": "trace"}
_EXPECTED = {
    "enabled": "1 or 0",
    "trace": "1 or 0",
    "output_dir": "the path of a directory",
    "interval": "seconds, more than 0",
}
#: What C++ sessions in the process read, and a tracker has no use for.
_OTHERS = ("signals", "warn_growth_after", "no_dispatch", "device")


def say(text: str) -> None:
    print(f"memprof: {text}", file=sys.stderr, flush=True)


class Settings:
    """How a tracker records. A later call of a `read_...` overrides an earlier one; what is invalid is reported and ignored."""

    def __init__(self, output_dir: str | os.PathLike[str], enabled: bool, interval: float) -> None:
        self.output_dir, self.enabled, self.interval, self.trace = os.fspath(output_dir), bool(enabled), 5.0, False
        self._set("interval", interval, "initialize_memory_tracker")

    def read_file(self, path: str | os.PathLike[str]) -> None:
        """A TOML file: `enable_memory_profiling` of the first `[[backend]]` that has it, then the keys of `[memprof]`."""
        if sys.version_info < (3, 11):
            say(f"'{os.fspath(path)}' is ignored: reading TOML needs Python 3.11")
            return
        import tomllib

        try:
            with open(path, "rb") as file:
                document = tomllib.load(file)
        except (OSError, ValueError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else fault
            say(f"'{os.fspath(path)}' is ignored: {reason}")
            return
        where = f"'{os.fspath(path)}'"
        backends = document.pop("backend", [])
        for backend in backends if isinstance(backends, list) else [backends]:
            if isinstance(backend, dict) and "enable_memory_profiling" in backend:
                self._set("enabled", backend["enable_memory_profiling"], where, "enable_memory_profiling")
                break
        own = document.get("memprof")
        for key, value in own.items() if isinstance(own, dict) else ():
            if key in _EXPECTED:
                self._set(key, value, where)
            elif key not in _OTHERS:
                say(f"{where}: unknown key '{key}' is ignored; expected one of {', '.join(_EXPECTED)}")

    def read_environment(self) -> None:
        """The file that MEMPROF_CONFIG names, then the other variables."""
        if path := os.environ.get("MEMPROF_CONFIG"):
            self.read_file(path)
        for variable, key in _VARIABLES.items():
            if variable in os.environ:
                self._set(key, os.environ[variable], "environment", variable)

    def _set(self, key: str, value: Any, where: str, name: str = "") -> None:
        made = value
        try:
            if key in ("enabled", "trace"):
                made = _TRUTHS[str(value).lower()]
            elif key == "interval":
                made = float(value)
                if not 0 < made <= 1e9:
                    raise ValueError
            elif not value or not isinstance(value, str):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            say(f"{where}: {name or key} = {value} is ignored; use {_EXPECTED[key]}")
        else:
            setattr(self, key, made)
