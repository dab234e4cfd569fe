"""Source locations in the user's code: file, line and columns of a call, and assigned names."""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from inspect import CO_COROUTINE, CO_GENERATOR
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import ParamSpec, TypeVar

from pto.core.errors import Diagnostic, Loc, PtoError
from pto.core.findings import rendered
from pto.lang.call.source import Position, names_at

_HERE = str(Path(__file__).parents[2]) + os.sep
_COMMAND = str(Path(_HERE) / "cli" / "main.py")  # nothing outside it was written by the user
_PYTHON = str(Path(os.__file__).parent) + os.sep
_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\][^/\\]+")
P = ParamSpec("P")
R = TypeVar("R")


class KernelError(PtoError):
    """A mistake in a kernel; printed with the user's line and a caret."""

    def __str__(self) -> str:
        return "\n" + rendered(self.diagnostics)


def is_own(file: str) -> bool:
    """True for a file of this package."""
    return file.startswith(_HERE)


_kernel_packages: set[str] = set()


def defines_kernel(file: str) -> None:
    """Treat the installed package of a file as user code, because it defines kernels."""
    package = _INSTALLED.match(file)
    if package and package[0] not in _kernel_packages:
        _kernel_packages.add(package[0])
        is_users.cache_clear()


@cache
def is_users(file: str) -> bool:
    """True for the user's files: not this package, not Python's library, not an installed package
    unless it defines kernels."""
    if is_own(file) or file.startswith("<frozen "):
        return False
    package = _INSTALLED.match(file)
    return package[0] in _kernel_packages if package else not file.startswith(_PYTHON)


def is_installed(file: str) -> bool:
    """True for a file of an installed package."""
    return _INSTALLED.match(file) is not None


def user_frame() -> FrameType | None:
    """The innermost frame of the user's files, or None."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file):
            return frame
        frame = None if file == _COMMAND else frame.f_back
    return None


def is_loop(frame: FrameType) -> bool:
    """True if the frame is at the beginning of a `for` statement of a plain function of the user's:
    no comprehension, no generator, and no function that takes an iterable."""
    code = frame.f_code
    if not is_users(code.co_filename) or code.co_flags & (CO_GENERATOR | CO_COROUTINE):
        return False
    steps = (s for s in dis.get_instructions(code) if s.offset >= frame.f_lasti)
    words = [s.opname for s in steps if s.opname != "EXTENDED_ARG"][:2]
    return words == ["GET_ITER", "FOR_ITER"]


def user_step(error: BaseException) -> TracebackType | None:
    """The innermost step of an error's traceback that is in the user's files, or None."""
    last: TracebackType | None = None
    step = error.__traceback__
    while step is not None:
        if is_users(step.tb_frame.f_code.co_filename):
            last = step
        step = step.tb_next
    return last


def raised_at(error: BaseException) -> Loc | None:
    """The innermost place in the user's files that an error passed."""
    step = user_step(error)
    return None if step is None else place_of(step.tb_frame.f_code, step.tb_lasti)


def here() -> Loc | None:
    """The user's call that is being executed."""
    frame = user_frame()
    return None if frame is None else place_of(frame.f_code, frame.f_lasti)


def assigned_names() -> tuple[str, ...]:
    """The variables the user's call is assigned to: `a` of `a = f()`, `a, b` of `a, b = f()`."""
    frame = user_frame()
    if frame is None:
        return ()
    return _names_assigned(frame.f_code, frame.f_lasti, frame.f_code.co_filename)


def located(error: PtoError, loc: Loc | None = None) -> KernelError:
    """The error at the user's line, unless it has a place of its own."""
    position = loc or here()
    return KernelError(*(d.at(position) for d in error.diagnostics))


def placed(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; its findings are at the user's line, and the traceback of an exception in
    the user's code begins there."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except PtoError as error:
            raise located(error) from None
        except Exception as error:
            error.__traceback__ = _first_of_user(error.__traceback__)
            raise

    return call


def _first_of_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the user's first frame on; all of it if there is none."""
    step = trace
    while step is not None and not is_users(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    return step or trace


def endless(kernel: str, error: RecursionError) -> KernelError:
    """The error for endless recursion in a kernel, at one of the recursive calls."""
    trace = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    calls = Counter((f.f_code, f.f_lasti) for f in trace if is_users(f.f_code.co_filename))
    (code, offset), _ = calls.most_common(1)[0]
    message = f"{code.co_name} calls itself without end, while kernel {kernel} is traced"
    help = "Python's `if` must end it, by numbers that Python knows; pto.range is a loop"
    return KernelError(Diagnostic("PTO-U218", message, place_of(code, offset), help=help))


def mistake(code: str, message: str, *, help: str | None = None) -> KernelError:
    """The error to raise for the user's current line."""
    return KernelError(Diagnostic(code, message, here(), help=help))


def place_of(code: CodeType, offset: int) -> Loc:
    """Line and columns of an instruction of Python."""
    return _place(code, offset, code.co_filename)


@lru_cache(maxsize=4096)
def _place(code: CodeType, offset: int, file: str) -> Loc:
    """`file` is a part of the key: equal functions of two files have equal code."""
    line, last, start, end = _position(code, offset)
    if line is None:
        return Loc(file, code.co_firstlineno)
    if start is None:
        return Loc(file, line)
    text = linecache.getline(file, line)
    first = _characters(text, start)
    stop = _characters(text, end) if end is not None and last == line else len(text.rstrip())
    return Loc(file, line, first + 1, max(stop, first + 1) + 1)


def _position(code: CodeType, offset: int) -> Position:
    return next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))


@lru_cache(maxsize=4096)
def _names_assigned(code: CodeType, offset: int, file: str) -> tuple[str, ...]:
    return names_at(file, _position(code, offset))


def _characters(text: str, offset: int) -> int:
    """Python counts columns in UTF-8 bytes."""
    return len(text.encode()[:offset].decode(errors="ignore")) if text else offset
