"""Inequalities that a user states, as `rows >= 8 * blocks`: parsed, never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pto.core.errors import PtoError, fail
from pto.prove.number import Number, number, product


def assumed(text: str, names: Mapping[str, Number]) -> list[Number]:
    """Numbers that are not negative where the text holds."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _wrong(text) from None
    if not isinstance(tree, ast.Compare):
        raise _wrong(text)
    sides = [_number(side, text, names) for side in (tree.left, *tree.comparators)]
    found: list[Number] = []
    for sign, a, b in zip(tree.ops, sides, sides[1:], strict=False):
        match sign:
            case ast.LtE():
                found.append(b - a)
            case ast.Lt():
                found.append(b - a - 1)
            case ast.GtE():
                found.append(a - b)
            case ast.Gt():
                found.append(a - b - 1)
            case ast.Eq():
                found += [a - b, b - a]
            case _:
                raise _wrong(text)
    return found


def _number(tree: ast.expr, text: str, names: Mapping[str, Number]) -> Number:
    match tree:
        case ast.Constant(int(value)):
            return number(value)
        case ast.Name(name) if name in names:
            return names[name]
        case ast.UnaryOp(ast.USub(), inner):
            return -_number(inner, text, names)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() as sign, right):
            a, b = _number(left, text, names), _number(right, text, names)
            if isinstance(sign, ast.Mult):
                return product(a, b)
            return a + b if isinstance(sign, ast.Add) else a - b
        case ast.Name(name):
            known = ", ".join(sorted(names)) or "none"
            raise fail("PTO-U340", f"--assume `{text}`: there is no number {name}; known: {known}")
        case _:
            raise _wrong(text)


def _wrong(text: str) -> PtoError:
    return fail(
        "PTO-U340",
        f"--assume `{text}` is no comparison of sums and products of numbers",
        help="as in: --assume 'rows >= 8 * blocks'",
    )
