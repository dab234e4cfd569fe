"""Sorting, merging and transposing in UB.

Overlapping operands, NaN in lists to be merged, and all errors are left to the reference step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.core.dtypes import F16, F32, DType
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.merge import RECORD, WAYS
from pto.isa.meaning.vector import sort
from pto.isa.meaning.vector.ub import dtype_of, element_alignment
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.handle.view import wide
from pto.run.jit.emit.registry import emits
from pto.run.jit.emit.tile.planes import apart, guarded
from pto.run.jit.llvm import shuffles
from pto.run.jit.llvm.text import Text, Val, element, unsupported_if, vector
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, word_type

_SCORES = (F16, F32)
_SIDE = 16  # of the block that vtranspose transposes


def _fits(s: OpContext, place: PointerDesc, nbytes: Val, align: int) -> str:
    """True if so many bytes lie inside and begin where they may."""
    good = s.e.inside(place.memory, place.address, nbytes)
    if align == 1:
        return good
    low = s.x.new(f"and i64 {place.address}, {align - 1}")
    return s.x.both(good, s.x.compare("eq", low, 0))


def _scores(s: OpContext, name: str) -> DType:
    kind = dtype_of(s.case, name)
    unsupported_if(kind not in _SCORES, f"scores of {kind}")
    return kind


def _pointers(s: OpContext, *places: PointerDesc) -> str:
    return ", ".join(f"ptr {s.pointer(p.memory, p.address)}" for p in places)


# ---- 32 at a time


@emits(sort.VBITSORT)
def _vbitsort(s: OpContext) -> Sequence[Lowered]:
    kind, x = _scores(s, "source"), s.x
    to, source, indices = (s.need(PointerDesc, n) for n in ("destination", "source", "indices"))
    repeat = wide(s, s.need(ScalarValue, "repeat_times"))
    sizes = [x.mul(repeat, sort.GROUP * n) for n in (RECORD, kind.itemsize, 4)]
    good = x.compare("ule", repeat, 255)
    for place, size, item in zip((to, source, indices), sizes, (4, kind.itemsize, 4), strict=True):
        good = x.both(good, _fits(s, place, size, element_alignment(s.case, item)))
    for place, size in ((source, sizes[1]), (indices, sizes[2])):
        good = x.both(good, apart(s, to, sizes[0], place, size))
    call = s.e.unit.shared(f"bitsort {kind}", lambda name: _sort_groups(name, kind))
    pointers = _pointers(s, to, source, indices)
    run = f"call void {call}({pointers}, i64 {repeat})"
    guarded(s, good, lambda: x.do(run), "records overlap, or a number is out of range")
    return []


def _sort_groups(name: str, kind: DType) -> str:
    x = Text()
    ranks = x.stack(vector(sort.GROUP, "i32"))

    def group(n: Val) -> None:
        first = x.mul(n, sort.GROUP)
        scores = x.at("%source", x.mul(first, kind.itemsize))
        _rank(x, kind, scores, ranks)

        def record(i: Val) -> None:
            rank = x.load("i32", x.new(f"getelementptr i32, ptr {ranks}, i64 {i}"))
            at = x.mul(x.add(x.new(f"zext i32 {rank} to i64"), first), RECORD)
            bits = f"i{8 * kind.itemsize}"
            score = x.load(bits, x.at(scores, x.mul(i, kind.itemsize)))
            if kind.itemsize < 4:
                score = x.new(f"zext {bits} {score} to i32")
            index = x.load("i32", x.at("%indices", x.mul(x.add(first, i), 4)))
            x.store("i32", score, x.at("%to", at))
            x.store("i32", index, x.at("%to", x.add(at, 4)))

        x.loop(sort.GROUP, 1, record)

    x.loop("%repeat", 1, group)
    x.do("ret void")
    head = f"define internal void {name}(ptr %to, ptr %source, ptr %indices, i64 %repeat) noinline"
    return x.function(head)


def _rank(x: Text, kind: DType, scores: str, ranks: str) -> None:
    """The place of each of 32 scores: descending, stable, NaN behind every number."""
    item, count = element(kind), sort.GROUP
    wide_type, bits, words = vector(count, "float"), vector(count, "i1"), vector(count, "i32")
    mine = _as_float(x, vector(count, item), x.load(vector(count, item), scores), wide_type)
    unknown = x.new(f"fcmp uno {wide_type} {mine}, {mine}")
    numbers = shuffles.constants("i32", range(count))
    x.store(words, "zeroinitializer", ranks, 64)

    def against(j: Val) -> None:
        value = x.load(item, x.at(scores, x.mul(j, kind.itemsize)))
        other = shuffles.spread(x, "float", count, _as_float(x, item, value, "float"))
        place = shuffles.spread(x, "i32", count, x.new(f"trunc i64 {j} to i32"))
        nan = x.new(f"fcmp uno {wide_type} {other}, {other}")
        greater = x.new(f"fcmp ogt {wide_type} {other}, {mine}")
        number = x.new(f"xor {bits} {nan}, splat (i1 true)")
        ahead = x.new(f"or {bits} {greater}, {x.new(f'and {bits} {unknown}, {number}')}")
        both = x.new(f"and {bits} {unknown}, {nan}")
        equal = x.new(f"or {bits} {x.new(f'fcmp oeq {wide_type} {other}, {mine}')}, {both}")
        earlier = x.new(f"icmp ugt {words} {numbers}, {place}")
        beats = x.new(f"or {bits} {ahead}, {x.new(f'and {bits} {equal}, {earlier}')}")
        sum = x.new(
            f"add {words} {x.load(words, ranks, 64)}, {x.new(f'zext {bits} {beats} to {words}')}"
        )
        x.store(words, sum, ranks, 64)

    x.loop(count, 1, against)


def _as_float(x: Text, type: str, name: str, want: str) -> str:
    return name if type == want else x.new(f"fpext {type} {name} to {want}")


@emits(sort.VSORT32)
def _vsort32(s: OpContext) -> Sequence[Lowered]:
    kind = _scores(s, "source")

    def write(name: str) -> str:
        x = Text()
        ranks = x.stack(vector(sort.GROUP, "i32"))
        _rank(x, kind, "%source", ranks)
        _moved(x, kind, sort.GROUP, lambda i: _loaded(x, ranks, i))
        return x.function(f"define internal void {name}(ptr %to, ptr %source) noinline")

    return _one_block(s, kind, sort.GROUP, f"sort32 {kind}", write)


@emits(sort.VTRANSPOSE)
def _vtranspose(s: OpContext) -> Sequence[Lowered]:
    kind = dtype_of(s.case, "source")

    def turned(x: Text, i: Val) -> Val:
        row, col = x.new(f"lshr i64 {i}, 4"), x.new(f"and i64 {i}, {_SIDE - 1}")
        return x.add(x.mul(col, _SIDE), row)

    def write(name: str) -> str:
        x = Text()
        _moved(x, kind, _SIDE * _SIDE, lambda i: turned(x, i))
        return x.function(f"define internal void {name}(ptr %to, ptr %source) noinline")

    return _one_block(s, kind, _SIDE * _SIDE, f"transpose {kind.itemsize}", write)


def _loaded(x: Text, ranks: str, i: Val) -> str:
    rank = x.load("i32", x.new(f"getelementptr i32, ptr {ranks}, i64 {i}"))
    return x.new(f"zext i32 {rank} to i64")


def _moved(x: Text, kind: DType, count: int, place: Callable[[Val], Val]) -> None:
    """to[place(i)] = source[i]."""
    bits, size = f"i{8 * kind.itemsize}", kind.itemsize

    def one(i: Val) -> None:
        value = x.load(bits, x.at("%source", x.mul(i, size)))
        x.store(bits, value, x.at("%to", x.mul(place(i), size)))

    x.loop(count, 1, one)
    x.do("ret void")


def _one_block(
    s: OpContext, kind: DType, count: int, key: str, write: Callable[[str], str]
) -> Sequence[Lowered]:
    """One block to another that shares no byte with it; a configuration of 0 is the plain form."""
    x, to, source = s.x, s.need(PointerDesc, "destination"), s.need(PointerDesc, "source")
    nbytes = count * kind.itemsize
    good = x.compare("eq", wide(s, s.need(ScalarValue, "config")), 0)
    for place in (to, source):
        good = x.both(good, _fits(s, place, nbytes, element_alignment(s.case, kind.itemsize)))
    good = x.both(good, apart(s, to, nbytes, source, nbytes))
    call = s.e.unit.shared(key, write)
    run = f"call void {call}({_pointers(s, to, source)})"
    guarded(s, good, lambda: x.do(run), "a configuration other than 0, or blocks overlap")
    return []


# ---- lists


@emits(sort.VMRGSORT4)
def _vmrgsort4(s: OpContext) -> Sequence[Lowered]:
    kind, x = _scores(s, "destination"), s.x
    to, *sources = (s.need(PointerDesc, o.name) for o in s.case.row.operands[: WAYS + 1])
    count, config = (wide(s, s.need(ScalarValue, name)) for name in ("count", "config"))
    valid = x.new(f"and i64 {x.new(f'lshr i64 {config}, 8')}, {15}")
    stop = x.new(f"and i64 {config}, {1 << 12}")  # where the first list runs out
    named = [x.compare("eq", valid, v) for v in (0b0011, 0b0111, 0b1111)]
    good = x.either(named[0], x.either(named[1], named[2]))
    lengths = [_length(s, count, valid, n) for n in range(WAYS)]
    total = x.add(x.add(lengths[0], lengths[1]), x.add(lengths[2], lengths[3]))
    repeats = x.new(f"and i64 {config}, 255")
    align = element_alignment(s.case, RECORD)
    whole = x.mul(x.mul(total, repeats), RECORD)
    good = x.both(good, _fits(s, to, whole, align))
    for source, length in zip(sources, lengths, strict=True):
        # from its first record to the last one of the last repetition
        ahead = x.mul(total, x.new(f"call i64 @llvm.smax.i64(i64 {x.sub(repeats, '1')}, i64 0)"))
        size = x.mul(x.add(ahead, length), RECORD)
        unused = x.compare("eq", length, 0)
        fits = x.both(_fits(s, source, size, align), apart(s, to, whole, source, size))
        good = x.both(good, x.either(unused, fits))
    _merge(s, kind, good, [to, *sources], [*lengths, total, repeats, stop])
    return []


def _length(s: OpContext, count: Val, valid: Val, n: int) -> str:
    """Records of list n; 0 where it takes no part."""
    x = s.x
    field = x.new(f"and i64 {x.new(f'lshr i64 {count}, {16 * n}')}, 65535")
    bit = x.new(f"and i64 {valid}, {1 << n}")
    return x.new(f"select i1 {x.compare('ne', bit, '0')}, i64 {field}, i64 0")


def _merge(
    s: OpContext, kind: DType, good: str, places: list[PointerDesc], words: list[Val]
) -> None:
    """Merge lists after a check that they descend and hold no NaN."""
    x = s.x
    check = s.e.unit.shared(f"descending {kind}", lambda name: _check(name, kind))
    merge = s.e.unit.shared(f"merge {kind}", lambda name: _merged(name, kind))
    to, *sources = places
    *lengths, total, repeats, _ = words
    state = x.stack("i8")
    x.store("i8", 0, state)

    def look() -> None:
        found = "true"
        for source, length in zip(sources, lengths, strict=True):
            numbers = f"i64 {length}, i64 {total}, i64 {repeats}"
            found = x.both(found, x.new(f"call i1 {check}({_pointers(s, source)}, {numbers})"))
        x.store("i8", x.new(f"zext i1 {found} to i8"), state)

    x.when(good, look)
    plain = x.compare("ne", x.load("i8", state), 0, "i8")

    def fast() -> None:
        numbers = ", ".join(f"i64 {w}" for w in words)
        taken = x.new(f"call i64 {merge}({_pointers(s, to, *sources)}, {numbers})")
        x.store("i64", taken, s.register_at(registers.VMS4_SR), 8)

    guarded(s, plain, fast, "lists that overlap, do not descend, or hold NaN")


def _check(name: str, kind: DType) -> str:
    """True if a list descends in every repetition and holds no NaN."""
    x, item = Text(), element(kind)
    bad = x.stack("i8")
    x.store("i8", 0, bad)

    def repetition(k: Val) -> None:
        start = x.at("%list", x.mul(x.mul(k, "%total"), RECORD))

        def record(i: Val) -> None:
            here = x.load(item, x.at(start, x.mul(i, RECORD)))
            last = x.new(f"call i64 @llvm.smax.i64(i64 {x.sub(i, '1')}, i64 0)")
            above = x.load(item, x.at(start, x.mul(last, RECORD)))
            wrong = x.new(f"fcmp ult {item} {above}, {here}")  # or not a number
            wide_bit = x.new(f"zext i1 {wrong} to i8")
            x.store("i8", x.new(f"or i8 {x.load('i8', bad)}, {wide_bit}"), bad)

        x.loop("%length", 1, record)

    x.loop("%repeats", 1, repetition)
    x.do(f"ret i1 {x.compare('eq', x.load('i8', bad), '0', 'i8')}")
    head = f"define internal i1 {name}(ptr %list, i64 %length, i64 %total, i64 %repeats) noinline"
    return x.function(head)


def _merged(name: str, kind: DType) -> str:
    """Merge: the highest head is next, the first of equal ones. Returns how many records of each
    list the last repetition took, 16 bits each."""
    x, item = Text(), element(kind)
    heads, left = x.stack(f"[{WAYS} x i64]"), x.stack("i64")
    x.store(f"[{WAYS} x i64]", "zeroinitializer", heads, 8)

    def repetition(k: Val) -> None:
        begin = x.mul(x.mul(k, "%total"), RECORD)
        x.store(f"[{WAYS} x i64]", "zeroinitializer", heads, 8)
        x.store("i64", "%total", left, 8)

        def next_record(i: Val) -> None:
            best, at, place = _none(item), f"{WAYS}", "null"
            for n in range(WAYS):
                best, at, place = _better(x, item, heads, begin, n, (best, at, place))
            x.store("i64", x.load("i64", place), x.at("%to", x.add(begin, x.mul(i, RECORD))))
            cell = x.new(f"getelementptr i64, ptr {heads}, i64 {at}")
            taken = x.add(x.load("i64", cell, 8), 1)
            x.store("i64", taken, cell, 8)
            length = "%length0"
            for n in range(1, WAYS):
                here = x.compare("eq", at, n)
                length = x.new(f"select i1 {here}, i64 %length{n}, i64 {length}")
            ends = x.both(x.compare("eq", taken, length), x.compare("ne", "%stop", 0))
            x.when(ends, lambda: x.store("i64", 0, left, 8))

        def unless_over(i: Val) -> None:
            more = x.compare("slt", i, x.load("i64", left, 8))
            x.when(more, lambda: next_record(i))

        x.loop("%total", 1, unless_over)

    x.loop("%repeats", 1, repetition)
    found: Val = 0
    for n in range(WAYS):
        taken = x.new(f"shl i64 {x.load('i64', x.at(heads, 8 * n), 8)}, {16 * n}")
        found = x.new(f"or i64 {found}, {taken}")
    x.do(f"ret i64 {found}")
    lists = ", ".join(f"ptr %list{n}" for n in range(WAYS))
    lengths = ", ".join(f"i64 %length{n}" for n in range(WAYS))
    words = f"{lengths}, i64 %total, i64 %repeats, i64 %stop"
    return x.function(f"define internal i64 {name}(ptr %to, {lists}, {words}) noinline")


def _none(item: str) -> str:
    return "0xHFC00" if item == "half" else "0xFFF0000000000000"


def _better(
    x: Text, item: str, heads: str, begin: Val, n: int, best: tuple[str, str, str]
) -> tuple[str, str, str]:
    """The better of what was found and the head of list n: score, list, place of the record."""
    head = x.load("i64", x.at(heads, 8 * n), 8)
    some = x.compare("slt", head, f"%length{n}")
    # of an exhausted list its last record is looked at, of an empty one the target's first
    safe = x.new(f"select i1 {some}, i64 {head}, i64 0")
    base = x.new(f"select i1 {some}, ptr %list{n}, ptr %to")
    place = x.at(base, x.add(begin, x.mul(safe, RECORD)))
    score = x.load(item, place)
    first = x.compare("eq", best[1], WAYS)
    above = x.new(f"fcmp ogt {item} {score}, {best[0]}")
    take = x.both(some, x.either(first, above))
    kinds = ((item, score, best[0]), ("i64", n, best[1]), ("ptr", place, best[2]))
    found = [x.new(f"select i1 {take}, {t} {new}, {t} {old}") for t, new, old in kinds]
    return found[0], found[1], found[2]


@emits(sort.GET_VMS4_SR)
def _get_vms4_sr(s: OpContext) -> Sequence[Lowered]:
    word = s.register(registers.VMS4_SR)
    found: list[Lowered] = []
    for n, result in enumerate(s.op.results):
        kind = word_type(result.type)  # type: ignore[arg-type]
        field = s.x.new(f"lshr i64 {word}, {16 * n}")
        small = s.x.new(f"trunc i64 {field} to i16")
        if kind != "i16":
            small = s.x.new(f"sext i16 {small} to {kind}")
        found.append(ScalarValue((small,), result.type))  # type: ignore[arg-type]
    return found
