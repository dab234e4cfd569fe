"""Checks names bound inside a loop of the program, in a function that is not rewritten.

The body is traced once, however often it will run. A name that Python binds there keeps the value
of the first iteration, so a use after the loop or in the next iteration would be wrong silently.
"""

from __future__ import annotations

from typing import Any

from pto.lang.call.place import mistake, user_frame
from pto.lang.call.rewritten import why_not
from pto.lang.call.session import ValueHandle

_MISSING = object()
_PLAIN = (int, float, str, bytes, type(None))


class Bindings:
    """The local variables of the user's function at the start of a loop body."""

    def __init__(self) -> None:
        frame = user_frame()
        self._before: dict[str, Any] = {} if frame is None else dict(frame.f_locals)
        why = None if frame is None else why_not(frame.f_code)
        self.reason = why or "it is not the function of a kernel, nor called by one"

    def require_kept(self) -> None:
        """Raise if a variable has another value now, at the end of the body."""
        frame = user_frame()
        for name, value in dict({} if frame is None else frame.f_locals).items():
            before = self._before.get(name, _MISSING)
            if _differ(before, value):
                raise mistake(
                    "PTO-U217",
                    f"`{name}` is bound inside a loop of the program, in a function that is not"
                    f" rewritten: {self.reason}; the body is traced once, so later iterations would"
                    " see the value of the first",
                    help="put the function into a file; or change a tile in place, `t[:] = ...`",
                )


def _differ(before: object, after: object) -> bool:
    if before is after or before is _MISSING:
        return False
    if isinstance(before, _PLAIN) and isinstance(after, _PLAIN):
        return type(before) is not type(after) or before != after
    return isinstance(before, (*_PLAIN, ValueHandle)) or isinstance(after, ValueHandle)
