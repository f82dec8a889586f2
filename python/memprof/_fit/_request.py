"""What `memprof fit` was asked: its options, the script, and the script's number that is varied."""

from __future__ import annotations

import os
import re

from .. import _core
from .._script_help import misplaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_USAGE = "memprof fit --device NAME [OPTIONS] SCRIPT.py [ARGUMENTS], or -m MODULE ..., or -- PROGRAM ...; docs/fit_script.md"
_VALUES = ("--device", "--context", "--vary", "--multiple-of", "--steps", "--timeout", "--json-out")
_FLAGS = ("--json", "--show-output", "--only-as-given")
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
#: How scripts call the number of sequences of a step, the likeliest first.
_BATCH_NAMES = (
    "batch_size",
    "per_device_train_batch_size",
    "train_batch_size",
    "micro_batch_size",
    "per_gpu_batch_size",
    "per_gpu_train_batch_size",
    "local_batch_size",
    "device_batch_size",
    "batch",
    "bs",
    "b",
)


def plain_name(option: str) -> str:
    """`--model.batch-size` and `batch_size=` are the same number."""
    return option.rstrip("=").lstrip("-").replace("-", "_").rpartition(".")[2].lower()


def batch_variables() -> list[str]:
    """The variables of the environment that are called like a batch size and hold a whole number."""
    return [name for name, text in os.environ.items() if text.isdecimal() and int(text) and plain_name(name) in _BATCH_NAMES]


class Number:
    """An argument or a variable of the environment that holds a whole number."""

    def __init__(self, name: str, given: int | None, place: int | None) -> None:
        #: As the script spells it: `--batch-size`, `train.batch_size=` or `env:BATCH`.
        self.name = name
        #: Its value without a change; None where that is not known.
        self.given = given
        self._place = place

    @property
    def is_variable(self) -> bool:
        return self.name.startswith("env:")

    def arguments(self, given: list[str], value: int) -> list[str]:
        """The script's arguments with that value."""
        if self.is_variable:
            return given
        if self._place is None:
            return [*given, f"{self.name}{value}"] if self.name.endswith("=") else [*given, self.name, str(value)]
        made = list(given)
        option, equals, _ = made[self._place].partition("=")
        if equals:
            made[self._place] = f"{option}={value}"
        else:
            made[self._place + 1] = str(value)
        return made

    def environment(self, value: int) -> dict[str, str]:
        return {self.name[len("env:") :]: str(value)} if self.is_variable else {}

    def text(self, value: int) -> str:
        """As one would write it."""
        if self.is_variable:
            return f"{self.name[len('env:') :]}={value}"
        return f"{self.name}{value}" if self.name.endswith("=") else f"{self.name} {value}"


class Request:
    """The command line. Raises `memprof.Error` where it makes no sense."""

    def __init__(self, arguments: list[str]) -> None:
        self._made_file = ""
        values: dict[str, str] = {}
        flags: set[str] = set()
        place = 0
        while place < len(arguments) and arguments[place].startswith("-") and arguments[place] not in ("-m", "--"):
            option, equals, value = arguments[place].partition("=")
            if option in _FLAGS and not equals:
                flags.add(option)
            elif option in _VALUES:
                if not equals:
                    place += 1
                    if place == len(arguments):
                        raise _core.Error(f"{option} needs a value: {_USAGE}")
                    value = arguments[place]
                values[option] = value
            else:
                raise _core.Error(f"unknown option '{arguments[place]}'{_nearest(option, (*_VALUES, *_FLAGS))}: {_USAGE}")
            place += 1
        #: Whether a program that was built with memprof is run, rather than a script of Python.
        self.is_program = arguments[place : place + 1] == ["--"]
        #: The script or program and its arguments, or `-m`, a module and its arguments.
        self.command = arguments[place + self.is_program :]
        if not self.command or self.command == ["-m"]:
            raise _core.Error(f"expected a script or a program: {_USAGE}")
        self.script = self.command[1] if self.command[0] == "-m" else os.path.basename(self.command[0])
        if self.command[0] != "-m" and not self.is_program and not os.path.isfile(self.command[0]):
            raise _core.Error(f"cannot open '{self.command[0]}': no such file")
        #: What to add to a message if the script got an option of memprof's; "" if it got none.
        self.misplaced = "" if self.is_program else misplaced(self.command, (*_VALUES, *_FLAGS), "memprof fit")
        if "--device" not in values:
            raise _core.Error(f"--device is missing{self.misplaced or f': {_USAGE}'}")
        self.shows_output = "--show-output" in flags
        self.as_json = "--json" in flags
        self.json_file = values.get("--json-out", "")
        _keep_other_file(self.json_file)
        self.only_as_given = "--only-as-given" in flags
        #: A trial ends after so many steps of each optimizer, or so many seconds.
        self.steps = _whole_number("--steps", values.get("--steps", "2"))
        self.timeout = _whole_number("--timeout", values.get("--timeout", "600"))
        #: The allocator's settings, as the script would have them.
        self.alloc_conf = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        self._vary = values.get("--vary", "")
        #: Of which all numbers that are tried are multiples.
        self.multiple = _whole_number("--multiple-of", values.get("--multiple-of", "1"))
        #: What is varied; None until `choose_number` if the command line does not say.
        self.number = self._number_in_arguments()
        self.device_name = values["--device"]
        self.device = self._device(self.device_name)
        self.space = "cuda:0"
        self.capacity = _capacity(self.device, self.device_name)
        #: What the CUDA context takes, if the user says it.
        self.context = _context(values["--context"], self.capacity) if "--context" in values else None

    def __enter__(self) -> Request:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        if self._made_file:
            os.remove(self._made_file)

    def arguments(self, value: int | None) -> list[str]:
        """The script and its arguments with that number, or as they are given."""
        return self.command if value is None or self.number is None else self.number.arguments(self.command, value)

    def environment(self, value: int | None) -> dict[str, str]:
        return {} if value is None or self.number is None else self.number.environment(value)

    def choose_number(self, options: list[tuple[list[str], int]]) -> None:
        """Finds the number that is varied among the options that the script's argparse knows, if its command line lacks it."""
        if self.number is not None and (self.number.given is not None or self.number.is_variable):
            return
        known = {plain_name(spelling): (spelling, value) for spellings, value in options for spelling in spellings}
        for name in (plain_name(self._vary),) if self._vary else _BATCH_NAMES:
            if name in known:
                spelling, value = known[name]
                self.number = Number(spelling, value, None)
                return

    def _number_in_arguments(self) -> Number | None:
        if self._vary.startswith("env:"):
            return Number(self._vary, _given(self._vary, os.environ.get(self._vary[len("env:") :])), None)
        first = 2 if self.command[0] == "-m" else 1
        for name in (plain_name(self._vary),) if self._vary else _BATCH_NAMES:
            for place in range(len(self.command) - 1, first - 1, -1):  # the last one counts
                option, equals, value = self.command[place].partition("=")
                if plain_name(option) != name or not (equals or option.startswith("-")):
                    continue
                if not equals:
                    value = self.command[place + 1] if place + 1 < len(self.command) else ""
                return Number(option if option.startswith("-") else f"{option}=", _given(option, value), place)
        if not self._vary:
            return None
        return Number(self._vary if self._vary.startswith("-") or self._vary.endswith("=") else f"--{self._vary}", None, None)

    def _device(self, name: str) -> str:
        """What memprof calls the device: a preset, a file, or for a size a file that is made here."""
        if (capacity := _size(name)) is not None:
            import json
            import tempfile

            space = {"name": "cuda:0", "capacity": capacity, "size_multiple": 512}
            with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
                known_as = f"gpu-{name.replace(' ', '').lower()}"
                device = {"format": "memprof-device", "version": 1, "name": known_as, "spaces": [space]}
                json.dump(device, file)
            self._made_file = file.name
            return file.name
        if name not in _core.device_presets and not os.path.exists(name):
            presets = [preset for preset in _core.device_presets if _core._cuda_capacity(preset)]
            raise _core.Error(
                f"unknown device '{name}'{_nearest(name, presets)}; use {', '.join(presets)}, a size as 80GB, or a file that "
                "describes a device"
            )
        return name


def _capacity(device: str, name: str) -> int:
    capacity = _core._cuda_capacity(device)
    if not capacity:
        raise _core.Error(f"--device {name} is no CUDA device with a limit, which scripts are simulated on; use gpu-24gb or a size")
    return capacity


def _context(text: str, capacity: int) -> int:
    nbytes = 0 if text == "0" else _size(text)
    if nbytes is None:
        raise _core.Error(f"--context is '{text}'; expected a size as 700MiB, or 0 for none")
    if nbytes >= capacity:
        raise _core.Error(f"--context {text} leaves nothing of the device, which has {capacity} bytes")
    return nbytes


def _size(text: str) -> int | None:
    """The bytes of "80GB"; None: it is no size."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)", text, re.IGNORECASE)
    return int(float(found[1]) * _UNITS[found[2].upper()]) if found else None


def _keep_other_file(path: str) -> None:
    """Refuses, before anything runs, to replace what is no answer of this program, and what cannot be written."""
    if not path:
        return
    try:
        with open(path, "a+") as file:
            file.seek(0)
            begin = file.read(200)
    except (OSError, ValueError) as fault:
        raise _core.Error(f"cannot write '{path}': {getattr(fault, 'strerror', 'it is no text')}") from None
    if begin and '"memprof-script-fit"' not in begin:
        raise _core.Error(f"'{path}' is not an answer of memprof fit: remove it, or choose another name")


def _nearest(name: str, known: tuple[str, ...] | list[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, known, 1, 0.5)
    return f"; the nearest is '{found[0]}'" if found else ""


def _whole_number(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise _core.Error(f"{option} is '{text}'; expected a whole number from 1 on")
    return int(text)


def _given(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise _core.Error(f"{option} is '{text}', not a whole number from 1 on; name another by --vary OPTION")
    return int(text)
