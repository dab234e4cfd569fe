"""Where the user's code stands: file, line and columns of a call, and the names it assigns to."""

from __future__ import annotations

import dis
import linecache
import sys
import traceback
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from pto.core import render
from pto.core.errors import Diagnostic, Loc, PtoError

_HERE = str(Path(__file__).parents[2])
P = ParamSpec("P")
R = TypeVar("R")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")


class KernelError(PtoError):
    """A mistake in a kernel; printed with the user's line and a caret."""

    def __str__(self) -> str:
        return "\n" + rendered(self.diagnostics)


def rendered(diagnostics: Sequence[Diagnostic]) -> str:
    """Findings with their lines, those of notebooks and consoles too."""
    return render.text(diagnostics, sources_of(diagnostics))


def sources_of(diagnostics: Sequence[Diagnostic]) -> render.Sources:
    """The text that findings point into; Python keeps that of cells and consoles."""
    places = [d.loc for d in diagnostics] + [n.loc for d in diagnostics for n in d.notes]
    texts = {loc.file: "".join(linecache.getlines(loc.file)) for loc in places if loc}
    shown = {file: text for file, text in texts.items() if text}
    return render.Sources(shown)


def is_own(file: str) -> bool:
    """Whether a file belongs to this package."""
    return file.startswith(_HERE)


def user_frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def here() -> Loc | None:
    """The user's call that is being executed."""
    frame = user_frame()
    return None if frame is None else place_of(frame.f_code, frame.f_lasti)


def assigned_names() -> tuple[str, ...]:
    """The variables the user's call is assigned to: `a` of `a = f()`, `a, b` of `a, b = f()`."""
    frame = user_frame()
    return () if frame is None else _names(frame.f_code, frame.f_lasti)


def located(error: PtoError, loc: Loc | None = None) -> KernelError:
    """The error at the user's line, unless it has a place of its own."""
    place = loc or here()
    return KernelError(*(d.at(place) for d in error.diagnostics))


def placed(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; what it finds wrong is shown at the user's line."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except PtoError as error:
            raise located(error) from None

    return call


def endless(kernel: str, error: RecursionError) -> KernelError:
    """The error for a kernel whose functions call each other without end, at such a call."""
    trace = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    calls = Counter((f.f_code, f.f_lasti) for f in trace if not is_own(f.f_code.co_filename))
    (code, offset), _ = calls.most_common(1)[0]
    message = f"{code.co_name} calls itself without end, while kernel {kernel} is traced"
    help = "Python's `if` must end it, by numbers that Python knows; pto.range is a loop"
    return KernelError(Diagnostic("PTO-U218", message, place_of(code, offset), help=help))


def mistake(code: str, message: str, *, help: str | None = None) -> KernelError:
    """The error to raise for the user's current line."""
    return KernelError(Diagnostic(code, message, here(), help=help))


@lru_cache(maxsize=4096)
def place_of(code: CodeType, offset: int) -> Loc:
    """Line and columns of an instruction of Python."""
    position = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    line, last, start, end = position
    if line is None:
        return Loc(code.co_filename, code.co_firstlineno)
    if start is None:
        return Loc(code.co_filename, line)
    text = linecache.getline(code.co_filename, line)
    first = _characters(text, start)
    stop = _characters(text, end) if end is not None and last == line else len(text.rstrip())
    return Loc(code.co_filename, line, first + 1, max(stop, first + 1) + 1)


def _characters(text: str, offset: int) -> int:
    """Python counts columns in UTF-8 bytes."""
    return len(text.encode()[:offset].decode(errors="ignore")) if text else offset


@lru_cache(maxsize=256)
def instructions_of(code: CodeType) -> tuple[list[int], list[dis.Instruction]]:
    """Where the instructions of a code object begin, and what they are."""
    found = list(dis.get_instructions(code))
    return [each.offset for each in found], found


@lru_cache(maxsize=4096)
def _names(code: CodeType, offset: int) -> tuple[str, ...]:
    offsets, found = instructions_of(code)
    at = bisect_right(offsets, offset)
    count = 1
    if at < len(found) and found[at].opname == "UNPACK_SEQUENCE":
        count, at = found[at].arg or 0, at + 1
    names = [str(each.argval) for each in found[at : at + count] if each.opname in _STORES]
    return tuple(names) if len(names) == count else ()
