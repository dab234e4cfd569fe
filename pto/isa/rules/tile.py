"""Rules that several tile families of the vector unit share; `rule.py` defines the class `Rule`.

Rules of a single row or family are in its file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from pto.core.layout import ND
from pto.core.tile import Compact, TileType
from pto.isa.row.instr import Attr, Family
from pto.isa.rules.rule import (
    LIBRARY,
    Case,
    OpLike,
    Rule,
    ValueLike,
    all_in,
    dims,
    listing,
    row_major,
    rule,
    rule_of,
    same_valid,
)

tile_family = partial(Family, section="tile", pipe="V")

NPU = "a2a3 a5"
Pairs = Mapping[str, Mapping[str, str]]  # profile -> source type -> the types it may become

# Headers assert Loc == Vec and isRowMajor; the CPU simulator addresses any layout.
VECTOR_UNIT = (all_in("vec").on(NPU), row_major().on(NPU))


def _is_one_run(case: Case) -> bool:
    """True if the elements of all tiles follow each other without a gap, in one order."""
    tiles = [tile for _, tile in case.tiles()]
    if any(t.layout != tiles[0].layout or t.compact is not Compact.NULL for t in tiles):
        return False
    columns = tiles and tiles[0].layout.name == "DN"
    return all(t.valid == t.shape or (columns and t.cols == t.valid[1] == 1) for t in tiles)


def by_lines(rule: Rule, *, text: bool = True) -> Rule:
    """The row-major rule, except for contiguous elements: headers take them as one row.

    Instructions with a scalar do not assert isRowMajor (TBinSOp.hpp of a2a3 and a5). `text`: nor
    does PTOAS, else the exception is for C++ kernels. Other rules are returned unchanged.
    """
    if rule.id != row_major().id:
        return rule
    test = rule.test

    def beside(case: Case) -> str | None:
        fits = (text or case.profile.headers) and _is_one_run(case)
        return None if fits else test(case)

    return replace(rule, test=beside, sentence=f"{rule.sentence}{', or without gaps' * text}")


@rule_of("PTO-T022", "expects {scalar} to be {kind}, which becomes of {tile}'s element type")
def scalar_converts(
    case: Case,
    scalar: str,
    tile: str,
    kind: Literal["an integer", "an integer or a float"] = "an integer or a float",
) -> str | None:
    """Calls of the library convert the number; a tile in place of it has the element type."""
    a, b = case.elem(scalar), case.elem(tile)
    if a is None or b is None or set(a.names) & set(b.names):
        return None
    fits = a.is_integer or (a.is_float and kind != "an integer")
    return None if fits and a is case.type(scalar) else f"{scalar} is {a.name}, {tile} is {b.name}"


def same_domain(*names: str) -> Rule:
    """Sources and destination must have the same valid region.

    The manual lets them differ: the destination's region is the domain, and source lanes outside
    their own region are undefined on NPUs. NPU headers and PTOAS reject it, so this rule does too,
    except in the edition `manual`.
    """
    return same_valid(*names).current.on(NPU)


@rule("PTO-S040", "expects tmp to cover the valid region of dst", id="scratch-covers")
def covers_dst(tmp: TileType, dst: TileType) -> str | None:
    pairs = zip(tmp.valid, dst.valid, strict=True)
    fits = all(a is None or b is None or a >= b for a, b in pairs)
    return None if fits else f"tmp is {dims(*tmp.valid)}, dst is {dims(*dst.valid)}"


@rule_of(
    "PTO-S040", "expects tmp to have {share}the valid columns of dst or more", id="scratch-columns"
)
def covers_columns(case: Case, share: Literal["", "1/8 of "] = "") -> str | None:
    """A scratch row for one row at a time, or for one bit of each of its elements."""
    tmp, dst = case.tile("tmp"), case.tile("dst")
    have, need = tmp.valid[1] if tmp else None, dst.valid[1] if dst else None
    fits = have is None or need is None or have * (8 if share else 1) >= need
    return None if fits else f"tmp has {have}, dst has {need}"


def holds_bytes(least: Mapping[int, int]) -> Rule:
    """The scratch tile must have `least[itemsize]` bytes, by the item size of dst."""
    listed = ", ".join(f"{need} bytes for elements of {size}" for size, need in least.items())

    @rule("PTO-S040", f"expects tmp to hold {listed}", id="scratch-bytes")
    def holds(tmp: TileType, dst: TileType) -> str | None:
        need = least.get(dst.itemsize, 0)
        return None if tmp.nbytes >= need else f"it has {tmp.nbytes}, {need} are needed"

    return holds


@rule("PTO-S040", "expects tmp for high_precision", id="precise-scratch")
def scratch_if_precise(case: Case) -> str | None:
    precise = case.word("precisionType") == "high_precision"
    return "there is none" if precise and not case.type("tmp") else None


@rule_of("PTO-S040", "expects tmp to have {least} valid rows or more", id="scratch-rows")
def has_rows(case: Case, least: int) -> str | None:
    tmp = case.tile("tmp")
    rows = None if tmp is None else tmp.valid[0]
    return None if rows is None or rows >= least else f"it has {rows}"


@rule("PTO-S040", "expects tmp to have more rows than dst has valid ones", id="scratch-rows")
def exceeds_rows(tmp: TileType, dst: TileType) -> str | None:
    """The scratch tile must have one row more than the operand uses."""
    need = dst.valid[0]
    return None if need is None or tmp.rows > need else f"tmp has {tmp.rows}, dst has {need}"


@rule_of("PTO-S040", "expects no tmp for {kinds}", id="no-scratch")
def no_scratch_for(case: Case, kinds: str) -> str | None:
    elem = case.elem("dst")
    if elem is None or not case.type("tmp") or not set(kinds.split()) & set(elem.names):
        return None
    return f"dst is {elem.name}"


def of_floats(case: Case) -> bool:
    elem = case.elem("dst")
    return elem is not None and elem.name[0] not in "iu"


_Bytes = tuple[int | str, int, int]  # of a tile: base of its addresses or its buffer, start, end
# source, destination, bytes from the destination's start to the source's, bytes between their rows
Overlap = Callable[[TileType, TileType, int, tuple[int, int]], bool]
_VIEWS = ("pto.treshape", "pto.bitcast", "pto.subview")


def has_places(op: OpLike) -> bool:
    """True if an operand is a part or another form of a tile, or a tile with an address."""
    return any(v.maker is not None and _has_place(v.maker) for v in op.operands)


def _has_place(maker: OpLike) -> bool:
    return maker.name in _VIEWS or (bool(maker.row.traits.allocates) and bool(maker.group("addr")))


def _bytes(case: Case, value: ValueLike, type: TileType) -> _Bytes:
    """The byte range of a tile, from a constant address or relative to its root tile."""
    start = 0
    count = type.nbytes
    maker = value.maker
    row = 0  # of windows on windows, up to the tile that owns the lines
    col = 0  # of windows on windows, up to the tile that owns the lines
    pitch = type.cols  # of windows on windows, up to the tile that owns the lines
    while maker is not None and maker.name in _VIEWS:
        root = getattr(maker.operands[0].type, "tile", None)
        at = [case.constant(v) for v in maker.group("offsets")]
        if maker.name == "pto.subview" and (not isinstance(root, TileType) or None in at):
            return id(maker), 0, 0
        if at and isinstance(root, TileType):
            row = row + (at[0] or 0)
            col = col + (at[1] or 0)
            pitch = root.cols
            count = ((type.rows - 1) * pitch + type.cols) * type.itemsize
        else:  # the same bytes, other lines
            start = start + (row * pitch + col) * type.itemsize
            row = 0
            col = 0
        value, maker = maker.operands[0], maker.operands[0].maker
    start += (row * pitch + col) * type.itemsize
    address_value = None if maker is None else maker.operand("addr")
    address = None if address_value is None else case.constant(address_value)
    if address is None:
        return id(value), start, start + count
    return type.space.value, address + start, address + start + count


def place_of(case: Case, name: str) -> tuple[str, int] | None:
    """The name of the allocation that an operand lies in, empty where its address is a constant,
    and the operand's first byte; None where neither is known."""
    value, type = case.op.operand(name), case.tile(name)
    if value is None or type is None:
        return None
    case.asked_makers = True
    root, start, end = _bytes(case, value, type)
    while value.maker is not None and value.maker.name in _VIEWS:
        value = value.maker.operands[0]
    is_own = value.maker is not None and bool(value.maker.row.traits.allocates)
    if not is_own or start == end:
        return None
    return ("" if isinstance(root, str) else value.name), start


def same_form(src: TileType, dst: TileType, offset: int, pitches: tuple[int, int]) -> bool:
    """True for an overlap in which source and destination elements coincide."""
    return offset == 0 and src.shape == dst.shape and src.itemsize == dst.itemsize


def row_by_row(src: TileType, dst: TileType, offset: int, pitches: tuple[int, int]) -> bool:
    """True for an overlap in which an element is never written before it is read: rows are
    processed in order, so no row of the destination may overlap a later row of the source, or
    another part of its own. Wider elements overwrite their own row from its start."""
    if same_form(src, dst, offset, pitches):
        return True
    pitch, step = pitches
    (rows, width_written), (_, width) = _region(dst), _region(src)
    for row in range(rows):
        low = row * step - offset
        first = max(0, (low - width) // pitch + 1)
        last = min(rows - 1, (low + width_written - 1) // pitch)
        in_place = first == last == row and low == row * pitch and dst.itemsize <= src.itemsize
        if first <= last and last >= row and not in_place:
            return False
    return True


def _region(tile: TileType) -> tuple[int, int]:
    """Rows that are accessed and bytes of each, as far as the type gives them."""
    if tile.layout != ND:
        return tile.rows, tile.cols * tile.itemsize
    rows, cols = tile.valid
    return (
        tile.rows if rows is None else rows,
        (tile.cols if cols is None else cols) * tile.itemsize,
    )


def _pitch(tile: TileType, first: int, last: int) -> int:
    """Bytes between rows of a tile, or of a window with this byte range."""
    width = tile.cols * tile.itemsize
    return width if tile.rows == 1 else (last - first - width) // (tile.rows - 1)


_OUT_OF_PLACE = "out-of-place"


def out_of_place(*sources: str, dst: str = "dst", unless: Overlap | None = None) -> Rule:
    """Sources must not share bytes with a destination that is written before they are fully read,
    as far as addresses are known. `unless` allows harmless overlaps."""

    def test(case: Case) -> str | None:
        if unless is not None and not has_places(case.op):
            return None  # tiles of different allocations
        case.asked_makers = True
        target, out = case.op.operand(dst), case.tile(dst)
        if target is None or out is None or (unless is not None and _is_stricter(case, sources)):
            return None
        root, start, end = _bytes(case, target, out)
        for name, tile in case.tiles(sources):
            value = case.op.operand(name)
            if value is None or name == dst:
                continue
            if value is target and unless is None:
                return f"{name} and {dst} are both %{value.name}"
            base, first, last = _bytes(case, value, tile)
            if base != root or first >= end or start >= last:
                continue
            pitches = _pitch(tile, first, last), _pitch(out, start, end)
            if unless is None or not unless(tile, out, first - start, pitches):
                return f"{name} has bytes {first} to {last - 1}, {dst} {start} to {end - 1}"
        return None

    sentence = f"expects {dst} to share no bytes with {listing(sources)}"
    if unless is not None:
        sentence = f"expects {dst} to overwrite nothing of {listing(sources)} that is read later"
    never = sources if unless is None and dst == "dst" else ()
    return Rule(_OUT_OF_PLACE, "PTO-M040", sentence, test, apart=never)


def _is_stricter(case: Case, sources: tuple[str, ...]) -> bool:
    """True if another rule of the row allows these sources no overlap at all."""
    rules = (rule for rule in case.row.rules if rule.id == _OUT_OF_PLACE)
    return any(rule.applies(case.profile) and set(sources) <= set(rule.apart) for rule in rules)


def results_apart(*names: str) -> Rule:
    """Results of one instruction must not overlap: no source defines which would be kept."""
    return apart(*names, same=True)


def apart(*names: str, same: bool = False) -> Rule:
    """Different tiles must not share bytes, as far as addresses are known; with `same`, two
    operands must also not be the same tile."""

    def test(case: Case) -> str | None:
        case.asked_makers = True
        earlier: list[tuple[str, _Bytes]] = []
        values: list[ValueLike] = []
        for name, tile in case.tiles(names):
            value = case.op.operand(name)
            if value is None or (value in values and not same):
                continue
            if value in values:
                return f"{earlier[values.index(value)][0]} and {name} are both %{value.name}"
            values.append(value)
            root, start, end = _bytes(case, value, tile)
            for other, (base, first, last) in earlier:
                if base == root and first < end and start < last:
                    return f"{other} has bytes {first} to {last - 1}, {name} {start} to {end - 1}"
            earlier.append((name, (root, start, end)))
        return None

    sentence, never = f"expects {listing(names)} to share no bytes", names if same else ()
    return Rule("apart", "PTO-M040", sentence, test, apart=never)


@rule_of("PTO-T041", "expects {src} and {dst} to have element types that go together")
def dtype_pairs(
    case: Case, src: str, dst: str, pairs: Pairs, *, signed: bool = False
) -> str | None:
    """The types that src may be converted to; a profile without an entry allows all. With `signed`
    an integer without a sign is a signed one, as the conversion takes it."""
    table = pairs.get(case.profile.name)
    a, b = case.elem(src), case.elem(dst)
    if table is None or a is None or b is None:
        return None
    names = [e.names[:1] if signed else e.names for e in (a, b)]
    reached = {word for name in names[0] for word in table.get(name, "").split()}
    if reached & set(names[1]):
        return None
    partners = " ".join(sorted(reached)) or "nothing"
    return f"{src} is {a.name}, {dst} is {b.name}; with {a.name} goes {partners}"


def precision(kind: str) -> Attr:
    """The precision attribute of a5; here every result is rounded once, whatever its value."""
    return Attr(
        "precisionType",
        f"{kind}_precision|precision_mode",
        default="default",
        meaning="high_precision is slower and more exact on a5; here every result is rounded once",
        older=("precision_mode",),
    )


@rule_of("PTO-T043", "expects {allowed:or} elements for high_precision", id="high-precision")
def high_precision_of(case: Case, allowed: str) -> str | None:
    elem = case.elem("dst")
    if case.word("precisionType") != "high_precision" or elem is None:
        return None
    return None if set(elem.names) & set(allowed.split()) else f"dst is {elem.name}"


@rule(LIBRARY, "expects high_precision for elements of bf16", id="bf16-precise", severity="warning")
def bf16_is_precise(case: Case, dst: TileType) -> str | None:
    """TPOW of a5 asserts it: the default way has no bf16."""
    precise = case.word("precisionType") == "high_precision"
    return None if precise or dst.dtype.name != "bf16" else "dst is bf16"


@rule_of(
    LIBRARY,
    "expects {name} of {types:,} in the library",
    id="library-{name}",
    severity="warning",
)
def library_types(case: Case, name: str, types: str) -> str | None:
    """The elements of an operand that the library asserts, where the text form has others too."""
    tile = case.tile(name)
    tile_type = None if tile is None else tile.dtype.name
    return None if tile_type is None or tile_type in types.split() else f"{name} is {tile_type}"


@rule_of(LIBRARY, "expects a chip with a library that defines it", id="defined", severity="warning")
def undefined(case: Case, why: str) -> str | None:
    """An instruction without a definition in the library of a chip."""
    return why


@rule_of(
    LIBRARY,
    "expects {name} of i32 not to be read again, as the library rounds it to f32 in place",
    id="spent-{name}",
    severity="warning",
)
def spent(case: Case, name: str) -> str | None:
    """A source of i32 that a later operation reads, before another one writes it."""
    tile = case.tile(name)
    if tile is None or tile.dtype.name != "i32":
        return None
    case.asked_makers = True
    reader = case.op.next_reader(name)
    return None if reader is None else f"'{reader.name}' op reads it"


@rule_of(
    LIBRARY,
    "expects dst to be valid in all columns or to have a dynamic region",
    id="static-part",
    severity="warning",
)
def static_part(case: Case) -> str | None:
    """a2a3/TExpandS.hpp fills a region of constants as one run, whatever its rows skip."""
    dst = case.tile("dst")
    if dst is None or not case.profile.headers:
        return None  # the export prints a dynamic region
    axis = 1 if dst.layout.blayout.value == "row_major" else 0
    length, lines = dst.valid[axis], dst.valid[1 - axis]
    is_run = length in (None, dst.shape[axis]) or lines == 1
    return None if is_run else f"{dims(*dst.valid)} of {dims(*dst.shape)} are valid"


@rule_of(LIBRARY, "expects no elements of {dtype}", id="no-{dtype}", severity="warning")
def not_of(case: Case, dtype: str) -> str | None:
    """Elements of `dst` that the text form has and an assertion of the library refuses."""
    tile = case.tile("dst")
    return f"dst is {dtype}" if tile is not None and tile.dtype.name == dtype else None


_NOTHING = (0, 0)  # the region of an operation that does nothing


@rule_of("PTO-S051", "expects {name} to have one valid {axis}", id="one-valid-{axis}")
def one_valid(
    case: Case, name: str, axis: Literal["row", "column"], *, idle: bool = False
) -> str | None:
    """One valid row (or column). With `idle` a destination of 0x0 is legal and does nothing."""
    tile = case.tile(name)
    if tile is None or (idle and tile.valid == _NOTHING):
        return None
    extent = tile.valid[axis == "column"]
    return None if extent in (None, 1) else f"it has {extent}"


@rule_of("PTO-S052", "expects the valid region of {names} not to be empty")
def not_empty(case: Case, *names: str, unless: str = "") -> str | None:
    """Valid regions must not be empty; unless the tile `unless` is 0x0, which does nothing."""
    idle = case.tile(unless) if unless else None
    if idle is not None and idle.valid == _NOTHING:
        return None
    for name, tile in case.tiles(names):
        if 0 in tile.valid:
            return f"{name} is {dims(*tile.valid)}"
    return None


def scratch_when(words: str, needed: Callable[[Case], bool]) -> Rule:
    """Some forms need a scratch tile; the program must give it if it places its memory itself."""

    def test(case: Case) -> str | None:
        return "there is none" if needed(case) and not case.type("tmp") else None

    return Rule("placed-scratch", "PTO-M107", f"expects tmp{words} at level 3", test).at_level(3)


@rule_of("PTO-S040", "expects tmp to hold {what}")
def scratch_holds(case: Case, what: str, needed: Callable[[Case], int | None]) -> str | None:
    """The scratch tile must have `needed` bytes; None if the number is not known."""
    tmp, wanted = case.tile("tmp"), needed(case)
    if tmp is None or wanted is None or tmp.nbytes >= wanted:
        return None
    return f"it has {tmp.nbytes} bytes, {wanted} are needed"
