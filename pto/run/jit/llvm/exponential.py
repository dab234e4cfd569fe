"""e**x of f32 in f32 arithmetic, with the bits of its f64 definition; for AVX-512.

x = n ln2 / 32 + r, and e**x = 2^(n // 32) t e**(r + c), where t is 2^(n % 32 / 32) rounded to f32
and c its error, both from a table in two registers. The result is a sum of two floats with an error
below 2^-36. If it rounds to the same float with this error subtracted and added, that is the
result. Else (one float in 3,000), and far from 0, the definition is evaluated.
`tests/run/jit/test_exponential.py` tries all floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Final

import numpy as np

from pto.core.primitives import absolute, const, fused
from pto.run.jit.ir.kinds import BOOL, F32, Kind
from pto.run.jit.llvm import native
from pto.run.jit.llvm.lanes import SHORTCUTS, Lanes, Shortcut, Symbol, where
from pto.run.jit.llvm.shuffles import joined
from pto.run.jit.llvm.text import Text

_LANES, _ENTRIES = 16, 32  # of a register, and of a table
_TO_ENTRY: Final = 1.5 * 2.0**23 / _ENTRIES  # adding it rounds to a 32nd and keeps its low bits
_LN2_HIGH: Final = float(np.float32(math.log(2)))
_LN2_LOW: Final = math.log(2) - _LN2_HIGH  # to 29 bits
_ERROR: Final = 2.0**-36
_EXACT: Final = [2.0 ** (n / _ENTRIES) for n in range(_ENTRIES)]
_ROUNDED: Final = [float(np.float32(v)) for v in _EXACT]
_LACKING: Final = [math.log1p((v - t) / t) - _ERROR for v, t in zip(_EXACT, _ROUNDED, strict=True)]
# (e**r - 1 - r) / r^2 at Chebyshev's nodes for |r| <= ln2 / 64, highest power first
_NEAR: Final = (0.04166678711771965, 0.1666674017906189, 0.5)
_NEAR_ZERO, _NOTHING = 87.0, -104.0  # |x| up to which results are normal; x below which they are 0


def _applies(dtype: Kind, count: int) -> bool:
    whole = count >= _LANES and not count & (count - 1)  # registers
    return dtype == F32 and whole and native.target().has_masks


def exponential(definition: Callable[[Symbol], Symbol], x: Symbol) -> Symbol:
    """e**x of whole registers."""
    count = x.lanes.count
    parts = [x.take(range(n, n + _LANES)) for n in range(0, count, _LANES)]
    found = [_quick(part) for part in parts]
    text = x.lanes.x
    all = reduce(lambda a, b: text.new(f"or i16 {a}, {b}"), (doubt.bits for _, doubt in found))
    some = text.compare("ne", all, 0, "i16")
    before = text.here
    look = text.fresh("doubt")
    done = text.fresh("exp")
    text.branch(some, look, done, ", !prof !1")
    text.label(look)
    settled = [_settled(definition, p, y, d) for p, (y, d) in zip(parts, found, strict=True)]
    ended = text.here
    text.jump(done)
    text.label(done)
    kind = parts[0].type
    names = [
        text.phi(kind, [(y.name, before), (s.name, ended)])
        for (y, _), s in zip(found, settled, strict=True)
    ]
    return Symbol(x.lanes, F32, joined(text, "float", _LANES, names))


SHORTCUTS["exp"] = Shortcut(_applies, exponential)


def _quick(x: Symbol) -> tuple[Symbol, Symbol]:
    """e**x, and the lanes in doubt."""
    turned = fused(x, const(x, math.log2(math.e)), const(x, _TO_ENTRY))
    n = turned - _TO_ENTRY
    r = fused(n, const(x, -_LN2_HIGH), x)  # exact
    low = fused(n, const(x, -_LN2_LOW), _looked_up(_LACKING, turned))
    all = r + low
    y = const(x, _NEAR[0])
    for term in _NEAR[1:]:
        y = fused(all, y, const(x, term))
    rest = fused(all * all, y, low)
    t = _looked_up(_ROUNDED, turned)
    high = fused(t, r, t)
    rest = fused(t, rest, fused(t, r, t - high))  # and what `high` lacks
    least, most = high + rest, high + fused(t, const(x, 2 * _ERROR), rest)
    return _times_two_to(least, n), (least != most) | (absolute(x) > _NEAR_ZERO)


def _looked_up(table: list[float], at: Symbol) -> Symbol:
    """By the five lowest bits."""
    lanes = at.lanes
    wide = at.view(np.int32)
    name = "@llvm.x86.avx512.vpermi2var.ps.512"
    low, high = (lanes.constant(F32, np.array(table[n : n + _LANES])).name for n in (0, _LANES))
    lanes.declare(f"declare {at.type} {name}({at.type}, {wide.type}, {at.type})")
    given = f"{at.type} {low}, {wide.type} {wide.name}, {at.type} {high}"
    return at.new_slow(f"call {at.type} {name}({given})", F32)


def _times_two_to(y: Symbol, n: Symbol) -> Symbol:
    """y 2^n, n rounded down."""
    name = "@llvm.x86.avx512.mask.scalef.ps.512"
    y.lanes.declare(f"declare {y.type} {name}({y.type}, {y.type}, {y.type}, i16, i32)")
    given = f"{y.type} {y.name}, {y.type} {n.name}, {y.type} {y.name}, i16 -1, i32 4"
    return y.new_slow(f"call {y.type} {name}({given})", F32)


def _settled(definition: Callable[[Symbol], Symbol], x: Symbol, y: Symbol, doubt: Symbol) -> Symbol:
    """Results in doubt: 0, or by the definition."""
    text, none = x.lanes.x, x < _NOTHING
    found = where(x.lanes, none, x.like(0), y)
    left = where(x.lanes, none, x.lanes.constant(BOOL, False), doubt)
    some = left.some
    before = text.here
    ask = text.fresh("ask")
    done = text.fresh("settled")
    text.branch(some, ask, done)
    text.label(ask)
    asked = x.new_slow(f"call {x.type} {_outlined(definition, x.lanes)}({x.type} {x.name})", F32)
    text.jump(done)
    text.label(done)
    return Symbol(x.lanes, F32, text.phi(x.type, [(found.name, before), (asked.name, ask)]))


def _outlined(definition: Callable[[Symbol], Symbol], lanes: Lanes) -> str:
    """The definition as a function of its own: seldom called, it costs little to compile."""
    name, text = "@definition_of_exp", Text(lanes.declare)
    own = Lanes(text, _LANES)
    found = definition(own.symbol(F32, "%x"))
    text.do(f"ret {found.type} {found.name}")
    head = (
        f"define internal {found.type} {name}({found.type} %x) noinline cold nounwind memory(none)"
    )
    lanes.declare(text.function(head))
    return name
