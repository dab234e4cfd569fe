"""Variables that Python's bytecode reads and writes, by the documented interface of `dis`.

From 3.13 on, one instruction may be two in one: the `argval` of `STORE_FAST_LOAD_FAST` is a pair of
names. An instruction whose parts and names do not match in number counts as a read of every name:
an instruction of a later Python can then cost a needless finding, never a missed one.
"""

from __future__ import annotations

import dis
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

_PART = re.compile(
    r"(LOAD|STORE|DELETE)_(?:FROM_DICT_OR_)?(FAST|NAME|DEREF|CLASSDEREF|CLOSURE|GLOBAL)"
)


class Access(NamedTuple):
    """One read, write or deletion of a variable."""

    verb: str  # LOAD, STORE or DELETE
    scope: str  # FAST, NAME, GLOBAL, ...
    name: str


def accesses(instruction: dis.Instruction) -> list[Access]:
    """The variables that an instruction reads or writes, in order."""
    parts: list[tuple[str, str]] = _PART.findall(instruction.opname)
    if not parts:
        return []
    value: object = instruction.argval
    names = [str(each) for each in (value if isinstance(value, tuple) else (value,))]  # pyright: ignore[reportUnknownVariableType]
    if len(parts) != len(names):
        return [Access("LOAD", parts[0][1], name) for name in names]
    return [Access(*part, name) for part, name in zip(parts, names, strict=True)]


def is_read_first(code: Iterable[dis.Instruction], name: str) -> bool:
    """True if the first access to a local variable reads it."""
    for each in code:
        for access in accesses(each):
            if access.name == name and access.scope != "GLOBAL":
                return access.verb == "LOAD"
    return False


def assigned(code: Sequence[dis.Instruction], at: int) -> tuple[str, ...]:
    """The variables that take the value which instruction `at` finds on the stack."""
    count = 1
    if at < len(code) and code[at].opname == "UNPACK_SEQUENCE":
        count, at = code[at].arg or 0, at + 1
    found = [access for each in code[at : at + count] for access in accesses(each)][:count]
    is_stored = len(found) == count and all(access.verb == "STORE" for access in found)
    return tuple(access.name for access in found) if is_stored else ()


def global_reads(code: Iterable[dis.Instruction]) -> Iterator[str]:
    """Names that are looked up among the globals."""
    for each in code:
        for verb, scope, name in accesses(each):
            if verb == "LOAD" and scope in ("GLOBAL", "NAME"):
                yield name


@lru_cache(maxsize=256)
def instructions_of(code: CodeType) -> tuple[list[int], list[dis.Instruction]]:
    """Where the instructions of a code object begin, and the instructions."""
    found = list(dis.get_instructions(code))
    return [each.offset for each in found], found


@lru_cache(maxsize=4096)
def names_assigned(code: CodeType, offset: int) -> tuple[str, ...]:
    """The variables that take the result of the instruction at an offset."""
    offsets, found = instructions_of(code)
    return assigned(found, bisect_right(offsets, offset))
