"""Lanes generated, moved, reduced and converted: broadcasts, ramps, masks, permutations, sums."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.convert import round_mode
from pto.core.dtypes import I64, encode
from pto.core.errors import fail
from pto.core.floats import Round
from pto.core.primitives import const, select
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import ConstantResult, Lane, Vectors
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector import arithmetic
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.meaning.vmi.lanewise import Function, require_zeroing, seen_as
from pto.isa.meaning.vmi.words import NONE, VectorWords
from pto.isa.row import types as t
from pto.isa.row.attributes import Ints, Raw
from pto.isa.rules.rule import Case


def lane_count(case: Case, name: str = "result") -> int:
    type = case.type(name)
    return type.lanes if isinstance(type, t.LogicalVReg | t.LogicalMask) else 1


def groups_of(case: Case) -> int:
    """The number of groups of lanes; 1 if the operation has no such attribute."""
    word = case.word("group") or case.word("num_groups")
    return int(word) if word else 1


# ---- broadcasts and ramps


def _broadcast(case: Case) -> Function:
    """A scalar or one lane for all lanes, or each slot for the lanes of its group."""
    count, kind = lane_count(case), dtype_of(case, "result")
    if isinstance(case.op.operands[0].type, t.Scalar):
        return lambda x, value: x.spread(value, kind, count)
    slots = lane_count(case, "value")
    if count % slots:
        raise fail("PTO-S083", f"{slots} slots do not divide {count} lanes")
    return lambda x, value: x.take([value], np.arange(count) // (count // slots))


def _ramp(case: Case) -> Function:
    count, kind = lane_count(case), dtype_of(case, "result")
    size = count // groups_of(case)
    steps = np.arange(count) % size * (-1 if case.word("order") == "DESC" else 1)

    def ramp(x: VectorWords, base: Any) -> Lanes:
        first = x.spread(base, kind, count)
        if kind.is_float:  # rounded once
            return (first.astype(np.float64) + steps.astype(np.float64)).astype(kind.numpy)
        return lanes.raw(first) + steps.astype(kind.storage)

    return ramp


BROADCAST = Vectors(_broadcast)
RAMP = Vectors(_ramp)

# ---- masks


def _first(case: Case) -> Function:
    """The first lanes of the whole vector, or of each group."""
    count = lane_count(case)
    number = np.arange(count) % int(case.word("group_size") or count)
    return lambda x, active: x.spread(active, I64, count) > number


def _pattern(case: Case) -> Lanes:
    """PAT_ALL, PAT_ALLF and PAT_VLn, in every group."""
    count, word = lane_count(case), case.word("pattern") or ""
    size = count // groups_of(case)
    named = {"PAT_ALL": count, "PAT_ALLF": 0}
    match = re.fullmatch(r"PAT_VL(\d+)", word)
    if word not in named and match is None:
        raise fail("PTO-T036", f"`{word}` is not a pattern of '{case.row.name}' op")
    active = int(match[1]) if match else named[word]
    return np.arange(count) % size < active


def _remaining(case: Case) -> Function:
    count, type = lane_count(case, "mask"), case.op.results[1].type
    assert isinstance(type, t.Scalar)  # a rule of its row guarantees this

    def remaining(x: VectorWords, left: Any) -> tuple[Lanes, Any]:
        number = x.number(left)
        rest = x.choose(number > count, lambda: number - count, 0)
        return x.spread(left, I64, count) > np.arange(count), x.scalar(rest, type)

    return remaining


CREATE_MASK = Vectors(_first)
MASK_PATTERN = ConstantResult(_pattern)
MASK_REMAINING = Vectors(_remaining)
SAME = Lane(arithmetic.same, chooses=True, moves=True)


def _constant(case: Case) -> Lanes:
    """`dense<1.0>`, `dense<[1, 2]>`, a bare number: one value for all lanes, or one per lane."""
    value, type = case.op.attrs.get("value"), case.op.results[0].type
    text = value.text if isinstance(value, Raw) else str(getattr(value, "value", ""))
    body = re.match(r"\s*dense<(.*?)>", text, re.DOTALL)
    words = re.findall(r"true|false|[-+.\w]+", body[1] if body else text.split(":")[0])
    if not words or not isinstance(type, t.LogicalVReg | t.LogicalMask):
        raise fail("PTO-P015", f"'{case.row.name}' op: `{text}` is not a constant")
    numbers = [_number(word) for word in words]
    if isinstance(type, t.LogicalMask):
        return np.resize(np.array([bool(n) for n in numbers]), type.lanes)
    kind = dtype_of(case, "result")
    return np.resize(encode(kind, np.array(numbers)).view(kind.numpy), type.lanes)


def _number(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word, 0)
    except ValueError:
        return float(word)


CONSTANT = ConstantResult(_constant)

# ---- permutations


def zeroed(value: Lanes, mask: Lanes) -> Lanes:
    return select(mask, value, const(value, 0))


def interleaved(count: int) -> Any:
    """The lane numbers that interleave two vectors."""
    return np.arange(2 * count).reshape(2, count).T.reshape(-1)


def _pairs(order: Callable[[int], Any]) -> Vectors:
    """Lanes of both sources in an order; returns the first half and the second."""

    def make(case: Case) -> Function:
        count = lane_count(case, "low")
        halves = order(count).reshape(2, count)

        def run(x: VectorWords, lhs: Lanes, rhs: Lanes, mask: Lanes) -> tuple[Lanes, ...]:
            return tuple(zeroed(x.take([lhs, rhs], half), mask) for half in halves)

        return run

    return Vectors(make)


def _by_index(case: Case) -> Function:
    """Select by index; an index out of range wraps, as in the registers of vselr."""
    count = lane_count(case, "source")
    return lambda x, source, index: x.by_index(source, lanes.raw(index).astype(np.int64) % count)


def _shuffle(case: Case) -> Function:
    indices = case.op.attrs.get("indices")
    chosen = np.array(indices.values if isinstance(indices, Ints) else (), np.int64)
    if chosen.size != lane_count(case) or (chosen < 0).any():
        raise fail("PTO-S083", f"{chosen.size} indices for {lane_count(case)} lanes")
    return lambda x, source: x.take([source], chosen)


def _split(case: Case) -> Function:
    count, total = len(case.op.results), lane_count(case, "source")
    if count == 1:
        return lambda x, source: source
    orders = [np.arange(n, total, count) for n in range(count)]
    return lambda x, source: tuple(x.take([source], order) for order in orders)


def _merge(case: Case) -> Function:
    total = lane_count(case)

    def merge(x: VectorWords, inputs: list[Lanes]) -> Lanes:
        return x.take(inputs, np.arange(total).reshape(len(inputs), -1).T.reshape(-1))

    return merge


def before(x: VectorWords, mask: Lanes, count: int) -> Lanes:
    """The number of active lanes before each one."""
    return _running(x, mask.astype(np.int64), count) - mask.astype(np.int64)


def _running(x: VectorWords, value: Lanes, count: int) -> Lanes:
    """Inclusive prefix sums."""
    step = 1
    while step < count:
        moved = np.where(np.arange(count) < step, NONE, np.arange(count) - step)
        value, step = value + x.take([value], moved), 2 * step
    return value


def _prefix(case: Case) -> Function:
    kind, count = dtype_of(case, "result").numpy, lane_count(case)
    return lambda x, mask: before(x, mask, count).astype(kind)


INTERLEAVE = _pairs(interleaved)
DEINTERLEAVE = _pairs(lambda count: np.arange(2 * count).reshape(count, 2).T.reshape(-1))
BY_INDEX = Vectors(_by_index)
SHUFFLE = Vectors(_shuffle)
SPLIT = Vectors(_split)
MERGE = Vectors(_merge)
COMPRESS = Vectors(lambda case: lambda x, source, mask: x.compress(source, mask))
PREFIX = Vectors(_prefix)

# ---- reductions: sums by neighbours, floats in f32 and rounded once, as on registers


def by_neighbours(x: VectorWords, fn: Function, value: Lanes, groups: int, size: int) -> Lanes:
    """A reduction tree per group: lanes 0 and 1, 2 and 3, .., and those again.

    An odd last one is kept.
    """
    while size > 1:
        begin, half = np.arange(groups)[:, None] * size, size // 2
        even = (begin + 2 * np.arange(half)).reshape(-1)
        joined = fn(x.take([value], even), x.take([value], even + 1))
        if size % 2:
            indices = np.arange(groups * half).reshape(groups, half)
            last = groups * half + begin + size - 1
            joined = x.take([joined, value], np.concatenate([indices, last], axis=1).reshape(-1))
        value, size = joined, half + size % 2
    return value


def _sum(case: Case) -> Function:
    require_zeroing(case)
    kind, groups = dtype_of(case, "source"), groups_of(case)
    wide, size = np.dtype(np.float32) if kind.is_float else kind.numpy, lane_count(case, "source")

    def run(x: VectorWords, source: Lanes, mask: Lanes) -> Lanes:
        active = zeroed(source, mask).astype(wide)
        return by_neighbours(x, lanes.add, active, groups, size // groups).astype(kind.numpy)

    return run


def _extreme(fn: Function) -> Vectors:
    """The extreme of each group; inactive lanes have the opposite end of the range."""

    def make(case: Case) -> Function:
        require_zeroing(case)
        groups = groups_of(case)
        size = lane_count(case, "source")
        kind = seen_as(case, "source")
        neutral = lanes.neutral(fn, kind.numpy)

        def run(x: VectorWords, source: Lanes, mask: Lanes) -> Lanes:
            viewed = source.view(kind.numpy)
            return by_neighbours(
                x, fn, select(mask, viewed, const(viewed, neutral)), groups, size // groups
            )

        return run

    return Vectors(make)


SUM = Vectors(_sum)
LARGEST = _extreme(lanes.maximum)
SMALLEST = _extreme(lanes.minimum)


def _histogram(cumulative: bool) -> Vectors:
    """A histogram. Bins wrap in 16 bits; byte values beyond the last bin are not counted.

    Registers hold half of the bins: those below 128, or from 128 on.
    """

    def make(case: Case) -> Function:
        bins = 256 if isinstance(case.type("acc"), t.VReg) else lane_count(case, "acc")

        def run(
            x: VectorWords, acc: Lanes, src: Lanes, mask: Lanes, half_number: Any = None
        ) -> Lanes:
            counts = x.counts(lanes.raw(src), mask, bins)
            counts = _running(x, counts, bins) if cumulative else counts
            if half_number is not None:
                half = x.number(half_number)
                x.require(
                    (half >= 0) & (half < 2),
                    lambda: fail(
                        "PTO-S140", f"'{case.row.name}' op takes bin 0 or 1, got {half_number}"
                    ),
                )
                counts = x.window([counts], half * 128, 128)
            return lanes.raw(acc) + counts

        return run

    return Vectors(make)


CUMULATIVE_HISTOGRAM = _histogram(cumulative=True)
HISTOGRAM = _histogram(cumulative=False)

# ---- conversions


def _convert(signed: bool | None) -> Lane:
    """Convert.

    `signed` gives signless integers a sign; None: unsigned if both sides are integers.
    """

    def sees(case: Case, name: str) -> Any:
        kinds = [dtype_of(case, n) for n in ("source", "result")]
        floats = any(kind.is_float for kind in kinds)
        return seen_as(case, name, signed=floats if signed is None else signed)

    def make(case: Case) -> Function:
        require_zeroing(case)
        word = case.word("rounding")
        mode = round_mode({"H": "A"}.get(word, word)) if word else Round.RINT
        src, dst = (sees(case, name) for name in ("source", "result"))
        return converter(src, dst, mode, case.word("saturate") == "SAT")

    return Lane(make=make, sees=sees, moves=True)


CONVERT = _convert(None)
CONVERT_SIGNED = _convert(signed=True)
CONVERT_UNSIGNED = _convert(signed=False)
REINTERPRET = Vectors(
    lambda case: lambda x, source: x.reinterpret(source, dtype_of(case, "result").storage)
)
