"""Python names that are bound inside loops and branches of the program.

A body is traced once, whether or how often it will run. A name that Python binds there has one
value ever after, so a later use of it, or one in the next iteration, would be wrong in silence.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from textwrap import dedent
from types import CodeType, FrameType
from typing import Any

from pto.lang.call.bytecode import instructions_of, is_read_first
from pto.lang.call.place import KernelError, mistake, user_frame
from pto.lang.call.session import Handle

_MISSING = object()
_PLAIN = (int, float, str, bytes, type(None))


class Bindings:
    """The names of the user's function where a body begins; `require_kept` asks where it ends."""

    def __init__(self, *, loop: bool) -> None:
        self._loop = loop
        frame = user_frame()
        self._before: dict[str, Any] = {} if frame is None else dict(frame.f_locals)

    def require_kept(self) -> None:
        """Nothing that was bound inside is used later; else an error that names the carry."""
        frame = user_frame()
        if frame is None:
            return
        for name, value in dict(frame.f_locals).items():
            before = self._before.get(name, _MISSING)
            if _differ(before, value, self._loop) and self._is_used(frame, name):
                raise _lost(name, before, value, self._loop)

    def _is_used(self, frame: FrameType, name: str) -> bool:
        offsets, code = instructions_of(frame.f_code)
        here = offsets.index(frame.f_lasti) if frame.f_lasti in offsets else 0
        end = code[here].argval if code[here].opname.startswith("FOR_ITER") else frame.f_lasti
        after = [each for each in code if each.offset > end]
        body = [each for each in code if frame.f_lasti < each.offset < end]
        return is_read_first(after, name) or is_read_first(body, name)


def require_no_return() -> None:
    """A `with` block goes on to what follows it: a return inside would end the whole trace."""
    frame = user_frame()
    line = None if frame is None else _returns(frame.f_code).get(frame.f_lineno)
    if line is not None:
        raise mistake(
            "PTO-U206",
            f"a branch of the program is left with return on line {line}: a branch is traced"
            " whether it will run or not, so nothing after it would be in the program",
            help="put what follows under the opposite condition, or into `with pto.Else():`",
        )


@lru_cache(maxsize=256)
def _returns(code: CodeType) -> dict[int, int]:
    """Lines of `with` statements that have a return inside, and its line."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(dedent("".join(lines)))
    except (OSError, SyntaxError):  # no source, or only a part of a statement
        return {}
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    found = {block.lineno: node.lineno for block in blocks for node in _own_returns(block)}
    start = max(first, 1) - 1
    return {block + start: line + start for block, line in found.items()}


def _own_returns(node: ast.AST) -> Iterator[ast.Return]:
    """Those inside a statement, not those of functions inside it."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Return):
            yield each
        elif not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _own_returns(each)


def _differ(before: Any, after: Any, loop: bool) -> bool:
    if before is after:
        return False
    if before is _MISSING:  # a loop's own constants and values; these end with it (PTO-U216)
        return not loop and isinstance(after, _PLAIN)
    if isinstance(before, _PLAIN) and isinstance(after, _PLAIN):
        return type(before) is not type(after) or before != after
    return isinstance(before, (*_PLAIN, Handle)) or isinstance(after, Handle)


def _lost(name: str, before: Any, value: Any, loop: bool) -> KernelError:
    what = "loop" if loop else "branch"
    shown = f"{value!r}" if isinstance(value, _PLAIN) else "what it is now"
    start = f"{before!r}" if isinstance(before, _PLAIN) and before is not None else "..."
    carried = f"{name} = pto.carry({start}) before it, {name}.set(...) inside, {name}.value after"
    return mistake(
        "PTO-U217",
        f"`{name}` is bound inside a {what} of the program, which is traced once: from here on it"
        f" would be {shown}, however the {what} runs",
        help=f"write {carried}"
        if not _is_memory(before) and not _is_memory(value)
        else f"change the tile in place: {name} += ..., {name}[:] = ..., or for products"
        f" pto.dot(a, b, acc={name}); two buffers in turn are iterations written out in pairs",
    )


def _is_memory(value: Any) -> bool:
    return isinstance(value, Handle) and value.type.kind not in ("scalar", "vreg", "mask")
