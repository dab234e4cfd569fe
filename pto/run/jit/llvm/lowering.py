"""Expressions as LLVM, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pto.run.jit.ir import expr as ir
from pto.run.jit.ir.expr import Expr
from pto.run.jit.ir.kinds import BF16, BOOL, F16, F32, SMALL, Kind
from pto.run.jit.llvm import lanes as symbols
from pto.run.jit.llvm.lanes import PRIMITIVES, SHORTCUTS, Lanes, Symbol
from pto.run.jit.llvm.text import scalar_type

Known = dict[Expr, Any]  # the symbols of nodes; of a loop, several


def lower(root: Expr, lanes: Lanes, sources: Sequence[Symbol]) -> Symbol:
    """Write an expression; its reads are these symbols."""
    return _computed([root], lanes, sources, {})[0]


def _computed(
    roots: Sequence[Expr], lanes: Lanes, sources: Sequence[Symbol], known: Mapping[Expr, Any]
) -> list[Symbol]:
    own: Known = dict(known)

    def parts(expr: Expr) -> tuple[Expr, ...]:
        return expr.args if _is_short(expr, lanes.count) else ir.parts_of(expr)

    for expr in ir.nodes_of(*roots, parts=parts):
        if expr not in own:
            own[expr] = _written(expr, lanes, sources, own)
    return [own[root] for root in roots]


def _is_short(expr: Expr, count: int) -> bool:
    """True for a definition that this processor has a shorter way to."""
    short = SHORTCUTS.get(expr.op)
    return short is not None and short.applies(expr.dtype, count)


def _written(expr: Expr, lanes: Lanes, sources: Sequence[Symbol], known: Known) -> Any:
    if expr.op == ir.READ:
        return sources[cast(int, expr.data)]
    if expr.op == ir.CONSTANT:
        return lanes.constant(expr.dtype, expr.value)
    if _is_short(expr, lanes.count):
        return SHORTCUTS[expr.op].write(expr.data, *(known[arg] for arg in expr.args))
    if expr.inner is not None:
        return known[expr.inner]
    args = [known[arg] for arg in expr.args]
    if expr.op == ir.CAST:
        return symbols.cast(args[0], expr.dtype)
    if expr.op == ir.VIEW:
        return args[0].view(expr.dtype)
    if expr.op == ir.PICK:
        return args[0][expr.data]
    if expr.op == ir.REPEATED:
        return PRIMITIVES[ir.REPEATED](lanes, _step(expr, lanes, sources, known), *args)
    how = expr.data if isinstance(expr.data, tuple) else ()
    return PRIMITIVES[expr.op](lanes, *args, *how)


def _step(
    loop: Expr, lanes: Lanes, sources: Sequence[Symbol], known: Known
) -> Callable[..., Sequence[Symbol]]:
    """The body of a loop as a function of its state."""

    def step(*state: Symbol) -> Sequence[Symbol]:
        bound = zip(ir.state_of(loop), state, strict=True)
        return _computed(ir.body_of(loop), lanes, sources, {**known, **dict(bound)})

    return step


# ---- costs


class Cost(NamedTuple):
    """What expressions cost: lines of LLVM, whether one of them takes many cycles, and the bytes of
    the widest float that they compute with."""

    lines: int = 0
    is_slow: bool = False
    widest: int = 0


# Lines of a primitive on operands of (f32 or f64, f16, bf16, integers), for processors that convert
# f16 by instructions. `tests/run/jit/test_expr.py` compares them with what is written.
_LINES: Final[dict[str, tuple[int, int, int, int]]] = {
    **dict.fromkeys(("add", "sub", "mul", "truediv"), (1, 6, 16, 1)),
    **dict.fromkeys(("and", "or", "xor", "invert", "select"), (1, 1, 1, 1)),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "isnan"), (1, 5, 7, 1)),
    **dict.fromkeys(("isinf", "isfinite"), (4, 8, 8, 4)),
    **dict.fromkeys(("greater_of", "less_of"), (4, 9, 19, 2)),
    **dict.fromkeys(("maximum", "minimum"), (12, 12, 10, 2)),
    **dict.fromkeys(("sqrt", "rint", "floor", "ceil", "trunc"), (1, 4, 13, 1)),
    **dict.fromkeys(("sine", "cosine"), (48, 48, 48, 48)),
    "neg": (3, 3, 1, 1),
    "absolute": (3, 3, 1, 3),
    "signbit": (2, 2, 1, 1),
    "copysign": (6, 6, 3, 3),
    "lshift": (4, 4, 4, 4),
    "rshift": (4, 4, 4, 3),
    "quotient": (0, 0, 0, 8),
    "floordiv": (0, 0, 0, 16),
    "fmod": (35, 71, 81, 12),
    **dict.fromkeys(("mod", "remainder"), (54, 90, 100, 21)),
    "fused": (1, 1, 1, 1),
    "every": (4, 4, 4, 4),
    "to_integer": (1, 1, 1, 1),
    "saturated": (1, 1, 1, 1),
    "lookup": (4, 4, 4, 4),
    ir.REPEATED: (4, 4, 4, 4),
}
_DIVISIONS: Final = frozenset(("quotient", "floordiv", "fmod", "mod", "remainder"))
_SLOW: Final = _DIVISIONS | {
    *("truediv", "sqrt", "rint", "floor", "ceil", "trunc", "sine", "cosine", "fused", "every"),
    *("saturated", "lookup", ir.REPEATED),
}
# Primitives that compute with the bits of small floats; the others widen them.
_OF_BITS: Final = frozenset(
    ("select", "neg", "absolute", "signbit", "copysign", "maximum", "minimum")
)
_FREE: Final = frozenset((ir.READ, ir.CONSTANT, ir.STATE, ir.PICK))
_SHORT: Final = Cost(50, True, 4)  # a definition that has a shorter way
_WIDENED: Final = {F16: 2, BF16: 3}  # lines that bring a small float to f32,
_NARROWED: Final = {F16: 1, BF16: 9}  # and back
_TO_ODD: Final = 28  # lines that round f64 to f32 so that one more rounding is exact


def cost(roots: Sequence[Expr], count: int) -> Cost:
    """The cost of expressions of vectors with so many lanes; what they share counts once."""

    def parts(expr: Expr) -> tuple[Expr, ...]:
        inside = ir.body_of(expr) if expr.op == ir.REPEATED else ()
        return expr.args if _is_short(expr, count) else (*ir.parts_of(expr), *inside)

    lines = widest = 0
    is_slow = False
    for expr in ir.nodes_of(*roots, parts=parts):
        own = _SHORT if _is_short(expr, count) else _cost_of(expr)
        lines += own.lines
        is_slow |= own.is_slow
        widest = max(widest, own.widest)
    return Cost(lines, is_slow, widest)


def _cost_of(expr: Expr) -> Cost:
    """The cost of one node without its parts."""
    if expr.op in _FREE or expr.inner is not None:
        return Cost()
    if expr.op == ir.CAST:
        return _cost_of_cast(expr.args[0].dtype, expr.dtype)
    if expr.op == ir.VIEW:
        free = scalar_type(expr.args[0].dtype) == scalar_type(expr.dtype)
        return Cost(0 if free else 1, False, _width(expr.dtype))
    kind = expr.args[-1].dtype  # of `select` the first one is its condition
    small = kind in SMALL and expr.op not in _OF_BITS
    is_slow = expr.op in _SLOW or (small and kind == F16)
    lines = 1 if _is_known_shift(expr) else _LINES[expr.op][_column(kind)]
    widest = 4 if small else _width(expr.dtype)
    if expr.op in _DIVISIONS:
        widest = 8
    return Cost(lines, is_slow, widest)


def _column(kind: Kind) -> int:
    """The column of `_LINES` for a type."""
    return 1 if kind == F16 else 2 if kind == BF16 else 0 if kind.kind == "f" else 3


def _width(kind: Kind) -> int:
    """Bytes of a float; integers count as none."""
    return kind.itemsize if kind.kind == "f" else 0


def _is_known_shift(expr: Expr) -> bool:
    if expr.op not in ("lshift", "rshift") or expr.args[1].op != ir.CONSTANT:
        return False
    return 0 <= int(expr.args[1].value) < 8 * expr.dtype.itemsize


def _cost_of_cast(have: Kind, want: Kind) -> Cost:
    if have in SMALL and want != BOOL:
        inner = Cost() if want == F32 else _cost_of_cast(F32, want)
        is_slow = have == F16 or inner.is_slow
        return Cost(_WIDENED[have] + inner.lines, is_slow, max(4, inner.widest))
    if want == BOOL:
        return Cost(_LINES["ne"][_column(have)], have == F16, _width(have))
    if have == BOOL:
        return Cost(1, False, _width(want))
    if want in SMALL:
        exact = have == F32 or (have.kind in "iu" and have.itemsize < 4)
        ahead = int(have.kind in "iu") + (0 if exact else _TO_ODD)
        return Cost(ahead + _NARROWED[want], False, 4 if exact else 8)
    if have.kind == "f" and want.kind in "iu":
        return Cost(2 if want.itemsize < 4 else 1)
    same = have.kind in "iu" and want.kind in "iu" and have.itemsize == want.itemsize
    return Cost(0 if same else 1, False, _width(want))
