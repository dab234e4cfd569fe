"""Facts about the arguments of a kernel: numbers, and inequalities that a user states, such as
`rows >= 8 * blocks`: parsed, never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pto.core.errors import PtoError, fail
from pto.ir.graph import Operation
from pto.isa.row import types as t
from pto.plan.calls import SUBBLOCK
from pto.prove.closed import BLOCK, BLOCKS
from pto.prove.number import Number, Symbol, number, of, product
from pto.prove.values import COMPARED, Guards, Values, is_integer

GRID = ("grid_x", "grid_y")  # the extents of the grid, in kernels written in Python


@dataclass(frozen=True, slots=True)
class KnownCall:
    """The call that a proof is for, by names of parameters: integers, arrays that are one
    array (the later by the first), and pairs of other arrays that share bytes."""

    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    same: Mapping[str, str] = field(default_factory=dict[str, str])
    shared: Sequence[tuple[str, str]] = ()


NO_CALL = KnownCall()


@dataclass(frozen=True, slots=True)
class Stated:
    """User-stated facts about a call: integer arguments by number, inequalities of their names."""

    numbers: Mapping[int, int] = field(default_factory=dict[int, int])
    assume: Sequence[str] = ()
    arrays: Mapping[int, str] = field(default_factory=dict[int, str])  # their sizes in bytes
    same: Mapping[int, int] = field(
        default_factory=dict[int, int]
    )  # an array: an earlier, equal one
    shared: Sequence[tuple[int, int]] = ()  # arrays that share some bytes
    likely: Mapping[str, int] = field(default_factory=dict[str, int])  # numbers of a legal call

    def of(self, function: Operation, values: Values) -> tuple[dict[int, Symbol], Guards]:
        """Bind the integer arguments of a function: returns the symbols of unknown ones, by number,
        and the numbers that are not negative."""
        symbols, args = dict[int, Symbol](), function.regions[0].block.args
        for n, arg in enumerate(args):
            value = self.numbers.get(n)
            if not isinstance(arg.type, t.Scalar):
                continue
            if value is not None:
                values.numbers[id(arg)] = number(value)
            elif arg.name in (BLOCK, BLOCKS, SUBBLOCK):
                launch = values.launch
                by_name = {BLOCK: of(launch.block), BLOCKS: launch.blocks, SUBBLOCK: launch.sub}
                values.numbers[id(arg)] = by_name[arg.name]
            elif is_integer(arg):
                low = number(1) if arg.name in GRID else None
                symbols[n] = values.launch.symbol(arg.name, "argument", low)
                values.numbers[id(arg)] = of(symbols[n])
        names = {arg.name: values.numbers[id(arg)] for arg in args if id(arg) in values.numbers}
        names["blocks"] = values.launch.blocks
        values.launch.arrays = {args[n]: size for n, size in self.sizes(names).items()}
        return symbols, tuple(n for text in self.assume for n in assumed(text, names))

    def sizes(self, names: Mapping[str, Number]) -> dict[int, Number]:
        """The sizes of arrays in bytes, by number."""
        return {n: assumed(f"{text} >= 0", names)[0] for n, text in self.arrays.items()}

    def allows(self, args: Mapping[int, int], names: Mapping[str, int]) -> bool:
        """True if a call with these arguments, by number and by name, satisfies all facts."""
        numbers = {name: number(value) for name, value in names.items()}
        holds = (n.rest >= 0 for text in self.assume for n in assumed(text, numbers))
        return all(args.get(n, v) == v for n, v in self.numbers.items()) and all(holds)


ANY = Stated()


def assumed(text: str, names: Mapping[str, Number]) -> list[Number]:
    """Numbers that are not negative if the text holds."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _wrong(text) from None
    if not isinstance(tree, ast.Compare):
        raise _wrong(text)
    sides = [_number(side, text, names) for side in (tree.left, *tree.comparators)]
    numbers: list[Number] = []
    for sign, a, b in zip(tree.ops, sides, sides[1:], strict=False):
        name = _SIGNS.get(type(sign))
        if name is None:
            raise _wrong(text)
        numbers += COMPARED[name](a, b)
    return numbers


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
}


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
            names_known = ", ".join(sorted(names)) or "none"
            raise fail(
                "PTO-U340", f"--assume `{text}`: there is no number {name}; known: {names_known}"
            )
        case _:
            raise _wrong(text)


def _wrong(text: str) -> PtoError:
    return fail(
        "PTO-U340",
        f"--assume `{text}` is not a comparison of sums and products of numbers",
        help="as in: --assume 'rows >= 8 * blocks'",
    )
