"""Arithmetic expressions in text: integers, names, and sizes of arrays.

`cdiv(x.shape[0], rows) * 2`, `(4, 8)`. An expression is parsed as Python and evaluated here: only
`cdiv`, `max` and `min` can be called, and `shape` is the only attribute.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from pto.lang.values.scalars import cdiv

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": cdiv, "max": max, "min": min}
_LARGEST = 1 << 62
_LONGEST = 1000  # characters


def parsed(text: str) -> ast.expr:
    """The parsed expression; raises ValueError if it is not one."""
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text):,} characters, at most {_LONGEST:,} are read")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError("it is not an expression") from None


def computed(node: ast.expr, names: Mapping[str, object]) -> object:
    """The value of an expression: a number or a tuple of numbers; raises ValueError."""
    match node:
        case ast.Constant(int() as value):
            result = value
        case ast.Name(name) if name in names:
            result = names[name]
        case ast.Name(name):
            raise ValueError(f"there is no {name}; there are {', '.join(sorted(names))}")
        case ast.Tuple(elts):
            return tuple(computed(argument, names) for argument in elts)
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_number(left, names), _number(right, names))
        case ast.Call(ast.Name(name), given, []) if name in _FUNCTIONS and given:
            result = _FUNCTIONS[name](*(_number(argument, names) for argument in given))
        case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), index):
            array, at = computed(ast.Name(name), names), _number(index, names)
            shape: tuple[int, ...] = getattr(array, "shape", ())
            if not -len(shape) <= at < len(shape):
                raise ValueError(f"{name} has {len(shape)} dimensions, not one of number {at}")
            result = shape[at]
        case _:
            raise ValueError(
                f"`{ast.unparse(node)}` is more than + - * // % of numbers, names and sizes,"
                f" {', '.join(_FUNCTIONS)}"
            )
    if isinstance(result, int) and abs(result) > _LARGEST:
        raise ValueError("it is too large")
    return result


def _number(node: ast.expr, names: Mapping[str, object]) -> int:
    number = computed(node, names)
    if not isinstance(number, int):
        raise ValueError(f"{ast.unparse(node)} is not a whole number")
    return number
