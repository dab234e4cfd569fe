"""Numbers of a proof for every size: Python may compute with them, and may not ask what they are.

Such a number stands for one that Python knows at every launch. A kernel that decides by its type
(`isinstance(n, int)`, `hasattr(n, "bit_length")`) would be proved as another program than the one
that runs, so the question ends the trace, and the size is the number of the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from pto.lang.call.place import is_own, mistake
from pto.lang.values.scalars import Scalar

_PASSED_ON = ("abc.py", "functools.py")  # of Python: they ask for their callers
ASKING = frozenset({"type", "id"})  # builtins that ask the object for nothing


class SizeOfCall(Scalar[object]):
    """A number that depends on sizes which Python knows at a launch."""

    __slots__ = ()

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._require_own("type")
        return SizeOfCall

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("__"):
            self._require_own(name)
        raise AttributeError(name)

    @property
    def to(self) -> Callable[[object], Scalar[object]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._require_own("type")
        return super().to

    def __repr__(self) -> str:
        self._require_own("text")
        return super().__repr__()

    def __copy__(self) -> SizeOfCall:
        return self._refuse("copy")

    def __deepcopy__(self, memo: object) -> SizeOfCall:
        return self._refuse("copy")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("copy")

    def _require_own(self, what: str) -> None:
        """Raise unless code of this package asks."""
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame.f_back is not None and frame.f_code.co_filename.endswith(_PASSED_ON):
            frame = frame.f_back
        if not is_own(frame.f_code.co_filename):
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        self.home.has_asked = True  # also where the kernel catches the exception
        raise mistake("PTO-U203", f"Python needs the {what} of a size while the kernel is traced")


SizeOfCall.__name__ = Scalar.__name__  # as messages of Python call it
