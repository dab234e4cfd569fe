"""Windows of tiles: TEXTRACT cuts one out, TINSERT pastes one in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.compact import Packing
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import as_tile, tile_type
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.patch import cut, packing
from pto.isa.meaning.tile.transfer import Delivery, change
from pto.isa.rules.rule import Case

Fetch = Callable[[Machine, Tile, tuple[int, int], tuple[int, int], Any, Any], Lanes]


def _fetch(case: Case, packed: Packing | None) -> Fetch:
    """fn(core, src, start, size, fp, word): a window of src, as elements of dst."""
    changed = change(case)

    def fetch(
        core: Machine, src: Tile, at: tuple[int, int], size: tuple[int, int], fp: Any, word: Any
    ) -> Lanes:
        return changed(core, cut(src, *at, *size, packed), fp, word, at[1])

    return fetch


def packings(case: Case) -> list[Packing | None]:
    """How src and dst are packed, where a mode says so."""
    mode = case.word("mode")
    return [packing(mode, tile_type(case.type(name)).layout.name) for name in ("src", "dst")]


# ---- out of src: over dst's valid region


def _extract(case: Case) -> Callable[..., None]:
    boxed_src, boxed_dst = packings(case)
    fetch, deliver = _fetch(case, boxed_src), Delivery(case)
    types = [case.type(name) for name in ("src", "dst", "dst1")]

    def run(
        core: Machine, src: Any, r: int, c: int, dst: Any, r1: Any, c1: Any, dst1: Any, word: Any
    ) -> None:
        source, first = as_tile(src, types[0]), as_tile(dst, types[1])
        values = fetch(core, source, (r, c), first.get_valid(), None, word)
        if dst1 is not None:  # both are read before either is written
            second = as_tile(dst1, types[2])
            values = values.copy()
            more = fetch(core, source, (r1, c1), second.get_valid(), None, word).copy()
            deliver(core, second, 0, 0, more, boxed_dst)
        deliver(core, first, 0, 0, values, boxed_dst)

    return run


def _extract_scaled(case: Case) -> Callable[..., None]:
    fetch, deliver = _fetch(case, None), Delivery(case)
    types = [case.type(name) for name in ("src", "fp", "dst")]

    def run(core: Machine, src: Any, fp: Any, r: int, c: int, dst: Any) -> None:
        source, scales, target = map(as_tile, (src, fp, dst), types)
        values = fetch(core, source, (r, c), target.get_valid(), scales, None)
        deliver(core, target, 0, 0, values)

    return run


# ---- into dst: over src's valid region


def _insert(case: Case) -> Callable[..., None]:
    boxed_src, boxed_dst = packings(case)
    fetch, deliver = _fetch(case, boxed_src), Delivery(case)
    types = [case.type(name) for name in ("src", "dst")]

    def run(core: Machine, src: Any, r: int, c: int, dst: Any, word: Any) -> None:
        source, target = map(as_tile, (src, dst), types)
        values = fetch(core, source, (0, 0), source.get_valid(), None, word)
        deliver(core, target, r, c, values, boxed_dst)

    return run


def _insert_scaled(case: Case) -> Callable[..., None]:
    fetch, deliver = _fetch(case, None), Delivery(case)
    types = [case.type(name) for name in ("src", "fp", "dst")]

    def run(core: Machine, src: Any, fp: Any, r: int, c: int, dst: Any) -> None:
        source, scales, target = map(as_tile, (src, fp, dst), types)
        values = fetch(core, source, (0, 0), source.get_valid(), scales, None)
        deliver(core, target, r, c, values)

    return run


EXTRACT = Do(_extract)
EXTRACT_SCALED = Do(_extract_scaled)
INSERT = Do(_insert)
INSERT_SCALED = Do(_insert_scaled)
