"""A convolution of 3 x 3 filters as a product: MTE1 makes rows of the matrix from the feature map.

One load brings one group of 16 channels: the lines of the map that 128 outputs need, and the
filters' part. They are multiplied in three pieces of 48.
"""

import pto
from examples.timing.gemm import Panels, all_free, in_turn, multiply, store
from pto import isa

C0, TAPS = 16, 9
BASE_M, BASE_K, BASE_N = 128, 48, 256
PIECES = C0 * TAPS // BASE_K
FILTERS = 0x20000  # where they lie in L1


@pto.kernel(profile="a2a3")
def conv2d(
    x: pto.Global[pto.f16],
    filters: pto.Global[pto.f16],
    y: pto.Global[pto.f16],
    groups: int,
    height: int,
    blocks: int,
) -> None:
    """`x` has a row for each image, group of channels and line; `filters` for each group and tap.

    A row of `x` is width x 16, one of `filters` outputs x 16; `y` is outputs by pixel. Every image
    is padded by one pixel. Blocks share the images, then the outputs.
    """
    width, n = x.shape[1] // C0, filters.shape[1] // C0
    across = blocks // (x.shape[0] // groups // height)
    image = pto.block_idx() // across
    left = pto.block_idx() % across * (n // across)
    loaded = in_turn(TAPS, BASE_N * C0, pto.f16, "mat", "ND", FILTERS)
    boxes = in_turn(TAPS * C0, BASE_N, pto.f16, "mat", "ZN", FILTERS)
    lefts = in_turn(BASE_M, BASE_K, pto.f16, "left")
    rights = in_turn(BASE_K, BASE_N, pto.f16, "right")
    pairs = list(zip(lefts, rights, strict=True))
    acc = pto.tile(BASE_M, BASE_N, pto.f32, role="acc", address=0)

    def take_filters(into: pto.Tile, turn: int, inside: int) -> None:
        isa.textract(into, boxes[turn], inside * BASE_K, 0)

    all_free(isa.set_flag)
    for first in range(0, height * width, BASE_M):  # outputs of the image
        top, bottom = first // width - 1, (first + BASE_M - 1) // width + 1
        begin, end = max(0, top), min(height, bottom + 1)
        maps = [
            pto.tile(end - begin, width * C0, pto.f16, role="mat", layout="ND", address=at)
            for at in (0, FILTERS // 2)
        ]

        def take_map(
            into: pto.Tile,
            turn: int,
            inside: int,
            maps: list[pto.Tile] = maps,
            lines: int = end - begin,
            pads: tuple[int, int] = (begin - top, bottom + 1 - end),
            first: int = first,
        ) -> None:
            isa.timg2col(
                into,
                maps[turn],
                1,
                lines,
                width,
                first % width,
                inside * BASE_K,
                filter_h=3,
                filter_w=3,
                pad_left=1,
                pad_right=1,
                pad_top=pads[0],
                pad_bottom=pads[1],
            )

        panels = [
            Panels(maps, PIECES, take_map, full=0, free=0, tells=False),
            Panels(loaded, PIECES, take_filters, full=2, free=0, waits=False),
        ]
        for j in pto.range(0, n // across, BASE_N):
            column = left + j
            for group in pto.range(0, groups, 2):
                for piece in range(2 * PIECES):
                    turn, inside = divmod(piece, PIECES)
                    if inside == 0:
                        line = (image * groups + group + turn) * height + begin
                        tap = (group + turn) * TAPS
                        panels[0].load(turn, x[line : line + end - begin, :])
                        part = filters[tap : tap + TAPS, column * C0 : (column + BASE_N) * C0]
                        panels[1].load(turn, part)
                    multiply(acc, pairs, panels, piece, group)
            row = image * (height * width) + first
            store(y[row : row + BASE_M, column : column + BASE_N], acc)
    all_free(isa.wait_flag)
