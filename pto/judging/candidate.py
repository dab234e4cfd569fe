"""A candidate: a kernel in Python, a `.pto` program or a C++ file, and how it is called.

Text has no host part, so a comment may say how it is launched, by expressions of the sizes of the
task: `// pto judge: blocks=cdiv(m, 16) rows=m`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from pto.cluster.kernel_message import ProgramText
from pto.core.dtypes import dtype
from pto.core.errors import PtoError, fail
from pto.ir.text.parser import parse, read_source
from pto.judging.programs import ArrayPart, Calls, RecordedLaunch
from pto.lang.arithmetic import computed, parsed
from pto.lang.file import PYTHON
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import LaunchParameter, parameters

KINDS = {".pto": "pto", ".py": "python"}
_HOW = re.compile(r"^\s*//\s*pto judge:(.*)$", re.MULTILINE)
_PART = re.compile(r"(\w+)=((?:[^\s()]|\([^)]*\))+)")
_BLOCKS, _ENTRY = "blocks", "entry"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The text of a candidate, and what to call."""

    name: str
    kind: str  # python, pto
    text: str = field(repr=False)
    entry: str | None = None
    blocks: str | None = None  # an expression of sizes

    def calls(
        self, arrays: Mapping[str, tuple[tuple[int, ...], str]], numbers: Mapping[str, Any]
    ) -> Calls:
        """The launch of `.pto` text on the arrays of a case."""
        how = dict(_PART.findall(" ".join(_HOW.findall(self.text))))
        program, params = _program(self.name, self.text, self.entry or how.get(_ENTRY))
        arrays_by_name = _by_name([p for p in params if p.is_array], arrays)
        arguments: list[ArrayPart | int | float] = []
        for p in params:
            if p.is_array:
                arguments.append(_whole(arrays_by_name[p.name], arrays))
            else:
                arguments.append(_number(self.name, p.name, how.get(p.name, p.name), numbers))
        text = self.blocks or how.get(_BLOCKS, "1")
        blocks = _number(self.name, _BLOCKS, text, numbers)
        return Calls(
            (RecordedLaunch(program, tuple(arguments), blocks, self.entry or how.get(_ENTRY)),)
        )


@lru_cache(8)
def _program(name: str, text: str, entry: str | None) -> tuple[ProgramText, list[LaunchParameter]]:
    module = parse(text, name)
    return ProgramText.of(module), parameters(*entry_functions(module, entry))


def _by_name(params: list[LaunchParameter], arrays: Mapping[str, Any]) -> dict[str, str]:
    """The array of the task for each pointer: by name, else in order."""
    names = [p.name for p in params]
    if set(names) <= set(arrays):
        return {name: name for name in names}
    if len(names) != len(arrays):
        message = f"the program has the arrays {', '.join(names)}"
        raise fail("PTO-U351", message, help=f"the task has {', '.join(arrays)}")
    return dict(zip(names, arrays, strict=True))


def _whole(name: str, arrays: Mapping[str, tuple[tuple[int, ...], str]]) -> ArrayPart:
    shape, kind = arrays[name]
    size = dtype(kind).itemsize
    strides = tuple(size * prod(shape[n + 1 :]) for n in range(len(shape)))
    return ArrayPart(name, 0, shape, strides, kind)


def _number(candidate: str, name: str, text: str, numbers: Mapping[str, Any]) -> Any:
    if isinstance(numbers.get(text), int | float):
        return numbers[text]
    try:
        return computed(parsed(text), numbers)
    except ValueError as error:
        raise fail(
            "PTO-U351",
            f"{candidate}: {name} is not known: {error}",
            help=f"add a comment: // pto judge: blocks=1 {name}=EXPRESSION",
        ) from None


def read_candidate(file: str, blocks: str | None = None) -> Candidate:
    """The candidate of a file: `k.py`, `k.py:softmax`, `k.pto`."""
    python = PYTHON.fullmatch(file)
    path, entry = (Path(python[1]), python[2]) if python else (Path(file), None)
    kind = KINDS.get(path.suffix)
    if kind is None:
        raise fail("PTO-U351", f"{file} is no candidate", help="give a .py or .pto file")
    if not path.is_file():
        raise fail("PTO-U005", f"there is no file {path}")
    return Candidate(str(path), kind, _text(path), entry, blocks)


def _text(path: Path) -> str:
    try:
        return read_source(path)
    except PtoError:
        raise
    except OSError as error:
        raise fail("PTO-U005", f"{path} cannot be read: {error.strerror}") from None
