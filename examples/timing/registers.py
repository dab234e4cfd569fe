"""Published kernels of the a5's vector registers, written again: GELU, softmax, Hadamard transforms
and the quantisation to MXFP4. Loads and stores are in turn, as published."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pto
from examples.timing.operators import Buffers, begin, end, turn
from pto import isa

CHUNK = 8192  # elements of a tile of GELU
GELU = (0.044715, -1.595769)
PREFETCH = 2  # tiles that are loaded ahead


def gelu_of(x: Any, every: Any) -> Any:
    """x / (1 + exp(-1.5958 (x + 0.044715 x^3)))"""
    y = isa.vmul(isa.vmul(x, x, every), x, every)
    y = isa.vadd(x, isa.vmuls(y, GELU[0], every), every)
    y = isa.vexp(isa.vmuls(y, GELU[1], every), every)
    return isa.vdiv(x, isa.vadds(y, 1.0, every), every)


def bell_of(x: Any, every: Any) -> Any:
    """exp(2 - (x + 1)^2 / 2)"""
    y = isa.vadds(x, 1.0, every)
    y = isa.vmuls(isa.vmul(y, y, every), -0.5, every)
    return isa.vexp(isa.vadds(y, 2.0, every), every)


def both_of(x: Any, every: Any) -> Any:
    return bell_of(gelu_of(x, every), every)


# name -> functions of the loops one after the other, lanes of an iteration, iterations written out
LOOPS: dict[str, tuple[tuple[Callable[[Any, Any], Any], ...], int, int]] = {
    "gelu": ((gelu_of,), 64, 1),
    "gelu unrolled": ((gelu_of,), 64, 4),
    "both by halves": ((both_of,), 32, 1),
    "both": ((both_of,), 64, 1),
    "both split": ((gelu_of, bell_of), 64, 1),
    "both split, unrolled": ((gelu_of, bell_of), 64, 4),
}


@cache
def by_registers(name: str) -> Any:
    """A function of every element of flat f32 arrays, in loops over registers."""
    functions, lanes, unrolled = LOOPS[name]

    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], y: pto.Global[pto.f32], tiles: int) -> None:
        ub = Buffers()
        sets = [[ub.tile(1, CHUNK, pto.f32) for _ in range(2)] for _ in range(2)]
        first = pto.block_idx() * tiles * CHUNK

        def compute(source: pto.Tile, result: pto.Tile) -> None:
            with pto.vecscope():
                every = isa.pset_b32("PAT_ALL" if lanes == 64 else "PAT_VL32")
                for function in functions:
                    loop(function, source if function is functions[0] else result, result, every)
                    isa.mem_bar("VST_VLD")

        def loop(function: Any, taken: pto.Tile, result: pto.Tile, every: Any) -> None:
            for i in pto.range(0, CHUNK, lanes * unrolled):
                for n in range(unrolled):
                    at = i + n * lanes
                    isa.vsts(function(isa.vlds(taken, at), every), result, at, every)

        def step(b: int, at: Any) -> None:
            source, result = sets[b]
            turn(
                b,
                lambda: isa.tload(source, x[0:1, at : at + CHUNK]),
                lambda: compute(source, result),
                lambda: isa.tstore(y[0:1, at : at + CHUNK], result),
            )

        begin(2)
        for i in pto.range(0, tiles, 2):
            for b in (0, 1):
                step(b, first + (i + b) * CHUNK)
        end(2)

    return kernel


@pto.kernel(profile="a5")
def softmax(
    x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int, together: int, mine: int
) -> None:
    """Softmax of rows in three loops over registers; tiles of `rows` rows, `together` in a loop."""
    ub, width, lanes = Buffers(), x.shape[1], 64
    sets = [[ub.tile(rows, width, pto.f32) for _ in range(2)] for _ in range(2)]
    first = pto.block_idx() * mine

    def compute(source: pto.Tile, result: pto.Tile) -> None:
        for row in range(0, rows, together):
            starts = [(row + n) * width for n in range(together)]
            with pto.vecscope():
                every = isa.pset_b32("PAT_ALL")
                greatest = [isa.vlds(source, start) for start in starts]
                totals = [isa.vsub(g, g, every) for g in greatest]
                if together == 1:
                    (one,), (total,) = greatest, totals
                    for i in pto.range(lanes, width, lanes):
                        one = isa.vmax(one, isa.vlds(source, starts[0] + i), every)
                    one = isa.vdup(isa.vcmax(one, every), every)
                    for i in pto.range(0, width, lanes):
                        e = isa.vexp(isa.vlds(source, starts[0] + i) - one, every)
                        isa.vsts(e, result, starts[0] + i, every)
                        total = isa.vadd(total, e, every)
                    totals = [total]
                else:
                    (one, two), (total, other) = greatest, totals
                    for i in pto.range(lanes, width, lanes):
                        one = isa.vmax(one, isa.vlds(source, starts[0] + i), every)
                        two = isa.vmax(two, isa.vlds(source, starts[1] + i), every)
                    one = isa.vdup(isa.vcmax(one, every), every)
                    two = isa.vdup(isa.vcmax(two, every), every)
                    for i in pto.range(0, width, lanes):
                        e = isa.vexp(isa.vlds(source, starts[0] + i) - one, every)
                        f = isa.vexp(isa.vlds(source, starts[1] + i) - two, every)
                        isa.vsts(e, result, starts[0] + i, every)
                        isa.vsts(f, result, starts[1] + i, every)
                        total = isa.vadd(total, e, every)
                        other = isa.vadd(other, f, every)
                    totals = [total, other]
                sums = [isa.vdup(isa.vcadd(t, every), every) for t in totals]
                isa.mem_bar("VST_VLD")
                for i in pto.range(0, width, lanes):
                    for n, start in enumerate(starts):
                        shared = isa.vdiv(isa.vlds(result, start + i), sums[n], every)
                        isa.vsts(shared, result, start + i, every)

    def step(b: int, at: Any) -> None:
        source, result = sets[b]
        turn(
            b,
            lambda: isa.tload(source, x[at : at + rows, :]),
            lambda: compute(source, result),
            lambda: isa.tstore(y[at : at + rows, :], result),
        )

    begin(2)
    for i in pto.range(0, mine, 2 * rows):
        for b in (0, 1):
            step(b, first + i + b * rows)
    end(2)


def streamed(
    tiles: int,
    buffers: int,
    load: Callable[[int, Any], None],
    compute: Callable[[int], None],
    store: Callable[[int, Any], None],
) -> None:
    """Every core takes each 64th tile; loads are issued ahead of the tile that is computed."""
    ahead = min(PREFETCH, buffers - 1)
    mine = tiles // pto.block_num()

    def fetch(b: int, n: Any) -> None:
        isa.wait_flag("MTE3", "MTE2", b)
        load(b, pto.block_idx() + n * pto.block_num())
        isa.set_flag("MTE2", "V", b)

    for b in range(buffers):
        isa.set_flag("MTE3", "MTE2", b)
    for n in range(ahead):
        fetch(n, n)
    for i in pto.range(0, mine, buffers):
        for b in range(buffers):
            n = i + b
            if n + ahead < mine:
                fetch((b + ahead) % buffers, n + ahead)
            isa.wait_flag("MTE2", "V", b)
            compute(b)
            isa.set_flag("V", "MTE3", b)
            isa.wait_flag("V", "MTE3", b)
            store(b, pto.block_idx() + n * pto.block_num())
            isa.set_flag("MTE3", "MTE2", b)
    for b in range(buffers):
        isa.wait_flag("MTE3", "MTE2", b)


@pto.kernel(profile="a5")
def hadamard(x: pto.Global[pto.f16], n: int, elements: int, buffers: int) -> None:
    """Rows of `n` by the Hadamard matrix, in place; tiles of `elements`, eight windows a pass."""
    ub, window = Buffers(), 256
    sets = [ub.tile(1, elements, pto.f16) for _ in range(buffers)]
    stages, rotations = n.bit_length() - 1, max(0, 9 - n.bit_length())

    def sweep(tile: pto.Tile, turned: int) -> None:
        for i in pto.range(0, elements, 8 * window):
            pairs = [isa.vldsx2(tile, i + s * window, "DINTLV_B16")[:2] for s in range(8)]
            every = isa.pset_b16("PAT_ALL")
            pairs = [(isa.vadd(a, b, every), isa.vsub(a, b, every)) for a, b in pairs]
            for _ in range(turned):
                pairs = [tuple(isa.vdintlv(a, b)) for a, b in pairs]
            for half in (0, 1):
                for s, pair in enumerate(pairs):
                    isa.vsts(pair[half], tile, i + s * window + half * window // 2, every)
        isa.mem_bar("VST_VLD")

    def compute(b: int) -> None:
        with pto.vecscope():
            for stage in range(stages):
                sweep(sets[b], rotations if stage == stages - 1 else 0)

    streamed(
        x.shape[1] // elements,
        buffers,
        lambda b, at: isa.tload(sets[b], x[0:1, at * elements : (at + 1) * elements]),
        compute,
        lambda b, at: isa.tstore(x[0:1, at * elements : (at + 1) * elements], sets[b]),
    )


@pto.kernel(profile="a5")
def mxfp4_quant(
    x: pto.Global[pto.bf16],
    codes: pto.Global[pto.float4_e2m1x2],
    scales: pto.Global[pto.u8],
    elements: int,
) -> None:
    """Groups of 32 of flat bf16 values to codes of four bits and a scale; tiles of `elements`."""
    ub, groups, buffers = Buffers(), elements // 32, 4
    sources = [ub.tile(1, elements, pto.bf16) for _ in range(buffers)]
    results = [ub.tile(1, elements // 2, pto.float4_e2m1x2) for _ in range(buffers)]
    exponents = [ub.tile(1, groups, pto.u8) for _ in range(buffers)]
    most, factor = ub.tile(1, groups, pto.bf16), ub.tile(1, 2 * groups, pto.bf16, valid=(1, groups))

    def compute(b: int) -> None:
        operands = results[b], exponents[b], most, factor, sources[b]
        isa.tquant_mx(*operands, quant_type="MXFP4_E2M1")

    def store(b: int, at: Any) -> None:
        size = elements // 2
        isa.tstore(codes[0:1, at * size : (at + 1) * size], results[b])
        isa.tstore(scales[0:1, at * groups : (at + 1) * groups], exponents[b])

    streamed(
        x.shape[1] // elements,
        buffers,
        lambda b, at: isa.tload(sources[b], x[0:1, at * elements : (at + 1) * elements]),
        compute,
        store,
    )
