"""Python kernels are proved for every size of their arrays, not only for the sizes of a call."""

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError

Array = pto.Global[pto.f32]
Rows = pto.Global[pto.f32, "n", 64]
Room = pto.Global[pto.f32, "b", 16, 64]


@pto.kernel(profile="a5")
def doubled(x: Array, y: Array) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64) * 2.0)


@pto.kernel(profile="a5")
def halves(x: Array, y: Array) -> None:
    """Blocks 0 and 1 write 16 rows each, the second from the middle on: apart from 32 rows on."""
    i = pto.block_idx() * (x.shape[0] // 2)
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


@pto.kernel(profile="a2a3")
def product(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: Array) -> None:
    m, n = pto.block_idx(0) * 64, pto.block_idx(1) * 64
    total = pto.zeros((64, 64), pto.f32)
    for k in range(0, a.shape[1], 64):
        total += pto.dot(pto.load(a[m:, k:], 64, 64), pto.load(b[k:, n:], 64, 64))
    pto.store(c[m:, n:], total)


@pto.kernel(profile="a5")
def planes(x: Array, y: Array) -> None:
    """Blocks that differ only along the third axis of the grid write the same place."""
    i, j, k = pto.block_idx(0) * 16, pto.block_idx(1) * 64, pto.block_idx(2)
    pto.store(y[i:, j:], pto.load(x[i + k :, j:], 16, 64))


@pto.kernel(profile="a5")
def single_rows(x: Array, y: Array) -> None:
    i = pto.block_idx()
    pto.store(y[i, :], pto.load(x[i, :], 1, 64))


@pto.kernel(profile="a5")
def one_column(x: Array, y: Array) -> None:
    """All blocks of a row of the grid write the same place."""
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    pto.store(y[i:, 0:64], pto.load(x[i:, j:], 16, 64))


@pto.kernel(profile="a5")
def own_element(x: Array, y: Array) -> None:
    i = pto.block_idx()
    isa.store_scalar(y, i, 0, isa.load_scalar(x, i, 0))


@pto.kernel(profile="a5")
def guarded_element(x: Array, y: Array) -> None:
    i = pto.block_idx()
    if i < x.shape[0]:
        isa.store_scalar(y, i, 0, isa.load_scalar(x, i, 0))


@pto.kernel(profile="a5")
def strided(x: Array, y: Array) -> None:
    for i in pto.range(pto.block_idx(), pto.cdiv(x.shape[0], 16), pto.block_num()):
        pto.store(y[i * 16 :, :], pto.load(x[i * 16 :, :], 16, 64))


def verdicts(found: pto.Proofs) -> dict[str, str]:
    return {a.question: a.verdict for _, a in found}


def assumed(found: pto.Proofs, question: str) -> str:
    return "; ".join(text for _, a in found if a.question == question for text in a.assumes)


def test_open_sizes_are_named_and_proved():
    found = doubled.prove((100, 64), (100, 64))
    assert set(verdicts(found).values()) == {"proved"}
    for question in verdicts(found):
        assert "x_0 = x.shape[0] = y.shape[0]" in assumed(found, question)
        assert "x_1 <= 64" in assumed(found, question)  # wider rows are refused by a call
    assert str(found).count("x.shape[0]") == 1  # a shared assumption is printed once


def test_a_proof_for_the_given_shapes_names_them_and_the_failing_size():
    found = halves[2].prove((32, 64), (32, 64))
    assert verdicts(found)["blocks"] == "proved"
    rests_on = assumed(found, "blocks")
    assert rests_on.startswith("x is 32x64; y is 32x64; not for x_0 = ")
    rows = int(rests_on.split("x_0 = ")[1].split(",")[0])
    assert 1 < rows < 32  # then the blocks overlap
    assert verdicts(halves[2].prove((30, 64), (30, 64)))["blocks"] == "refuted"


def test_a_size_that_the_trace_needs_stays_a_number():
    found = product.prove((128, 192), (192, 256), (128, 256))
    assert set(verdicts(found).values()) == {"proved"}
    assert "192 = a.shape[1] = b.shape[0]" in assumed(found, "bounds")
    assert "b_1 = b.shape[1] = c.shape[1]" in assumed(found, "bounds")


def test_a_grid_has_the_axes_that_a_kernel_asks_for():
    two = product.prove((128, 192), (192, 256), (128, 256))
    assert "blocks == grid_x * grid_y" in assumed(two, "blocks")
    assert verdicts(planes.prove((128, 256), (128, 256)))["blocks"] != "proved"
    shared = one_column.prove((32, 256), (32, 256))
    assert verdicts(shared)["blocks"] != "proved"
    assert verdicts(one_column[2, 2].prove((32, 256), (32, 256)))["blocks"] == "refuted"


def test_without_arguments_a_proof_takes_the_shapes_of_the_last_call():
    x = np.ones((40, 64), np.float32)
    doubled[3](x, np.zeros_like(x))
    assert str(doubled.prove()) == str(doubled.prove(x, x.copy()))


def test_without_arguments_a_proof_takes_docstrings_and_annotations():
    @pto.kernel(profile="a5")
    def told(x: Array, y: Array) -> None:
        """>>> told[2]((32, 64), (32, 64))"""
        pto.store(y, pto.load(x, 32, 64))

    @pto.kernel(profile="a5")
    def sized(x: Rows, y: Rows) -> None:
        i = pto.block_idx() * 8
        pto.store(y[i:, :], pto.load(x[i:, :], 8, 64))

    @pto.kernel(profile="a5")
    def unknown(x: Array, y: Array) -> None:
        pto.store(y, pto.load(x, 32, 64))

    assert verdicts(told.prove())["bounds"] == "proved"
    assert set(verdicts(sized.prove()).values()) == {"proved"}
    with pytest.raises(PtoError, match="PTO-U209"):
        unknown.prove()


def test_an_assumption_may_use_the_names():
    shapes = (32, 64), (32, 64)
    assert verdicts(single_rows.prove(*shapes))["bounds"] == "refuted"
    found = single_rows.prove(*shapes, assume=["x_0 >= blocks"])
    assert verdicts(found)["bounds"] == "proved"
    assert "x_0 >= blocks" in assumed(found, "bounds")


@pytest.mark.parametrize(("rows", "blocks"), [(100, 8), (96, 6)])
def test_a_block_too_many_is_an_empty_window_where_tiles_do_not_fit(rows: int, blocks: int):
    x = np.ones((rows, 64), np.float32)
    assert not list(doubled.sanitize(x, np.zeros_like(x), blocks=blocks))


def test_a_proof_states_what_windows_of_whole_tiles_need():
    """96 rows are six tiles: a seventh block is an error, as the assumption says."""
    x = np.ones((96, 64), np.float32)
    with pytest.raises(PtoError, match="PTO-M006"):
        doubled[7](x, np.zeros_like(x))
    found = doubled.prove((100, 64), (100, 64))
    assert "16*block < x_0 where 16 divides x_0" in assumed(found, "bounds")
    assert "at most" not in assumed(found, "bounds")
    whole = doubled.prove((96, 64), (96, 64))
    assert "(at most 6 blocks for 96)" in assumed(whole, "bounds")
    assert "divides" not in assumed(found, "blocks")
    assert "divides" not in assumed(strided.prove((100, 64), (100, 64)), "bounds")
    few = doubled.prove((100, 64), (100, 64), assume=["x_0 > 16 * blocks - 16"])
    assert "divides" not in assumed(few, "bounds")
    two = doubled[2].prove((100, 64), (100, 64), assume=["x_0 >= 32"])
    assert "divides" not in assumed(two, "bounds")


def test_single_elements_stay_inside_their_arrays():
    shapes = (32, 64), (32, 64)
    found = own_element.prove(*shapes)
    ((_, bounds), *_) = found
    assert bounds.verdict == "refuted"
    assert bounds.example is not None and bounds.example.blocks > bounds.example.names["x_0"]
    assert verdicts(guarded_element.prove(*shapes))["bounds"] == "proved"


@pto.kernel(profile="a5")
def parts(x: Array, y: Array) -> None:
    """Each block has a part of the array, in steps of 256 elements."""
    n = x.shape[0]
    size = pto.cdiv(n, pto.block_num())
    low = pto.block_idx() * size
    high = pto.min(low + size, n)
    for i in pto.range(low, high, 256):
        end = pto.min(i + 256, high)
        pto.store(y[i:end], pto.load(x[i:end], 256) + pto.load(y[i:end], 256))


def test_parts_of_an_array_are_apart_whatever_the_order_of_the_search():
    """Many inequalities are known; the proof needs the one that leaves nothing."""
    assert {verdicts(parts.prove((4096,), (4096,)))["blocks"] for _ in range(3)} == {"proved"}


# ---- the call that is asked about


@pto.kernel(profile="a5")
def neighbour(x: Array, y: Array) -> None:
    """Each block reads the rows behind its own."""
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i + 16 :, :], 16, 64))


def test_a_launch_is_not_proved_by_an_assumption_that_excludes_it():
    shapes = (64, 64), (64, 64)
    every = neighbour.prove(*shapes)
    assert verdicts(every)["bounds"] == "proved"
    assert "(at most 3 blocks for 64)" in assumed(every, "bounds")
    x, y = (np.zeros((64, 64), np.float32) for _ in "xy")
    for blocks in (1, 2, 3, 4, 5):
        fails = any(d.code == "PTO-M006" for d in neighbour.sanitize(x, y, blocks=blocks))
        found = neighbour[blocks].prove(*shapes)
        assert (verdicts(found)["bounds"] == "refuted") == fails == (blocks > 3)
    assumed_more = neighbour[4].prove(*shapes, assume=["x_0 >= 80"])  # another call
    assert verdicts(assumed_more)["bounds"] == "proved"


@pto.kernel(profile="a5")
def numbered(x: Array, y: Array, n: pto.Scalar[pto.i32]) -> None:
    i = pto.block_idx() * n
    pto.store(y[i : i + 8, :], pto.load(x[i : i + 8, :], 8, 64))


def test_numbers_of_the_call_count():
    shapes = (64, 64), (64, 64)
    assert verdicts(numbered.prove(*shapes, 8))["blocks"] == "proved"
    assert "n = 8" in assumed(numbered.prove(*shapes, 8), "blocks")
    assert verdicts(numbered[3].prove(*shapes, 4))["blocks"] == "refuted"


def test_a_grid_of_two_axes_beside_the_number_of_the_block():
    """Scratch for each block by its number, results by both axes of the grid."""

    @pto.kernel(profile="a5")
    def with_room(x: Array, y: Array, room: Room) -> None:
        i, j, own = pto.block_idx(0) * 16, pto.block_idx(1) * 64, pto.block_idx()
        pto.store(room[own, :, :], pto.load(x[i : i + 16, j : j + 64], 16, 64))
        pto.store(y[i : i + 16, j : j + 64], pto.load(room[own, :, :], 16, 64))

    found = with_room.prove((32, 192), (32, 192), (6, 16, 64))
    assert verdicts(found)["blocks"] == "proved"
    assert "blocks == grid_x * grid_y" in assumed(found, "blocks")


@pto.kernel(profile="a5")
def tiles_of_planes(x: Array, y: Array, step: int = 64, own: int = 1) -> None:
    """A tile of a plane for each block of a grid of three axes."""
    i, j, k = pto.block_idx(0) * 16, pto.block_idx(1) * step, pto.block_idx(2)
    pto.store(y[k * own, i:, j:], pto.load(x[k, i:, j:], 16, 64))


@pytest.mark.parametrize(
    ("step", "own", "verdict"), [(64, 1, "proved"), (63, 1, "refuted"), (64, 0, "refuted")]
)
def test_any_grid_of_three_axes(step: int, own: int, verdict: str):
    """Tiles that overlap along the second axis, or planes that are one, are not apart."""
    shape = (3, 100, 130)
    assert verdicts(tiles_of_planes.prove(shape, shape, step, own))["blocks"] == verdict


# ---- arrays of a call that share bytes


def test_separate_arrays_are_an_assumption():
    found = doubled.prove((100, 64), (100, 64))
    for question in ("blocks", "order"):
        assert "arrays share no bytes" in assumed(found, question)
    for question in ("bounds", "deadlock", "reads"):
        assert "share no bytes" not in assumed(found, question)


def test_blocks_of_arrays_that_overlap_are_not_proved():
    """Block n writes what block n + 1 reads, and with a distance of two blocks n + 2."""
    room = np.ones((112, 64), np.float32)
    for shift in (1, 16, 32):
        x, y = room[:80], room[shift : shift + 80]
        races = [d.code for d in doubled.sanitize(x, y, blocks=5) if d.code.startswith("PTO-R02")]
        assert races
        for found in (doubled.prove(x, y), doubled[5].prove(x, y)):
            assert verdicts(found)["blocks"] == verdicts(found)["order"] == "unknown"
            assert "x and y share bytes" in str(found)
    assert verdicts(doubled[2].prove(room[:32], room[32:64]))["blocks"] == "proved"


def test_copies_of_arrays_that_overlap_are_refused_as_in_a_run():
    """Columns of one array are copied for a launch, so that their memory is no longer shared."""
    room = np.ones((80, 128), np.float32)
    for call in (doubled.prove, doubled[5].prove, doubled[5]):
        with pytest.raises(PtoError, match="PTO-U191"):
            call(room[:, :64], room[:, 56:120])
    assert verdicts(doubled[5].prove(room[:, :64], room[:, 64:]))["blocks"] == "proved"


def test_one_array_for_two_parameters_is_followed():
    x = np.ones((80, 64), np.float32)
    found = doubled[5].prove(x, x)
    assert set(verdicts(found).values()) == {"proved"}
    assert "y is x" in assumed(found, "blocks")
    assert verdicts(neighbour[3].prove(x, np.ones_like(x)))["blocks"] == "proved"
    assert verdicts(neighbour[3].prove(x, x))["blocks"] == "refuted"


# ---- legality, and counterexamples


def test_a_program_that_check_refuses_is_not_proved():
    @pto.kernel(profile="a5")
    def picked(x: Array, y: Array) -> None:
        even = pto.tile(8, 128, pto.f32)
        isa.tgather(even, pto.load(x[:, 0:38], 8, 256), maskPattern="P0101")
        pto.store(y, even)

    @pto.kernel(profile="a5")
    def too_large(x: Array, y: Array) -> None:
        tiles = [pto.load(x, 64, 512) for _ in range(3)]
        pto.store(y, sum(tiles[1:], tiles[0]))

    for kernel, shapes in ((picked, ((8, 40), (8, 128))), (too_large, ((64, 512), (64, 512)))):
        with pytest.raises(PtoError) as refused:
            kernel.prove(*shapes)
        with pytest.raises(PtoError) as also:
            kernel(*(np.zeros(shape, np.float32) for shape in shapes))
        assert refused.value.code == also.value.code


@pto.kernel(profile="a5")
def heads(q: pto.Global[pto.f16], y: Array, n: pto.Scalar[pto.i32]) -> None:
    h, most = pto.block_idx(), pto.full(16, 1, -3e38, pto.f32)
    for j in pto.range(0, n, 64):
        t = pto.load(q[h, :, j:], 16, 64).to(pto.f32)
        most = pto.max(most, t.max(axis=1))
    pto.store(y[h, :, :], most)


def test_a_counterexample_is_shown_by_a_legal_call():
    """The numbers of the call are tried: with arrays of 16 x 16 x 16 the tiles would not fit."""
    found = heads.prove((3, 16, 512), (3, 16, 1), 333)
    assert verdicts(found)["bounds"] == "refuted"
    ((_, bounds), *_) = found
    assert bounds.example is not None and bounds.example.blocks > 3
    assert bounds.example.names["n"] == 333
    assert verdicts(heads[4].prove((3, 16, 512), (3, 16, 1), 333))["bounds"] == "refuted"


@pto.kernel(profile="a5")
def first_block(x: Array, y: Array) -> None:
    if pto.block_idx() == 0:
        pto.store(y, pto.load(x, 16, 64))


@pto.kernel(profile="a5")
def first_two_blocks(x: Array, y: Array) -> None:
    if pto.block_idx() <= 1:
        pto.store(y, pto.load(x, 16, 64))


def test_a_store_of_one_block_meets_no_other_block():
    assert verdicts(first_block.prove((16, 64), (16, 64)))["blocks"] == "proved"
    assert verdicts(first_two_blocks.prove((16, 64), (16, 64)))["blocks"] == "refuted"


# ---- valid regions that loops carry


@pto.kernel(profile="a5")
def online_sum(x: Array, out: Array) -> None:
    i = pto.block_idx() * 8
    high, total = pto.full(8, 1, -3e38, pto.f32), pto.zeros(8, 1, pto.f32)
    for j in pto.range(0, x.shape[1], 64):
        t = pto.load(x[i:, j:], 8, 64)
        now = pto.max(high, t.max(axis=1))
        total = total * pto.exp(high - now) + pto.exp(t - now).sum(axis=1)
        high = now
    pto.store(out[i:, :], pto.log(total) + high)


@pto.kernel(profile="a5")
def sum_of_planes(x: pto.Global[pto.f32], out: Array) -> None:
    """The first iteration of both loops meets a tile that `pto.zeros` fills."""
    i, total = pto.block_idx() * 8, pto.zeros(8, 64, pto.f32)
    for n in pto.range(0, x.shape[0]):
        for j in pto.range(0, x.shape[2], 64):
            total = total + pto.load(x[n, i:, j:], 8, 64)
    pto.store(out[i:, :], total)


@pto.kernel(profile="a5")
def running_maxima(x: pto.Global[pto.f32], out: pto.Global[pto.f32]) -> None:
    i, high = pto.block_idx() * 8, pto.full(8, 64, -3e38, pto.f32)
    for n in pto.range(0, x.shape[0]):
        for j in pto.range(0, x.shape[2], 64):
            high = pto.max(high, pto.load(x[n, i:, j:], 8, 64))
            pto.store(out[n, i:, :], high)


@pytest.mark.parametrize("rows", [64, 60])
def test_a_reduction_over_columns_is_proved_for_every_size(rows: int):
    for found in (
        online_sum.prove((rows, 192), (rows, 1)),
        online_sum[8].prove((rows, 192), (rows, 1)),
    ):
        assert set(verdicts(found).values()) == {"proved"}, str(found)
        assert "x_0 = x.shape[0] = out.shape[0]" in assumed(found, "reads")


def test_a_result_with_too_few_rows_is_refuted():
    found = online_sum[8].prove((60, 192), (56, 1))
    assert verdicts(found)["bounds"] == "refuted"


def test_regions_that_nested_loops_carry_are_followed():
    for kernel, result in ((sum_of_planes, (60, 64)), (running_maxima, (3, 60, 64))):
        found = kernel.prove((3, 60, 64), result)
        assert set(verdicts(found).values()) == {"proved"}, str(found)


def test_a_carried_region_that_is_constant_needs_no_instruction():
    x, out = np.ones((64, 192), np.float32), np.zeros((64, 1), np.float32)
    online_sum[8](x, out)
    assert "set_validshape" not in online_sum.ir.split("scf.for")[1]
    assert "get_validshape" not in online_sum.ir
