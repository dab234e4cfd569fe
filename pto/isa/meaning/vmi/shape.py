"""Lanes made, moved, folded and converted: broadcasts, ramps, masks, permutations, reductions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.convert import convert, round_mode
from pto.core.dtypes import I64, U64, DType, dtype, encode
from pto.core.errors import fail
from pto.core.rounding import Round
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.meaning.vmi.lanewise import Function, require_zeroing, seen_as
from pto.isa.row import types as t
from pto.isa.row.attributes import Ints, Raw
from pto.isa.rules.rule import Case


def lane_count(case: Case, name: str = "result") -> int:
    type = case.type(name)
    return type.lanes if isinstance(type, t.LogicalVReg | t.LogicalMask) else 1


def groups_of(case: Case) -> int:
    """How many groups an operation divides its lanes into; 1 where it does not say."""
    word = case.word("group") or case.word("num_groups")
    return int(word) if word else 1


# ---- broadcasts and ramps


def _broadcast(case: Case) -> Function:
    """A scalar or one lane everywhere, or each slot over the lanes of its group."""
    count, kind = lane_count(case), dtype_of(case, "result")
    if isinstance(case.op.operands[0].type, t.Scalar):
        lane = lane_maker(kind)
        return lambda core, value: np.full(count, lane(value), kind.numpy)

    def spread(core: Machine, slots: Items) -> Items:
        if count % slots.size:
            raise fail("PTO-S083", f"{slots.size} slots do not divide {count} lanes")
        return np.repeat(slots, count // slots.size)

    return spread


def _ramp(case: Case) -> Function:
    count, kind = lane_count(case), dtype_of(case, "result")
    size = count // groups_of(case)
    steps = np.arange(count) % size * (-1 if case.word("order") == "DESC" else 1)

    def run(core: Machine, base: Any) -> Items:
        if kind.is_float:
            return encode(kind, float(base) + steps.astype(np.float64)).view(kind.numpy)
        return (int(base) + steps.astype(np.int64)).astype(kind.storage).view(kind.numpy)

    return run


BROADCAST = Do(_broadcast)
RAMP = Do(_ramp)

# ---- masks


def _first(case: Case) -> Function:
    """The first lanes of the whole, or of each group."""
    count = lane_count(case)
    size = int(case.word("group_size") or count)
    lane = np.arange(count) % size
    return lambda core, active: lane < active


def _pattern(case: Case) -> Function:
    """PAT_ALL, PAT_ALLF and PAT_VLn, in every group."""
    count, word = lane_count(case), case.word("pattern") or ""
    size = count // groups_of(case)
    named = {"PAT_ALL": count, "PAT_ALLF": 0}
    found = re.fullmatch(r"PAT_VL(\d+)", word)
    if word not in named and found is None:
        raise fail("PTO-T036", f"`{word}` is no pattern of '{case.row.name}' op")
    active = int(found[1]) if found else named[word]
    made = np.arange(count) % size < active
    return lambda core: made


def _remaining(case: Case) -> Function:
    count = lane_count(case, "mask")
    lane = np.arange(count)
    return lambda core, left: (lane < left, max(int(left) - count, 0))


CREATE_MASK = Do(_first)
MASK_PATTERN = Do(_pattern)
MASK_REMAINING = Do(_remaining)
SAME = do(lambda core, source: source)


def _constant(case: Case) -> Function:
    """`dense<1.0>`, `dense<[1, 2]>`, a bare number: one value for all lanes, or one each."""
    value, type = case.op.attrs.get("value"), case.op.results[0].type
    text = value.text if isinstance(value, Raw) else str(getattr(value, "value", ""))
    body = re.match(r"\s*dense<(.*?)>", text, re.DOTALL)
    words = re.findall(r"true|false|[-+.\w]+", body[1] if body else text.split(":")[0])
    if not words or not isinstance(type, t.LogicalVReg | t.LogicalMask):
        raise fail("PTO-P015", f"'{case.row.name}' op: `{text}` is no constant")
    numbers = [_number(word) for word in words]
    if isinstance(type, t.LogicalMask):
        made = np.resize(np.array([bool(n) for n in numbers]), type.lanes)
    else:
        kind = dtype_of(case, "result")
        made = np.resize(encode(kind, np.array(numbers)).view(kind.numpy), type.lanes)
    return lambda core: made


def _number(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word, 0)
    except ValueError:
        return float(word)


CONSTANT = Do(_constant)

# ---- permutations


def _interleave(core: Machine, lhs: Items, rhs: Items, mask: Items) -> tuple[Items, Items]:
    mixed = np.stack([lhs, rhs], axis=1).reshape(-1)
    low, high = mixed[: lhs.size], mixed[lhs.size :]
    return _zeroed(low, mask), _zeroed(high, mask)


def _deinterleave(core: Machine, lhs: Items, rhs: Items, mask: Items) -> tuple[Items, Items]:
    """The inverse of interleaving: lhs and rhs as one sequence, its even and its odd lanes."""
    mixed = np.concatenate([lhs, rhs])
    return _zeroed(mixed[::2], mask), _zeroed(mixed[1::2], mask)


def _zeroed(value: Items, mask: Items) -> Items:
    return np.where(mask, value, np.zeros((), value.dtype))


def _by_index(core: Machine, source: Items, index: Items) -> Items:
    """An index beyond the lanes wraps, as the registers of vselr do."""
    return source[index.view(f"u{index.itemsize}").astype(np.int64) % source.size]


def _shuffle(case: Case) -> Function:
    indices = case.op.attrs.get("indices")
    chosen = np.array(indices.values if isinstance(indices, Ints) else (), np.int64)
    if chosen.size != lane_count(case) or (chosen < 0).any():
        raise fail("PTO-S083", f"{chosen.size} indices for {lane_count(case)} lanes")
    return lambda core, source: source[chosen]


def _split(case: Case) -> Function:
    count = len(case.op.results)
    if count == 1:
        return lambda core, source: source
    return lambda core, source: tuple(source[n::count].copy() for n in range(count))


def _compress(core: Machine, source: Items, mask: Items) -> Items:
    out = np.zeros_like(source)
    kept = source[mask]
    out[: kept.size] = kept
    return out


def _prefix(case: Case) -> Function:
    kind = dtype_of(case, "result").numpy
    return lambda core, mask: (np.cumsum(mask) - mask).astype(kind)


INTERLEAVE = do(_interleave)
DEINTERLEAVE = do(_deinterleave)
BY_INDEX = do(_by_index)
SHUFFLE = Do(_shuffle)
SPLIT = Do(_split)
MERGE = do(lambda core, inputs: np.stack(inputs, axis=1).reshape(-1))
COMPRESS = do(_compress)
PREFIX = Do(_prefix)

# ---- reductions: sums by neighbours, floats in f32 and rounded once, as on registers


def _by_neighbours(fn: Callable[[Any, Any], Any], rows: Items) -> Items:
    while rows.shape[1] > 1:
        even, odd = rows[:, ::2], rows[:, 1::2]
        joined = fn(even[:, : odd.shape[1]], odd)
        rows = np.concatenate([joined, even[:, odd.shape[1] :]], axis=1)
    return rows[:, 0]


def _sum(case: Case) -> Function:
    require_zeroing(case)
    kind, groups = dtype_of(case, "source"), groups_of(case)
    wide = np.dtype(np.float32) if kind.is_float else kind.numpy

    def run(core: Machine, source: Items, mask: Items) -> Items:
        rows = np.where(mask, source, np.zeros((), kind.numpy)).astype(wide).reshape(groups, -1)
        return _by_neighbours(np.add, rows).astype(kind.numpy)

    return run


def _extreme(fn: Callable[[Any, Any], Any], largest: bool) -> Do:
    """Lanes that are off are the other end of the range."""

    def make(case: Case) -> Function:
        require_zeroing(case)
        kind, groups = dtype_of(case, "source"), groups_of(case)
        view = seen_as(case, "source")
        if kind.is_float:
            neutral = np.asarray(-np.inf if largest else np.inf, kind.numpy)
        else:
            ends = np.iinfo(view)
            neutral = np.asarray(ends.min if largest else ends.max, view)

        def run(core: Machine, source: Items, mask: Items) -> Items:
            rows = np.where(mask, source.view(view), neutral).reshape(groups, -1)
            return _by_neighbours(fn, rows).view(kind.numpy)

        return run

    return Do(make)


SUM = Do(_sum)
LARGEST = _extreme(lanes.maximum, largest=True)
SMALLEST = _extreme(lanes.minimum, largest=False)

# ---- conversions


def _convert(signed: bool | None) -> Do:
    """`signed` tells signless integers; None: unsigned where both sides are integers."""

    def make(case: Case) -> Function:
        require_zeroing(case)
        src, dst = (dtype_of(case, name) for name in ("source", "result"))
        as_signed = signed if signed is not None else src.is_float or dst.is_float
        src, dst = (_signless(case, n, k, as_signed) for n, k in (("source", src), ("result", dst)))
        word = case.word("rounding")
        mode = round_mode({"H": "A"}.get(word, word)) if word else Round.RINT
        saturate = case.word("saturate") == "SAT"
        kind = dtype_of(case, "result").numpy

        def run(core: Machine, source: Items) -> Items:
            return convert(source.view(src.numpy), src, dst, mode, saturate).view(kind)

        return run

    return Do(make)


def _signless(case: Case, name: str, kind: DType, signed: bool) -> DType:
    elem = case.elem(name)
    if elem is None or not elem.name.startswith("i"):
        return kind
    return dtype(f"{'i' if signed else 'u'}{kind.bits}") if kind not in (I64, U64) else kind


def _reinterpret(case: Case) -> Function:
    kind, count = dtype_of(case, "result").numpy, lane_count(case)

    def run(core: Machine, source: Items) -> Items:
        found = np.ascontiguousarray(source).view(kind)
        if found.size != count:
            raise fail("PTO-S083", f"{source.size} lanes have other bits than {count} {kind}")
        return found

    return run


CONVERT = _convert(None)
CONVERT_SIGNED = _convert(signed=True)
CONVERT_UNSIGNED = _convert(signed=False)
REINTERPRET = Do(_reinterpret)
