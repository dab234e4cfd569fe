"""Python's operators on tiles: there are none, and the error names the instruction to write."""

from __future__ import annotations

from typing import Any, NoReturn

from pto.lang.call.place import mistake

# operator -> the instruction on two tiles, and on a tile and a number
_INSTRUCTIONS = {
    "+": ("tadd", "tadds"),
    "-": ("tsub", "tsubs"),
    "*": ("tmul", "tmuls"),
    "/": ("tdiv", "tdivs"),
    "@": ("tmatmul", "tmatmul"),
}


class NoOperators:
    """A tile is memory: an instruction says which tile takes the result."""

    __slots__ = ()

    def __add__(self, other: Any) -> NoReturn:
        _refuse("+", self, other)

    def __sub__(self, other: Any) -> NoReturn:
        _refuse("-", self, other)

    def __mul__(self, other: Any) -> NoReturn:
        _refuse("*", self, other)

    def __truediv__(self, other: Any) -> NoReturn:
        _refuse("/", self, other)

    def __matmul__(self, other: Any) -> NoReturn:
        _refuse("@", self, other)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise mistake(
            "PTO-U081",
            "a tile has no elements to assign to: instructions write all of a valid region",
            help="write a number everywhere with pto.texpands(t, number), or load an array",
        )

    def __radd__(self, other: Any) -> NoReturn:
        _refuse("+", self, other)

    def __rsub__(self, other: Any) -> NoReturn:
        _refuse("-", self, other)

    def __rmul__(self, other: Any) -> NoReturn:
        _refuse("*", self, other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        _refuse("/", self, other)


def _refuse(sign: str, tile: Any, other: Any) -> NoReturn:
    two, scalar = _INSTRUCTIONS[sign]
    call = f"{two}(dst, a, b)" if isinstance(other, NoOperators) else f"{scalar}(dst, t, {other!r})"
    raise mistake(
        "PTO-U081",
        f"a tile has no `{sign}`: a tile is memory, and nothing says where the result goes",
        help=f"write the instruction: pto.{call}; dst may be the tile itself",
    )
