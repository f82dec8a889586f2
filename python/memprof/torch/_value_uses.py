"""What a function does with the value that it is just getting, from its bytecode."""

from __future__ import annotations

import dis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType


class _Function:
    """The instructions of a function, and what is known of the calls in it."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # kept, since it is found by its identity
        skipped = ("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL")
        self.instructions = [one for one in dis.get_instructions(code) if one.opname not in skipped]
        self.compares: dict[int, bool] = {}
        self.chooses: dict[int, bool] = {}

    def index_of(self, offset: int) -> int:
        return next((index for index, one in enumerate(self.instructions) if one.offset >= offset), len(self.instructions))


_functions: dict[int, _Function] = {}


def _function_of(frame: FrameType) -> _Function:
    found = _functions.get(id(frame.f_code))
    if found is None:
        found = _functions[id(frame.f_code)] = _Function(frame.f_code)
    return found


def is_compared(frame: FrameType) -> bool:
    """Whether the function compares the result of the call that it is in, or asks for its truth: at once, after some arithmetic, or after it
    has put it in a variable of its own."""
    function = _function_of(frame)
    found = function.compares.get(frame.f_lasti)
    if found is None:
        found = _compares(function.instructions, function.index_of(frame.f_lasti), set())
        function.compares[frame.f_lasti] = found
    return found


def is_chosen(frame: FrameType) -> bool:
    """Whether the function is in a call of `min`, `max`, `sorted` or `list.sort` without a key: of numbers, the results are numbers again,
    however many there are. Of pairs and the like, they are not, but those are first compared for equality."""
    function = _function_of(frame)
    found = function.chooses.get(frame.f_lasti)
    if found is None:
        found = function.chooses[frame.f_lasti] = _chooses(function, function.index_of(frame.f_lasti))
    return found


def _chooses(function: _Function, call: int) -> bool:
    code = function.instructions
    if call == len(code) or not code[call].opname.startswith("CALL") or "key" in _keywords_of(function, call):
        return False
    return any(one.argval in ("min", "max", "sorted", "sort") and _user_of(code, at) == call for at, one in enumerate(code[:call]))


def _keywords_of(function: _Function, call: int) -> tuple[str, ...]:
    """The names of a call's arguments, as far as they have any; "key" may be among those of a dictionary."""
    before = function.instructions[call - 1]
    if before.opname.startswith("DICT_"):
        return ("key",)
    if before.opname == "KW_NAMES":  # whose names `dis` does not look up
        return tuple(function.code.co_consts[before.arg or 0])
    return tuple(before.argval) if "KW" in function.instructions[call].opname else ()


def _compares(code: list[dis.Instruction], index: int, seen: set[str], above: int = 0) -> bool:
    """Whether what the instruction at the index has pushed, `above` below the top, is compared."""
    user = None if index == len(code) else _user_of(code, index, above)
    if user is None:
        return False
    name, operand = code[user].opname, code[user].argval
    if name in ("COMPARE_OP", "TO_BOOL", "UNARY_NOT") or name.startswith(("POP_JUMP", "JUMP_IF")):
        return True
    if name.startswith(("BINARY_", "UNARY_", "INPLACE_")) and "SUBSCR" not in name:
        return _compares(code, user, seen)
    if not name.startswith("STORE_") or name in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE"):
        return False
    if code[user - 1].opname in ("COPY", "DUP_TOP") and _compares(code, user, seen):  # it is also used after :=
        return True
    variable = operand[0] if isinstance(operand, tuple) else operand
    if variable in seen:
        return False
    seen.add(variable)
    return any(_compares(code, at, seen, below) for at, below in _loads(code, variable))


def _loads(code: list[dis.Instruction], variable: str) -> list[tuple[int, int]]:
    """Where a variable is pushed, and how much above it."""
    found = []
    for at, one in enumerate(code):
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST") or "LOAD_" not in one.opname:
            continue
        loaded = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        loaded = loaded[1:] if one.opname.startswith("STORE_") else loaded
        found += [(at, len(loaded) - 1 - place) for place, name in enumerate(loaded) if name == variable]
    return found


def _user_of(code: list[dis.Instruction], index: int, above: int = 0) -> int | None:
    """The instruction that takes from the stack what the one at the index has pushed, if it comes next."""
    for at in range(index + 1, len(code)):
        one = code[at]
        if one.opname in ("COPY", "SWAP", "DUP_TOP", "DUP_TOP_TWO", "ROT_TWO", "ROT_THREE"):  # in chains of comparisons, and for :=
            continue
        effect = _effect_of(one)
        pushed = _pushed_by(one.opname, effect)
        if pushed - effect > above:
            return at
        if "JUMP" in one.opname or one.opname.startswith(("RETURN", "RAISE", "RERAISE")):
            return None
        above += effect
    return None


def _effect_of(one: dis.Instruction) -> int:
    if one.opname == "CALL":  # in 3.11, another instruction is said to take the arguments
        return -1 - (one.arg or 0)
    return dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=False)


def _pushed_by(name: str, effect: int) -> int:
    if name in ("LOAD_ATTR", "LOAD_METHOD"):  # takes the object
        return 1 + effect
    if name == "STORE_FAST_LOAD_FAST":
        return 1
    if name.startswith(("STORE_", "POP_", "RETURN", "RAISE", "DELETE")):
        return 0
    takes_nothing = name.startswith(("LOAD_", "PUSH_", "KW_NAMES", "RESUME", "JUMP"))
    return max(effect, 0) if takes_nothing else 1
