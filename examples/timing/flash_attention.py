"""o = softmax(q k' / sqrt(d)) v as published for the 910B: the cube runs ahead of the vector side.

A block has 128 rows of `q`. Keys come in tiles of 256: scores of a tile go to the vector side in
two parts, their weights come back, and what weights x values give goes over again, each through a
ring of eight places in global memory. The cube is four tiles of scores ahead, so that neither side
waits for the other's answer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pto
from examples.timing.gemm import in_turn
from pto import isa

ROWS = DEPTH = PART = 128  # rows of a block, elements of a row, keys of one product
TILE, PARTS = 256, 2  # keys of a tile
HALF, SLICE = ROWS // 2, ROWS // 4  # rows of a vector core, and those it does at a time
RING, AHEAD, SOME = 8, 4, 4  # places; tiles of scores ahead; places that are given back at once
# semaphores: something is in a ring, its place is free again
SCORES, WEIGHTS, RESULTS = (0, 1), (2, 3), (4, 5)


class Rings(NamedTuple):
    """What goes between the two sides, in global memory: rows of all blocks that run at a time."""

    scores: pto.Global[pto.f32]
    weights: pto.Global[pto.f16]
    results: pto.Global[pto.f32]
    cores: int

    def first(self, tile: Any, parts: int) -> Any:
        """The first row of a tile that lies in `parts` pieces of 128 rows."""
        return (pto.block_idx() % self.cores * RING + tile % RING) * parts * ROWS


class Tiles(NamedTuple):
    """The tiles of keys of a launch, and where one of them needs a place that another had."""

    number: int

    def each(self, tile: Callable[[Any, int], None], last: Callable[[Any, int], None]) -> None:
        """All in order; `last` for those that nobody is ahead of. The int says which of a ring."""
        steady = self.number - AHEAD
        begun, whole = min(RING, steady), steady // RING * RING
        for n in range(begun):
            tile(n, n)
        if whole > begun:
            for at in pto.range(begun, whole, RING):
                for n in range(RING):
                    tile(at + n, n)
        for n in range(max(begun, whole), steady):
            tile(n, n % RING)
        for n in range(steady, self.number):
            last(n, n % RING)

    def await_free(self, pipe: str, semaphore: int, tile: Any, n: int) -> None:
        if self.number > RING and n % SOME == 0 and tile >= RING:
            isa.sync_wait(pipe, event_id=semaphore)

    def free(self, pipe: str, semaphore: int, tile: Any, n: int) -> None:
        if self.number > RING and n % SOME == SOME - 1 and tile < self.number - RING:
            isa.sync_set(pipe, event_id=semaphore, ffts_mode=2)


def products(
    q: pto.Global[pto.f16],
    k: pto.Global[pto.f16],
    v: pto.Global[pto.f16],
    o: pto.Global[pto.f32],
    scores: pto.Global[pto.f32],
    weights: pto.Global[pto.f16],
    results: pto.Global[pto.f32],
    cores: int,
) -> None:
    """The cube."""
    rings, keys = Rings(scores, weights, results, cores), k.T
    tiles = Tiles(k.shape[0] // TILE)
    nbytes = ROWS * DEPTH * 2
    queries = pto.tile(ROWS, DEPTH, pto.f16, role="mat", address=0)
    k_mats = in_turn(DEPTH, PART, pto.f16, "mat", "ZN", nbytes)
    v_mats = in_turn(PART, DEPTH, pto.f16, "mat", None, 3 * nbytes)
    p_mats = in_turn(ROWS, PART, pto.f16, "mat", None, 5 * nbytes)
    lefts, rights = (in_turn(ROWS, DEPTH, pto.f16, role) for role in ("left", "right"))
    accs = in_turn(ROWS, PART, pto.f32, "acc")
    isa.tload(queries, q[pto.block_idx() * ROWS : (pto.block_idx() + 1) * ROWS, :])

    def multiply(into: int, a: pto.Tile, b: pto.Tile, turn: int, first: bool, last: bool) -> None:
        """One product; the cube and its store agree by a unit flag when the sum is `last`."""
        acc, phase = accs[into], "final" if last else "partial"
        isa.set_flag("MTE2", "MTE1", 0)
        isa.wait_flag("MTE2", "MTE1", 0)
        isa.wait_flag("M", "MTE1", turn)
        isa.textract(lefts[turn], a, 0, 0)
        isa.textract(rights[turn], b, 0, 0)
        isa.set_flag("MTE1", "M", turn)
        isa.wait_flag("MTE1", "M", turn)
        if first:
            isa.tmatmul(acc, lefts[turn], rights[turn], accPhase=phase)
        else:
            isa.tmatmul_acc(acc, acc, lefts[turn], rights[turn], accPhase=phase)
        isa.set_flag("M", "MTE1", turn)

    def score(tile: Any, n: int, part: int) -> None:
        if part == 0:
            tiles.await_free("FIX", SCORES[1], tile, n)
        isa.wait_flag("MTE1", "MTE2", part)
        first = tile * TILE + part * PART
        isa.tload(k_mats[part], keys[:, first : first + PART])
        multiply(0, queries, k_mats[part], part, True, True)
        isa.set_flag("MTE1", "MTE2", part)
        row = rings.first(tile, PARTS) + part * ROWS
        isa.tstore(scores[row : row + ROWS, :], accs[0], stPhase="final")
        if part == PARTS - 1:
            isa.sync_set("FIX", event_id=SCORES[0], ffts_mode=2)

    def result(tile: Any, n: int, part: int) -> None:
        if part == 0:
            isa.sync_wait("MTE2", event_id=WEIGHTS[0])
        isa.wait_flag("MTE1", "MTE2", PARTS + part)
        first, row = tile * TILE + part * PART, rings.first(tile, PARTS) + part * ROWS
        isa.tload(v_mats[part], v[first : first + PART, :])
        isa.tload(p_mats[part], weights[row : row + ROWS, :])
        if part == PARTS - 1:
            tiles.free("MTE2", WEIGHTS[1], tile, n)
        multiply(1, p_mats[part], v_mats[part], part, part == 0, part == PARTS - 1)
        isa.set_flag("MTE1", "MTE2", PARTS + part)
        if part == PARTS - 1:
            tiles.await_free("FIX", RESULTS[1], tile, n)
            row = rings.first(tile, 1)
            isa.tstore(results[row : row + ROWS, :], accs[1], stPhase="final")
            isa.sync_set("FIX", event_id=RESULTS[0], ffts_mode=2)

    def both(tile: Any, n: int) -> None:
        for part in range(PARTS):
            score(tile + AHEAD, n + AHEAD, part)
            result(tile, n, part)

    def last(tile: Any, n: int) -> None:
        for part in range(PARTS):
            result(tile, n, part)

    _free(isa.set_flag)
    for tile in range(AHEAD):
        for part in range(PARTS):
            score(tile, tile, part)
    tiles.each(both, last)
    _free(isa.wait_flag)


def _free(say: Callable[[str, str, int], Any]) -> None:
    """Before the first tile every buffer is free, after the last one again."""
    for turn in (0, 1):
        say("M", "MTE1", turn)
    for turn in range(2 * PARTS):
        say("MTE1", "MTE2", turn)


class Column(NamedTuple):
    """A number for each row: as a column, and over the same bytes as a row to calculate with."""

    tall: pto.Tile
    flat: pto.Tile


def column(at: int, rows: int) -> Column:
    tall = pto.tile(rows, 1, pto.f32, layout="DN", address=at)
    return Column(tall, isa.treshape(tall, to=pto.tile_type(1, rows, pto.f32)))


def weigh(
    x: pto.Tile, out: pto.Tile, now: Column, shrink: Column, sofar: tuple[Column, Column, Column],
    scratch: pto.Tile, *, first: bool
) -> None:  # fmt: skip
    """weights = exp(scores - maximum) of some rows; the maximum and the sum so far are updated."""
    highest, total, local = sofar
    scale = DEPTH**-0.5
    if first:
        isa.trowmax(highest.tall, x, scratch)
        isa.barrier("V")
        isa.trowexpandsub(x, x, highest.tall)
    else:
        isa.trowmax(now.tall, x, scratch)
        isa.barrier("V")
        isa.tmax(now.flat, now.flat, highest.flat)
        isa.barrier("V")
        isa.tsub(shrink.flat, highest.flat, now.flat)
        isa.barrier("V")
        isa.tmuls(highest.flat, now.flat, 1.0)
        isa.barrier("V")
        isa.trowexpandsub(x, x, now.tall)
        isa.tmuls(shrink.flat, shrink.flat, scale)
    isa.barrier("V")
    isa.tmuls(x, x, scale)
    if not first:
        isa.texp(shrink.flat, shrink.flat)
    isa.barrier("V")
    isa.texp(x, x)
    isa.barrier("V")
    isa.tcvt(out, x)
    if first:
        isa.trowsum(total.tall, x, scratch)
        return
    isa.tmul(total.flat, shrink.flat, total.flat)
    isa.trowsum(local.tall, x, scratch)
    isa.barrier("V")
    isa.tadd(total.flat, total.flat, local.flat)


def softmax(
    q: pto.Global[pto.f16],
    k: pto.Global[pto.f16],
    v: pto.Global[pto.f16],
    o: pto.Global[pto.f32],
    scores: pto.Global[pto.f32],
    weights: pto.Global[pto.f16],
    results: pto.Global[pto.f32],
    cores: int,
) -> None:
    """The vector side, each sub-block half of the rows."""
    rings, tiles = Rings(scores, weights, results, cores), Tiles(k.shape[0] // TILE)
    big, mine = HALF * DEPTH * 4, pto.subblock_idx() * HALF
    out = pto.tile(HALF, DEPTH, pto.f32, address=0)
    halves = 3 * big
    scratch = pto.tile(SLICE, TILE, pto.f32, address=halves + big)
    small = halves + 2 * big
    # of each slice: maximum now, so far, sum, sum so far; then factors of a ring of tiles
    numbers = [[column(small + (4 * s + n) * SLICE * 4, SLICE) for n in range(4)] for s in (0, 1)]
    factors = small + 8 * SLICE * 4

    def weights_of(tile: Any, n: int, turn: int, rows: int, *, first: bool) -> None:
        x = pto.tile(SLICE, TILE, pto.f32, address=big + turn * big)
        half = pto.tile(SLICE, TILE, pto.f16, address=halves + turn * big // 2)
        isa.wait_flag("V", "MTE2", turn)
        if rows == 0:
            isa.sync_wait("MTE2", event_id=SCORES[0])
        row = rings.first(tile, PARTS) + mine + rows * SLICE
        for part in range(PARTS):
            at = row + part * ROWS
            isa.tload(x[:, part * PART : (part + 1) * PART], scores[at : at + SLICE, :])
        if rows == 1:
            tiles.free("MTE2", SCORES[1], tile, n)
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)
        isa.wait_flag("MTE3", "V", turn)
        now, highest, local, total = numbers[rows]
        shrink = column(factors + (n * HALF + rows * SLICE) * 4, SLICE)
        weigh(x, half, now, shrink, (highest, total, local), scratch, first=first)
        isa.set_flag("V", "MTE2", turn)
        isa.set_flag("V", "MTE3", 0)
        isa.wait_flag("V", "MTE3", 0)
        if rows == 0:
            tiles.await_free("MTE3", WEIGHTS[1], tile, n)
        for part in range(PARTS):
            at = row + part * ROWS
            isa.tstore(weights[at : at + SLICE, :], half[:, part * PART : (part + 1) * PART])
        if rows == 1:
            isa.sync_set("MTE3", event_id=WEIGHTS[0], ffts_mode=2)
        isa.set_flag("MTE3", "V", turn)

    def add(tile: Any, n: int) -> None:
        turn, first = n % 2, isinstance(tile, int) and tile == 0
        part = out if first else pto.tile(HALF, DEPTH, pto.f32, address=big + turn * big)
        isa.wait_flag("V", "MTE2", turn)
        isa.sync_wait("MTE2", event_id=RESULTS[0])
        row = rings.first(tile, 1) + mine
        isa.tload(part, results[row : row + HALF, :])
        tiles.free("MTE2", RESULTS[1], tile, n)
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)
        if not first:
            factor = pto.tile(HALF, 1, pto.f32, layout="DN", address=factors + n * HALF * 4)
            isa.trowexpandmul(out, out, factor)
            isa.barrier("V")
            isa.tadd(out, out, part)
        isa.set_flag("V", "MTE2", turn)

    def both(tile: Any, n: int) -> None:
        for rows in (0, 1):
            weights_of(tile + AHEAD, (n + AHEAD) % RING, (n + rows) % 2, rows, first=False)
        add(tile, n)

    _turns(isa.set_flag)
    for tile in range(AHEAD):
        for rows in (0, 1):
            weights_of(tile, tile, rows, rows, first=tile == 0)
    tiles.each(both, add)
    _turns(isa.wait_flag)
    for rows in (0, 1):
        some = out[rows * SLICE : (rows + 1) * SLICE, :]
        isa.barrier("V")
        isa.trowexpanddiv(some, some, numbers[rows][3].tall)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    first = pto.block_idx() * ROWS + mine
    isa.tstore(o[first : first + HALF, :], out)


def _turns(say: Callable[[str, str, int], Any]) -> None:
    for turn in (0, 1):
        say("V", "MTE2", turn)
        say("MTE3", "V", turn)


flash_attention = pto.pair(products, softmax, profile="a2a3")


def shapes(rows: int, keys: int, cores: int) -> tuple[Any, ...]:
    """The arguments of a launch, as shapes; `cores` is how many blocks run at a time."""
    places = min(cores, rows // ROWS) * RING * ROWS
    ring = (PARTS * places, PART)
    return ((rows, DEPTH), *((keys, DEPTH),) * 2, (rows, DEPTH), ring, ring, (places, DEPTH), cores)
