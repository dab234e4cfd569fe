"""Operators and methods of tiles: arithmetic, reductions, conversions. Each is an instruction.

`lang/express` selects the instructions; it depends on tiles, so it is imported when needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pto.lang.values.operators import Operators, left, plain, right

if TYPE_CHECKING:
    from pto.lang.values.tiles import Tile


def _in_place(sign: str) -> Callable[[Any, object], Tile]:
    """The method of `t += other` and the like."""

    def update(self: Any, other: object) -> Tile:
        from pto.lang.express import algebra

        return algebra.accumulate(sign, self, plain(other))

    return update


class Expressions(Operators["Tile"]):
    """Operators and methods of a tile; results are new tiles."""

    __slots__ = ()

    def operate(self, sign: str, a: Any, b: Any) -> Tile:
        """An operator in the order written: `a` or `b` is this tile."""
        from pto.lang.express import algebra, convert, product

        if sign == "//" and algebra.is_of_floats(a, b):
            return convert.floor(algebra.binary("/", a, b))
        return product.dot(a, b) if sign == "@" else algebra.binary(sign, a, b)

    def _unary(self, word: str) -> Tile:
        from pto.lang.express import algebra

        return algebra.unary(word, self)

    def __neg__(self) -> Tile:
        return self._unary("neg")

    def __abs__(self) -> Tile:
        return self._unary("abs")

    def __invert__(self) -> Tile:
        return self._unary("~")

    __pow__, __rpow__ = left("**"), right("**")
    __iadd__, __isub__ = _in_place("+"), _in_place("-")
    __imul__, __itruediv__ = _in_place("*"), _in_place("/")

    # ---- folds

    def _fold(self, word: str, axis: int | None, keepdims: bool = True) -> Tile:
        from pto.lang.express import folds

        folds.require_dimensions(keepdims)
        return folds.fold(word, self, axis)  # pyright: ignore[reportArgumentType]

    def sum(self, axis: int | None = None, keepdims: bool = True) -> Tile:
        """The sum of each row (axis 1, a column) or of each column (axis 0, a row)."""
        return self._fold("sum", axis, keepdims)

    def prod(self, axis: int | None = None) -> Tile:
        """The product along an axis."""
        return self._fold("prod", axis)

    def max(self, axis: int | None = None, keepdims: bool = True) -> Tile:
        """The greatest element along an axis."""
        return self._fold("amax", axis, keepdims)

    def min(self, axis: int | None = None, keepdims: bool = True) -> Tile:
        """The least element along an axis."""
        return self._fold("amin", axis, keepdims)

    def argmax(self, axis: int) -> Tile:
        """Where the greatest element is along an axis, in i32; the first of equal ones."""
        return self._fold("argmax", axis)

    def argmin(self, axis: int) -> Tile:
        """Where the least element is along an axis, in i32."""
        return self._fold("argmin", axis)

    def mean(self, axis: int | None = None, keepdims: bool = True) -> Tile:
        """The mean along an axis, over the valid elements: a sum, divided by a number."""
        from pto.lang.express import folds

        folds.require_dimensions(keepdims)
        return folds.mean(self, axis)  # pyright: ignore[reportArgumentType]

    # ---- conversion and transposition

    def to(
        self, dtype: object, *, rounding: str | None = None, saturate: bool | None = None
    ) -> Tile:
        """The tile in another element type: one tcvt. Floats lose their fraction in an integer.

        `rounding` is "even", "away", "floor", "ceil", "trunc" or "odd". `saturate` clamps numbers
        to the range of the type, False keeps their low bits; by default the two types decide
        (`pto isa tcvt`).
        """
        from pto.lang.express import convert

        return convert.convert(self, dtype, rounding, saturate)  # pyright: ignore[reportArgumentType]

    astype = to

    def reshape(self, rows: int, cols: int) -> Tile:
        """The same elements, row by row, in another shape; a size of -1 follows from the other."""
        from pto.lang.express import arrange

        return arrange.reshape(self, rows, cols)  # pyright: ignore[reportArgumentType]

    @property
    def T(self) -> Tile:
        """The transposed tile: one ttrans; a single row or column is a view without instruction."""
        from pto.lang.express import product

        return product.transpose(self)  # pyright: ignore[reportArgumentType]
