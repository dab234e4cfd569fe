"""The work of a move: source and destination buffer, bytes, contiguous runs in global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Space
from pto.core.tile import Tile
from pto.isa.cost.work import FractalWork, GlobalRegion, TransferWork, Work
from pto.isa.meaning.handle.view import as_tile, as_view
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

_FRACTAL_PATHS = frozenset({"l1>l0a", "l1>l0b"})
_COLUMN = 32  # bytes of k in one column of boxes
_HINTS = ("l2_cache_ctl", "l2_cache_ctrl")
# nakeep naclean nadrop of loads, naci napw napi nared of stores (PTOAS: a raw value 4 is naci)
_NOT_KEPT = range(4, 8)


def ends(case: Case) -> tuple[int, int] | None:
    """Positions of the source and the destination among the row's operands."""
    places = [i for i, o in enumerate(case.row.operands) if is_place(case.type(o.name))]
    outs = [i for i in places if case.row.operands[i].role in ("out", "inout")]
    ins = [i for i in places if i not in outs]
    return (ins[0], outs[0]) if ins and outs else None


def is_place(type: t.Type | None) -> bool:
    return isinstance(type, t.PLACES)


def described(case: Case) -> Callable[[list[Any]], Work] | None:
    """The work of a move between tiles and views, from their shapes; None if they are dynamic."""
    positions = ends(case)
    if positions is None:
        return None
    src, dst = positions
    types = [case.type(case.row.operands[i].name) for i in positions]
    if all(isinstance(type, t.Ptr) for type in types):
        return _bursts(case)
    if not all(isinstance(type, t.TileBuf | t.View) for type in types):
        return None

    def work(values: list[Any]) -> Work:
        source, target = _thing(values[src], types[0]), _thing(values[dst], types[1])
        return between(source, target)

    return work


_BURSTS = ("source", "destination", "len_burst", "n_burst", "nburst_src_stride")


def _bursts(case: Case) -> Callable[[list[Any]], Work] | None:
    """The work of strided bursts from or to global memory; None for loops over them."""
    names = case.row.operand_names
    if not set(_BURSTS) <= set(names) or case.op.group("loop_counts"):
        return None
    places = [names.index(name) for name in (*_BURSTS, "nburst_dst_stride")]

    def work(values: list[Any]) -> Work:
        source, target, length, count, read, written = (values[i] for i in places)
        writes = target.memory.space is Space.GM
        there, step = (target, written) if writes else (source, read)
        path = f"{source.memory.space.value}>{target.memory.space.value}"
        if there.memory.space is not Space.GM:
            return TransferWork(path, length * count, 1)
        pitch = step if count > 1 else length
        region = GlobalRegion(there.memory.base + there.address, count, length, pitch, writes)
        return TransferWork(path, region.nbytes, runs(region), region)

    return work


def _thing(value: Any, type: t.Type | None) -> Tile | GlobalTensor:
    return as_view(value, type) if isinstance(type, t.View) else as_tile(value, type)


def between(source: Tile | GlobalTensor, target: Tile | GlobalTensor) -> Work:
    """The work of a move between two regions: the bytes of the smaller one."""
    tile = target if isinstance(target, Tile) else source
    other = source if tile is target else target
    rows, cols = tile.get_valid() if isinstance(tile, Tile) else tile.matrix_shape
    if isinstance(other, Tile):
        there = other.get_valid()
        rows, cols = min(rows, there[0]), min(cols, there[1])
    kind = tile.type.dtype if isinstance(tile, Tile) else tile.dtype
    size = kind.itemsize
    path = f"{source.memory.space.value}>{target.memory.space.value}"
    if path in _FRACTAL_PATHS:
        k = (cols if path == "l1>l0a" else rows) * size
        return FractalWork(path, rows * cols * size, -(-k // _COLUMN), kind.name)
    if isinstance(other, GlobalTensor):
        region = window(other, rows, cols, writes=other is target)
        return TransferWork(path, region.nbytes, runs(region), region)
    return TransferWork(path, rows * cols * size, 1)


def window(view: GlobalTensor, rows: int, cols: int, *, writes: bool) -> GlobalRegion:
    """The byte rows of a view that a transfer of rows x cols elements accesses."""
    size = view.dtype.itemsize
    (a, b, c, _, _) = view.shape
    steps = view.strides
    base = getattr(view.memory, "base", 0)  # of a watched memory: its bytes on the host
    if a == b == c == 1:
        by_rows = steps[4] == 1 or cols == 1
        count, line, pitch = (rows, cols, steps[3]) if by_rows else (cols, rows, steps[4])
        return GlobalRegion(base + view.address, count, line * size, pitch * size, writes)
    # more than two dimensions: contiguous ones are merged
    run = 1
    pitch = 0
    total = max(1, rows * cols)
    for step, length in sorted(zip(steps, view.shape, strict=True)):
        if length > 1 and step == run:
            run *= length
        elif length > 1 and not pitch:
            pitch = step
    run = min(run, total)
    return GlobalRegion(
        base + view.address, -(-total // run), run * size, (pitch or run) * size, writes
    )


def runs(region: GlobalRegion) -> int:
    """The number of contiguous runs."""
    return 1 if region.pitch == region.row_bytes else region.rows


def touched(accesses: Iterable[Any]) -> Work | None:
    """The work of a move from the accesses recorded in a run."""
    reads: dict[Space, int] = {}
    writes: dict[Space, int] = {}
    region = None
    for access in accesses:
        space, array = access.memory.space, access.array
        width = access.width if array is None else array.itemsize
        size = access.addresses().size * width
        into = writes if access.writes else reads
        into[space] = into.get(space, 0) + size
        if space is Space.GM and size:
            region = _region_of(access) if region is None else region
    if not reads or not writes:
        return None
    source, target = max(reads, key=lambda s: reads[s]), max(writes, key=lambda s: writes[s])
    path = f"{source.value}>{target.value}"
    nbytes = max(reads[source], writes[target])
    if path in _FRACTAL_PATHS:
        return FractalWork(path, nbytes, max(1, nbytes // 512))
    return TransferWork(path, nbytes, 1 if region is None else runs(region), region)


def hinted(case: Case) -> Callable[[list[Any], Work | None], Work | None]:
    """A function that adds the L2 cache hint of a copy to its work."""
    at = next((i for i, o in enumerate(case.row.operands) if o.name in _HINTS), None)

    def asked(values: list[Any], work: Work | None) -> Work | None:
        if at is None or values[at] not in _NOT_KEPT or not isinstance(work, TransferWork):
            return work
        region = work.region
        return work if region is None else work._replace(region=region._replace(passes_by=True))

    return asked


def _region_of(access: Any) -> GlobalRegion:
    """The region of one access, with contiguous elements joined to rows."""
    array, base = access.array, access.memory.base
    if array is None or array.ndim == 0:
        places = access.addresses()
        start = base + int(places.min()) if places.size else base
        return GlobalRegion(start, max(1, places.size), access.width, access.width, access.writes)
    start = base + access.start
    line = array.itemsize
    pitch = 0
    rows = 1
    for n, step in sorted(zip(array.shape, array.strides, strict=True), key=lambda x: abs(x[1])):
        if n == 1:
            continue
        if rows == 1 and abs(step) == line:
            line *= n
        else:
            pitch = pitch or abs(step)
            rows *= n
    return GlobalRegion(start, rows, line, pitch or line, access.writes)
