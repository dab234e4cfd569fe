"""What leaves the process of a candidate: launches of programs on named arrays, as plain data.

Nothing else is believed. A message is read with every field checked, so a candidate that writes its
own message gains nothing: its programs still have to be right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from pto.cluster.kernel_message import ProgramText
from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, Loc, Note, fail
from pto.ir.graph import Module
from pto.run.launch.call import Blocks

Array = npt.NDArray[Any]
POISONS = (0xFF, 0x7B)  # bytes of memory that was never written: NaN or -1, and a large number
_MOST_SCRATCH = 1 << 32  # bytes
_MOST_BLOCKS = 1 << 20
_CODE = re.compile(r"PTO-[A-Z]\d{3}")


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """An array of a launch: a part of an argument of the task, or of scratch memory."""

    name: str
    offset: int  # bytes
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str

    def of(self, arrays: Mapping[str, Array]) -> Array:
        flat = arrays[self.name].reshape(-1).view(np.uint8)
        kind = dtype(self.kind).numpy
        inside = flat[self.offset :]
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        fits = self.offset >= 0 and last + kind.itemsize <= inside.size
        if 0 in self.shape or min((*self.strides, 0)) < 0 or not fits:
            raise fail("PTO-J013", f"a launch uses bytes outside of {self.name}")
        elements = inside[: inside.size // kind.itemsize * kind.itemsize].view(kind)
        return as_strided(elements, self.shape, self.strides)


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One launch of a program."""

    program: ProgramText
    args: tuple[ArrayPart | int | float, ...]
    blocks: Blocks
    entry: str | None = None

    @property
    def module(self) -> Module:
        return _module(self.program)

    def values(self, arrays: Mapping[str, Array]) -> list[Any]:
        return [a.of(arrays) if isinstance(a, ArrayPart) else a for a in self.args]


@lru_cache(256)
def _module(program: ProgramText) -> Module:
    return program.module()


@dataclass(frozen=True, slots=True)
class Calls:
    """The launches of a candidate for one case, and the scratch memory between them."""

    launches: tuple[RecordedLaunch, ...]
    scratch: tuple[int, ...] = ()  # bytes

    def with_scratch(
        self, arrays: Mapping[str, Array], poison: int | None = None
    ) -> dict[str, Array]:
        """The arrays of the task, and new scratch memory, which holds another pattern."""
        scratch_arrays = {
            _scratch(n): np.empty(size, np.uint8) for n, size in enumerate(self.scratch)
        }
        for array in scratch_arrays.values() if poison is not None else ():
            array.fill((poison or 0) ^ 1)  # a copy of scratch memory is no unwritten output
        return {**arrays, **scratch_arrays}


def _scratch(number: int) -> str:
    return f"scratch {number}"


# ---- writing, in the process of the candidate


class Recorder:
    """Collects the launches of one call: which arrays they use is decided by address."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._known = [(name, *_bytes_of(a)) for name, a in arrays.items()]
        self._kept: list[Array] = []  # scratch arrays live on: their addresses are keys
        self.scratch: list[int] = []
        self.launches: list[dict[str, Any]] = []
        self.programs: dict[str, dict[str, Any]] = {}

    def add(self, module: Module, args: Sequence[Any], blocks: Blocks) -> None:
        program = ProgramText.of(module)
        self.programs.setdefault(program.key, _program(program))
        arguments = [self._part(a) if isinstance(a, np.ndarray) else _number(a) for a in args]
        self.launches.append({"program": program.key, "args": arguments, "blocks": blocks})

    def _part(self, array: Array) -> dict[str, Any]:
        start, end = _bytes_of(array)
        inside = ((n, low) for n, low, high in self._known if low <= start and end <= high)
        name, low = next(inside, (_scratch(len(self.scratch)), start))
        if name == _scratch(len(self.scratch)):
            self._known.append((name, start, end))
            self._kept.append(array)
            self.scratch.append(end - start)
        return {
            "name": name,
            "offset": start - low,
            "shape": array.shape,
            "strides": array.strides,
            "kind": dtype(array.dtype).name,
        }


def _bytes_of(array: Array) -> tuple[int, int]:
    """The first byte, and one past the last."""
    return np.lib.array_utils.byte_bounds(array)


def _number(value: Any) -> int | float:
    return value if isinstance(value, int | float) else value.item()


def _program(program: ProgramText) -> dict[str, Any]:
    places = [None if p is None else [p.file, p.line, p.col, p.end] for p in program.places]
    return {"text": program.text, "file": program.file, "places": places}


def finding_data(finding: Diagnostic) -> dict[str, Any]:
    """A finding as plain data; `read_findings` reads it."""
    return {
        "code": finding.code,
        "message": finding.message,
        "loc": _loc_data(finding.loc),
        "severity": finding.severity,
        "notes": [[n.message, _loc_data(n.loc)] for n in finding.notes],
        "help": finding.help,
    }


def _loc_data(loc: Loc | None) -> list[Any] | None:
    return None if loc is None else [loc.file, loc.line, loc.col, loc.end]


# ---- reading, in the process of the judge


def read_calls(data: Any) -> list[Calls]:
    """The launches for each case; raises for data that is no such message."""
    try:
        programs = {str(key): _read_program(entry) for key, entry in dict(data["programs"]).items()}
        return [_read_case(entry, programs) for entry in data["cases"]]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise fail("PTO-J013", f"the candidate's process sent no launches: {error!r}") from None


def _read_program(data: Any) -> ProgramText:
    text, file = str(data["text"]), str(data["file"])
    places = tuple(map(_read_loc, data["places"]))
    return ProgramText(sha256(f"{text}{places}".encode()).hexdigest(), text, file, places)


def _read_loc(data: Any) -> Loc | None:
    if data is None:
        return None
    file, line, col, end = data
    return Loc(str(file), int(line), int(col), None if end is None else int(end))


def _read_case(data: Any, programs: Mapping[str, ProgramText]) -> Calls:
    scratch = tuple(int(n) for n in data["scratch"])
    if min((*scratch, 0)) < 0 or sum(scratch) > _MOST_SCRATCH:
        message = f"{sum(scratch) / 1e9:.1f} GB of scratch memory"
        raise fail("PTO-J009", f"the host part of the candidate requests {message}")
    launches = tuple(_read_launch(entry, programs) for entry in data["launches"])
    return Calls(launches, scratch)


def _read_launch(data: Any, programs: Mapping[str, ProgramText]) -> RecordedLaunch:
    blocks = data["blocks"]
    blocks = int(blocks) if isinstance(blocks, int) else tuple(int(n) for n in blocks)
    count = blocks if isinstance(blocks, int) else prod(blocks)
    if not 0 < count <= _MOST_BLOCKS:
        raise fail("PTO-J009", f"a launch of {count:,} blocks; at most {_MOST_BLOCKS:,}")
    args = tuple(_read_part(a) if isinstance(a, dict) else _read_number(a) for a in data["args"])
    return RecordedLaunch(programs[str(data["program"])], args, blocks)


def _read_part(data: Any) -> ArrayPart:
    shape, strides = (tuple(int(n) for n in data[key]) for key in ("shape", "strides"))
    if len(shape) != len(strides):
        raise ValueError("strides do not fit the shape")
    kind = dtype(str(data["kind"])).name
    return ArrayPart(str(data["name"]), int(data["offset"]), shape, strides, kind)


def _read_number(data: Any) -> int | float:
    if not isinstance(data, int | float):
        raise TypeError(f"{data!r} is not a number")
    return data


def read_findings(data: Any) -> list[Diagnostic]:
    """The findings that the candidate's process reports, at least one."""
    if not isinstance(data, list) or not data:
        raise fail("PTO-J013", "the candidate's process sent neither launches nor findings")
    return [_finding(entry) for entry in data]  # pyright: ignore[reportUnknownVariableType]


def _finding(data: Any) -> Diagnostic:
    try:
        notes = tuple(Note(str(text), _read_loc(loc)) for text, loc in data["notes"])
        help = None if data["help"] is None else str(data["help"])
        code, message = str(data["code"]), str(data["message"])
        if _CODE.fullmatch(code) is None:
            raise ValueError(code)
        return Diagnostic(code, message, _read_loc(data["loc"]), "error", notes, help)
    except (KeyError, TypeError, ValueError) as error:
        raise fail("PTO-J013", f"the candidate's process sent no finding: {error!r}") from None
