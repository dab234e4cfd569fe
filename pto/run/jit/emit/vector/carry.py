"""Sums with a carry and products in two words, in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.isa.meaning.vector import arithmetic
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border.values import Mask, Native, Reg
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import Val, vector

_COUNT, _SIZE = 64, 4
_WORDS, _WIDE, _BITS = vector(_COUNT, "i32"), vector(_COUNT, "i64"), vector(_COUNT, "i1")


def _operands(s: Spot) -> tuple[str, str, str]:
    mask = masks.at_width(s.x, s.need(Mask, "mask"), _SIZE)
    return s.need(Reg, "lhs").name, s.need(Reg, "rhs").name, mask


def _masked(s: Spot, value: Val, carry: str, mask: str) -> Sequence[Native]:
    found = s.x.new(f"select {_BITS} {mask}, {_WORDS} {value}, {_WORDS} zeroinitializer")
    bits = s.x.new(f"and {_BITS} {carry}, {mask}")
    return [Reg((found,), dtype_of(s.case, "result")), Mask((bits,), _SIZE)]


@emits(arithmetic.VADDC)
def _vaddc(s: Spot) -> Sequence[Native]:
    a, b, mask = _operands(s)
    total = s.x.new(f"add {_WORDS} {a}, {b}")
    return _masked(s, total, s.x.new(f"icmp ult {_WORDS} {total}, {a}"), mask)


@emits(arithmetic.VSUBC)
def _vsubc(s: Spot) -> Sequence[Native]:
    a, b, mask = _operands(s)
    return _masked(
        s, s.x.new(f"sub {_WORDS} {a}, {b}"), s.x.new(f"icmp uge {_WORDS} {a}, {b}"), mask
    )


def _with_carry(negate: bool) -> Callable[[Spot], Sequence[Native]]:
    def emit(s: Spot) -> Sequence[Native]:
        (a, b, mask), x = _operands(s), s.x
        carry = masks.at_width(x, s.need(Mask, "carry_in"), _SIZE)
        b = x.new(f"xor {_WORDS} {b}, splat (i32 -1)") if negate else b
        first = x.new(f"add {_WORDS} {a}, {b}")
        over = x.new(f"icmp ult {_WORDS} {first}, {a}")
        total = x.new(f"add {_WORDS} {first}, {x.new(f'zext {_BITS} {carry} to {_WORDS}')}")
        again = x.new(f"icmp ult {_WORDS} {total}, {first}")
        return _masked(s, total, x.new(f"or {_BITS} {over}, {again}"), mask)

    return emit


emits(arithmetic.VADDCS)(_with_carry(negate=False))
emits(arithmetic.VSUBCS)(_with_carry(negate=True))


@emits(arithmetic.VMULL)
def _vmull(s: Spot) -> Sequence[Native]:
    (a, b, mask), x, kind = _operands(s), s.x, dtype_of(s.case, "low")
    op = "sext" if kind.is_signed else "zext"
    product = x.new(
        f"mul {_WIDE} {x.new(f'{op} {_WORDS} {a} to {_WIDE}')}, "
        f"{x.new(f'{op} {_WORDS} {b} to {_WIDE}')}"
    )
    product = x.new(f"select {_BITS} {mask}, {_WIDE} {product}, {_WIDE} zeroinitializer")
    high = x.new(f"lshr {_WIDE} {product}, splat (i64 32)")
    return [Reg((x.new(f"trunc {_WIDE} {half} to {_WORDS}"),), kind) for half in (product, high)]
