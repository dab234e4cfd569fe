"""Checks a loop of the program in a function that is not rewritten.

The body is traced once, however often it will run. A name that Python binds there, and a container
that it changes, keep the value of the first iteration, so a use after the loop or in the next
iteration would be wrong silently.
"""

from __future__ import annotations

from pto.lang.call.place import mistake, user_frame
from pto.lang.call.rewritten import why_not
from pto.lang.call.session import ValueHandle
from pto.lang.captured import names_of
from pto.lang.front.contents import reachable, require_contents
from pto.lang.trace import Trace

_MISSING = object()
_PLAIN = (int, float, str, bytes, type(None))


class Bindings:
    """The variables of the user's function at the start of a loop body, and what they hold."""

    def __init__(self, trace: Trace) -> None:
        frame = user_frame()
        self._trace = trace
        self._before: dict[str, object] = {} if frame is None else dict(frame.f_locals)
        read = () if frame is None else names_of(frame.f_code)
        around = {name: frame.f_globals[name] for name in read if name in frame.f_globals}  # pyright: ignore[reportOptionalMemberAccess]
        self._contents = reachable([*around.items(), *self._before.items()], trace)
        why = None if frame is None else why_not(frame.f_code)
        self.reason = why or "it is not the function of a kernel, nor called by one"

    def require_kept(self) -> None:
        """Raise if a variable has another value now, at the end of the body, or holds another."""
        require_contents(self._trace, self._contents)
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
