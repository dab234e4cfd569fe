"""Python names that are bound inside a loop of a function that runs as it is.

Its body is traced once, however often it will run. A name that Python binds there has one value
ever after, so a later use of it, or one in the next iteration, would be wrong in silence.
"""

from __future__ import annotations

from typing import Any

from pto.lang.call.place import mistake, user_frame
from pto.lang.call.rewritten import why_not
from pto.lang.call.session import Handle

_MISSING = object()
_PLAIN = (int, float, str, bytes, type(None))


class Bindings:
    """The names of the user's function where a body begins; `require_kept` asks where it ends."""

    def __init__(self) -> None:
        frame = user_frame()
        self._before: dict[str, Any] = {} if frame is None else dict(frame.f_locals)
        why = None if frame is None else why_not(frame.f_code)
        self.reason = why or "it is not the function of a kernel, nor called by one"

    def require_kept(self) -> None:
        """No name that had a value was bound to another one."""
        frame = user_frame()
        for name, value in dict({} if frame is None else frame.f_locals).items():
            before = self._before.get(name, _MISSING)
            if _differ(before, value):
                raise mistake(
                    "PTO-U217",
                    f"`{name}` is bound inside a loop of the program, in a function that runs as it"
                    f" is: {self.reason}; its body is traced once, so the next iteration would see"
                    " the value of the first",
                    help="put the function into a file; or change a tile in place, `t[:] = ...`",
                )


def _differ(before: Any, after: Any) -> bool:
    if before is after or before is _MISSING:
        return False
    if isinstance(before, _PLAIN) and isinstance(after, _PLAIN):
        return type(before) is not type(after) or before != after
    return isinstance(before, (*_PLAIN, Handle)) or isinstance(after, Handle)
