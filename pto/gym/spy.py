"""Records what a judge reads and compares, to name the first element it rejects.

Used only in a second run of a judge that has rejected a case; it never judges. It imports nothing
of this package, because it is loaded into the process of the judge.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

_WATCHED = ("fromfile", "allclose", "array_equal")


class Spy:
    """While entered, NumPy's reading and comparing functions are recorded here."""

    def __init__(self) -> None:
        self.read: list[tuple[str, npt.NDArray[Any]]] = []
        self.rejected: dict[str, Any] | None = None
        self._own: dict[str, Callable[..., Any]] = {n: getattr(np, n) for n in _WATCHED}

    def __enter__(self) -> Spy:
        for name in _WATCHED:
            setattr(np, name, getattr(self, f"on_{name}"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for name, function in self._own.items():
            setattr(np, name, function)

    def on_fromfile(self, file: Any, *args: Any, **kw: Any) -> npt.NDArray[Any]:
        array = self._own["fromfile"](file, *args, **kw)
        self.read.append((Path(str(file)).name, array.copy()))
        return array

    def on_allclose(self, a: Any, b: Any, *args: Any, **kw: Any) -> bool:
        verdict = bool(self._own["allclose"](a, b, *args, **kw))
        if not verdict:
            self._reject(a, b, lambda: np.isclose(a, b, *args, **kw))
        return verdict

    def on_array_equal(self, a: Any, b: Any, *args: Any, **kw: Any) -> bool:
        verdict = bool(self._own["array_equal"](a, b, *args, **kw))
        if not verdict:
            self._reject(a, b, lambda: np.asarray(a) == np.asarray(b))
        return verdict

    def _reject(self, a: Any, b: Any, same: Callable[[], Any]) -> None:
        if self.rejected is not None or np.shape(a) != np.shape(b):
            return
        difference = first_difference(np.asarray(a), np.asarray(b), np.asarray(same()))
        if difference is not None and self._is_swapped(difference):
            difference["got"], difference["expected"] = difference["expected"], difference["got"]
        self.rejected = difference

    def _is_swapped(self, difference: dict[str, Any]) -> bool:
        """Whether the judge put the output first: by which file holds which value."""
        golden = [a for name, a in self.read if "golden" in name]
        others = [a for name, a in self.read if "golden" not in name]

        def score(expected: Any, got: Any) -> int:
            return _holds(golden, expected) + _holds(others, got)

        as_given = score(difference["expected"], difference["got"])
        return score(difference["got"], difference["expected"]) > as_given

    def difference(self) -> dict[str, Any] | None:
        """The first element the judge rejected, else the first in which its files differ."""
        first = self.rejected or self._in_files()
        if first is None:
            return None
        return {**first, "expected": _plain(first["expected"]), "got": _plain(first["got"])}

    def _in_files(self) -> dict[str, Any] | None:
        for name, golden in self.read:
            wanted = "output.bin" if name == "golden.bin" else name.removeprefix("golden_")
            for other, output in self.read:
                if other == wanted != name and golden.shape == output.shape:
                    difference = first_difference(golden, output, golden == output)
                    if difference is not None:
                        return {**difference, "file": other}
        return None


def first_difference(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], same: npt.NDArray[Any]
) -> dict[str, Any] | None:
    """Where `same` is False first, with both values and how many there are."""
    wrong = np.flatnonzero(~np.broadcast_to(same, expected.shape))
    if not wrong.size:
        return None
    index = np.unravel_index(wrong[0], expected.shape)
    return {
        "index": [int(i) for i in index],
        "expected": expected[index],
        "got": got[index],
        "differing": int(wrong.size),
        "size": int(expected.size),
    }


def _holds(arrays: list[npt.NDArray[Any]], value: Any) -> bool:
    return any(bool((array == value).any()) for array in arrays)


def _plain(value: Any) -> Any:
    """A NumPy scalar as JSON can carry it."""
    number: Any = value.item() if hasattr(value, "item") else value
    return number if isinstance(number, int | str) else repr(float(number))
