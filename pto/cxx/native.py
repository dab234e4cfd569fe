"""A compiled program loaded into this process: agents, tables and memory, through runtime.cpp."""

from __future__ import annotations

import ctypes as c
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Loc
from pto.core.memory import Memory, Space
from pto.ir.graph import Source, Span
from pto.run.machine.core import Core

DONE, FLUSH, LOOK, LAUNCH, FAILED, PAUSE, WAIT, LOADS = range(8)
_FACTS = "kind loc rows cols blayout slayout fractal pad compact layout"
_DEPTH = 12
CONTROL = -1  # record.hpp: in the place of a type, the control register
UNKNOWN = 1 << 32  # assumed size behind a pointer outside all allocations
_LARGE = 1 << 40  # libraries and stacks are mapped above
_LOW = 1 << 22  # programs are mapped above; no buffer is as large
_SIDES = ("both", "vector", "cube")  # by number


class TypeRecord(c.Structure):
    """TypeFacts of record.hpp."""

    _fields_ = [
        ("element", c.c_int64),
        *((name, c.c_int64) for name in _FACTS.split()),
        ("more", c.c_int64 * 6),
    ]


class AgentRecord(c.Structure):
    """Agent of record.hpp."""

    _fields_ = [
        ("words", c.c_void_p),
        ("at", c.c_void_p),
        ("end", c.c_void_p),
        ("block", c.c_int64),
        ("blocks", c.c_int64),
        ("sub", c.c_int64),
        ("subs", c.c_int64),
        ("side", c.c_int64),
        ("tiles", c.c_int64),
        ("tokens", c.c_int64 * 256),
        ("question", c.c_int64 * 5),
        ("answer", c.c_int64),
        ("eager", c.c_int64),
        ("atomic", c.c_int64),
    ]


class NativeBuild:
    """One build, loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lib = c.CDLL(str(path))
        self.lib = lib
        signatures: dict[str, tuple[Any, list[Any]]] = {
            "pto_agent": (c.POINTER(AgentRecord), [c.c_void_p, c.c_void_p, *[c.c_int64] * 5]),
            "pto_resume": (c.c_int64, [c.POINTER(AgentRecord)]),
            "pto_end": (None, [c.POINTER(AgentRecord)]),
            "pto_error": (c.c_char_p, [c.POINTER(AgentRecord)]),
            "pto_count": (c.POINTER(c.c_int64), [c.c_int64]),
            "pto_amounts": (c.c_int64, [c.POINTER(AgentRecord), c.POINTER(c.POINTER(c.c_int64))]),
            "pto_type": (c.POINTER(TypeRecord), [c.c_int64]),
            "pto_enum": (c.c_char_p, [c.c_int64]),
            "pto_path": (c.c_int64, [c.c_int64, c.POINTER(c.c_int64)]),
            "pto_kernel": (c.c_void_p, [c.c_char_p]),
            "pto_side": (c.c_int64, [c.c_char_p]),
            "pto_allocate": (c.c_void_p, [c.c_int64]),
            "pto_release": (None, [c.c_void_p]),
            "pto_changes": (c.c_int64, []),
            "pto_asked_for_ranks": (c.c_int64, []),
            "pto_memory": (c.c_int64, [c.POINTER(c.c_int64), c.c_int64]),
            "pto_tests": (c.c_int64, []),
            "pto_test": (c.c_char_p, [c.c_int64]),
            "pto_failures": (c.c_int64, []),
            "pto_missing": (c.c_char_p, []),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        self._facts: dict[int, TypeRecord] = {}
        lib.pto_signals()

    # ---- tables

    def string(self, address: int) -> str:
        return c.string_at(address).decode()

    def facts(self, number: int) -> TypeRecord:
        record = self._facts.get(number)
        if record is None:
            record = TypeRecord.from_buffer_copy(self.lib.pto_type(number).contents)
            self._facts[number] = record
        return record

    def enum(self, number: int) -> str:
        """The name of an enumeration, from the signature text of a template function."""
        text = self.lib.pto_enum(number).decode()
        name = re.search(r"E = ([\w:]+)", text)
        return name[1].split("::")[-1] if name else text

    def where(self, path: int) -> CallSite:
        return CallSite(self, path)

    def addresses(self, path: int) -> list[int]:
        """The chain of calls that leads to an instruction, innermost first."""
        buffer = (c.c_int64 * _DEPTH)()
        count = self.lib.pto_path(path, buffer)
        return list(buffer[:count])

    # ---- agents

    def agent(
        self,
        call: int,
        closure: int,
        core: Core | None = None,
        who: tuple[int, int, int, int, int] = (0, 1, 0, 1, 0),
    ) -> NativeAgent:
        """An agent of a core: a stack that runs a function; `who` holds its indices and counts."""
        if core is not None:
            who = (core.block, core.blocks, core.sub, core.subs, _SIDES.index(core.side))
        state = self.lib.pto_agent(call, closure, *who)
        if not state:
            raise MemoryError
        return NativeAgent(self, state)

    def kernel(self, key: bytes) -> int | None:
        """The address of this build's code for a launch, or None."""
        return self.lib.pto_kernel(key)

    def side(self, key: bytes) -> str:
        """The side of a launch, if its source was compiled for one side."""
        return _SIDES[self.lib.pto_side(key)]

    def count(self, amounts: Mapping[int, int]) -> None:
        """Make agents that start from now on add up the amounts of executed blocks."""
        if amounts:
            size = max(amounts) + 1
            table = np.ctypeslib.as_array(self.lib.pto_count(size), (size,))
            table[list(amounts)] = list(amounts.values())

    # ---- device memory

    def memory(self) -> list[tuple[int, int]]:
        """(address, bytes) of every allocation, by address."""
        count = self.lib.pto_memory((c.c_int64 * 2)(), 0)
        buffer = (c.c_int64 * (2 * count))()
        self.lib.pto_memory(buffer, count)
        return [(buffer[2 * n], buffer[2 * n + 1]) for n in range(count)]

    def tests(self) -> list[str]:
        return [self.lib.pto_test(n).decode() for n in range(self.lib.pto_tests())]


class NativeAgent:
    """One stack of a program: `resume` runs it until it needs the machine."""

    def __init__(self, native: NativeBuild, state: Any) -> None:
        self.native = native
        self._state = state
        self.state: AgentRecord = state.contents

    def resume(self) -> int:
        return int(self.native.lib.pto_resume(self._state))

    def words(self) -> list[int]:
        """The records written since it was resumed."""
        state = self.state
        start, count = state.words or 0, ((state.at or 0) - (state.words or 0)) // 8
        if not count:
            return []
        pointer = c.cast(start, c.POINTER(c.c_int64))
        return np.ctypeslib.as_array(pointer, (count,)).tolist()

    def amounts(self) -> list[int]:
        """Operations of C++ before each record of `words`; empty unless they are counted."""
        pointer = c.POINTER(c.c_int64)()
        count = self.native.lib.pto_amounts(self._state, c.byref(pointer))
        return np.ctypeslib.as_array(pointer, (count,)).tolist() if count else []

    def error(self) -> str:
        return self.native.lib.pto_error(self._state).decode(errors="replace")

    def end(self) -> None:
        self.native.lib.pto_end(self._state)


def bytes_at(address: int, size: int) -> npt.NDArray[np.uint8]:
    """Memory of this process as an array, without a copy."""
    array = (c.c_uint8 * max(size, 1)).from_address(address)
    return np.ctypeslib.as_array(array)[:size]


@cache
def _heap_end() -> Callable[[int], int | None]:
    function = c.CDLL(None).sbrk
    function.restype, function.argtypes = c.c_void_p, [c.c_ssize_t]
    return function


@lru_cache(1)
def _heap(end: int) -> int:
    """The start address of the heap that ends at `end`."""
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as lines:
        heaps = (line.partition("-")[0] for line in lines if line.rstrip().endswith("[heap]"))
        return min((int(start, 16) for start in heaps), default=end)


def is_pointer(number: int) -> bool:
    """True for a host pointer, False for an address in a local buffer.

    Libraries and stacks are mapped far above all buffer addresses. The heap is too, unless the
    interpreter is not a position-independent executable.
    """
    if number >= _LARGE:
        return True
    if number < _LOW:
        return False
    end = _heap_end()(0) or 0
    return _heap(end) <= number < end


def host_memory(address: int, space: Space) -> Memory:
    """Host memory from an address on, of unknown size."""
    return Memory.over(space, bytes_at(address, UNKNOWN))


# ---- places in the source


@dataclass(frozen=True, slots=True)
class Called(Loc):
    """A location with its callers, innermost first."""

    callers: tuple[Loc, ...] = ()


class CallSite(Span):
    """The location of an instruction call and its callers, looked up on demand."""

    __slots__ = ("native", "number")

    def __init__(self, native: NativeBuild, number: int) -> None:
        super().__init__(Source(str(native.path), ""), 0, 0)
        self.native = native
        self.number = number

    @property
    def loc(self) -> Loc:
        first, *callers = lines_of(self.native.path, tuple(self.native.addresses(self.number)))
        return Called(first.file, first.line, callers=tuple(callers))


def is_ours(file: str) -> bool:
    """True for files of our header tree and generated sources."""
    return "/pto/machine/" in file or file.endswith(("/whole.cpp", "/runtime.cpp"))


def read_build(build: Path, *command: str, stdin_text: str = "") -> list[str]:
    """The lines that a tool of binutils prints about a build; none if it is missing or late."""
    try:
        ran = subprocess.run(
            [*command, str(build)], input=stdin_text, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return ran.stdout.splitlines()


@lru_cache(4096)
def lines_of(path: Path, addresses: tuple[int, ...]) -> tuple[Loc, ...]:
    """Source lines of return addresses, from the line table of a build, without our header."""
    addresses_text = "\n".join(f"{address - 1:#x}" for address in addresses)
    locations: list[Loc] = []
    for line in read_build(path, "addr2line", "-i", "-e", stdin_text=addresses_text):
        file, _, number = line.partition(" ")[0].rpartition(":")
        if number.isdigit() and file and not is_ours(file) and file != "??":
            locations.append(Loc(file, int(number)))
    return tuple(locations) or (Loc(str(path), 0),)
