"""Times of launches: published measurements, and small programs whose times are counted by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pto
from examples.timing.published import gemms
from pto import isa
from pto.core.errors import PtoError
from pto.isa.cost.describe import FIXED, REGISTERS, RUN
from pto.isa.meaning.kinds import Do
from pto.isa.table import rows
from pto.observe import timing
from pto.observe.timing.stream import RecordStream, Track
from pto.observe.timing.trace import chrome
from pto.target import costs_a2a3, costs_a5


def test_one_accumulator_makes_the_matrix_unit_wait_for_the_store():
    found = next(p for p in gemms() if p.name == "GEMM 3072").time()
    waits = {(w.pipe, w.behind.name): w for w in found.waits}
    wait = waits["M", "pto.tstore"]
    assert wait.saves_us > 1
    assert (
        f"gemm.py:94 tmatmul (M) waited {wait.us:.1f} us in {wait.times} waits for the store of"
        f" line 106; if that store were free, the kernel would be {wait.saves_us:.1f} us faster"
    ) in str(found)


def test_no_two_lines_of_a_report_are_about_the_same_lines():
    """The loads and extracts of this kernel are unrolled: many operations of one line."""
    found = next(p for p in gemms() if p.name == "GEMM 1536").time()
    sites = [(w.op.name, w.op.loc.line, w.behind.name, w.behind.loc.line) for w in found.waits]  # pyright: ignore[reportOptionalMemberAccess]
    assert len(sites) == len(set(sites)) == 3
    assert len({id(job.op) for job in found.stream.jobs if job.op.name == "pto.textract"}) > 2


@pto.kernel(profile="a2a3")
def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(64, 128, pto.f32, address=0)
    isa.tload(t, x)
    isa.set_flag("MTE2", "MTE3", 0)
    isa.wait_flag("MTE2", "MTE3", 0)
    isa.tstore(y, t)


def test_a_copy_by_hand():
    found = copy.time((64, 128), (64, 128), device="910b1")
    chip, nbytes = costs_a2a3.CHIP, 64 * 128 * 4
    load = nbytes / 64 + 440 * (1 + 0.6 * 0)  # 32 KB not in the cache, and the latency of memory
    store = nbytes / 27
    whole = chip.issue + load + chip.flag + store
    assert found.core_us == pytest.approx(whole / 1850 + chip.launches["vector"].cold_us, rel=0.03)
    assert found.us == pytest.approx(found.core_us + chip.launches["vector"].us)
    assert found.hbm_bytes == pytest.approx(nbytes, rel=1e-3)  # what is stored stays in the cache
    assert [w.pipe for w in found.waits] == ["MTE3"]


def test_a_launch_without_blocks_is_refused():
    with pytest.raises(PtoError, match="PTO-U039"):
        copy.time((64, 128), (64, 128), blocks=0)


def test_two_runs_beside_each_other():
    one, other = (copy.time((64, 128), (64, 128), device=d) for d in ("910b1", "910b4"))
    other.busy = {"cube": {"M": 0.5}}
    head, *rows = one.compare(other).splitlines()
    assert head.split() == ["copy", "910b1", "copy", "910b4"]
    shown = {row[:14].strip(): row[14:].split() for row in rows}
    assert shown["time us"][:2] == [f"{one.us:.1f}", f"{other.us:.1f}"]
    assert shown["cube M %"] == ["0.0", "50.0", "-"]
    assert shown["vector MTE2 %"][1] == "0.0"


def test_one_tile_is_not_to_be_cut_in_half():
    assert not copy.time((64, 128), (64, 128)).remedies


def test_blocks_beyond_the_cores_take_turns():
    one = copy.time((64, 128), (64, 128), blocks=48, device="910b1")
    two = copy.time((64, 128), (64, 128), blocks=49, device="910b1")
    four = copy.time((64, 128), (64, 128), blocks=48 * 8, device="910b1")
    assert one.cores == two.cores == 48  # code without a matrix unit
    assert one.core_us < two.core_us < four.core_us


@pto.kernel(profile="a2a3")
def barriers(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    tiles = [pto.tile(64, 128, pto.f32, address=n * 32768) for n in (0, 1)]
    for i in pto.range(0, 1024, 128):
        for n, t in enumerate(tiles):
            row = i + n * 64
            isa.tload(t, x[row : row + 64, :])
            isa.barrier("ALL")
            isa.tstore(y[row : row + 64, :], t)
            isa.barrier("ALL")


def test_flags_instead_of_barriers_are_tried():
    found = barriers.time((1024, 128), (1024, 128))
    (remedy,) = [each for each in found.remedies if each.change.startswith("flags")]
    assert 0.05 * found.us < remedy.saves_us < found.us
    assert str(remedy) in str(found)
    assert not copy.time((64, 128), (64, 128)).remedies  # it has flags


def test_arrays_stay_as_they_are():
    x, y = np.ones((64, 128), np.float32), np.zeros((64, 128), np.float32)
    copy.time(x, y)
    copy.time(x, y, data=True)
    assert not y.any()


@pto.kernel(profile="a2a3")
def by_data(x: pto.Global[pto.i32], y: pto.Global[pto.i32]) -> None:
    n = isa.load_scalar(x, 0)
    t = pto.tile(8, 64, pto.i32)
    for _ in pto.range(0, n):
        isa.tload(t, y)


def test_what_data_decides_needs_data():
    x, y = np.full(8, 3, np.int32), np.zeros((8, 64), np.int32)
    with pytest.raises(PtoError, match=r"PTO-C010.*uses only the shapes"):
        by_data.time(x, y)
    jobs = by_data.time(x, y, data=True).stream.jobs
    assert [job.op.name for job in jobs] == ["pto.load_scalar", *["pto.tload"] * 3]


@pto.kernel(profile="a2a3")
def one_row(x: pto.Global[pto.f32], y: pto.Global[pto.f32], branches: bool) -> None:
    """The mean of a single row is a number of the program."""
    t = pto.load(x, 1, 128)
    if branches and isa.tgetval(t, 0) > 0.0:
        t = t * 2.0
    pto.store(y, t - t.mean(axis=1))


def test_a_number_that_only_data_receives_needs_no_data():
    x, y = np.ones((1, 128), np.float32), np.zeros((1, 128), np.float32)
    dry, real = (one_row.time(x, y, False, data=data) for data in (False, True))
    assert "pto.tgetval" in [job.op.name for job in dry.stream.jobs]
    assert dry.core_us == real.core_us
    with pytest.raises(PtoError, match=r"PTO-C010.*uses only the shapes"):
        one_row.time(x, y, True)


@pto.kernel(profile="a2a3")
def counts(x: pto.Global[pto.i32], step: int) -> None:
    for i in pto.range(0, 64):
        isa.store_scalar(x, i * step, 7)


def test_the_scalar_unit_takes_its_time_and_has_a_cache():
    """64 words in 4 lines of its data cache, or in a line each; cycles of `element`."""
    x = np.zeros(64 * 16, np.int32)
    near, far = (counts.time(x, step) for step in (1, 16))
    assert near.core_us * near.mhz == pytest.approx(4 * 350 + 60 * 20, rel=0.2)
    assert far.core_us * far.mhz == pytest.approx(64 * 350, rel=0.2)
    assert far.bound == "vector S"
    assert not x.any()


@pto.kernel(profile="a2a3")
def ramp(y: pto.Global[pto.i32], n: int) -> None:
    t = pto.tile(1, n, pto.i32, address=0)
    isa.tci(t, 0)
    isa.set_flag("S", "MTE3", 0)
    isa.wait_flag("S", "MTE3", 0)
    isa.tstore(y, t)


def test_a_tile_instruction_that_is_a_scalar_loop_takes_the_time_of_its_elements():
    """20 cycles an element in UB, at 1850 MHz."""
    short, long = (ramp.time((1, n), n, device="910b1") for n in (64, 512))
    assert long.us - short.us == pytest.approx(448 * 20 / 1850, rel=0.05)
    assert long.busy["vector"]["S"] > long.busy["vector"].get("V", 0.0)


def test_every_executable_row_has_a_cost_on_every_chip():
    priced = {*FIXED, *RUN, *REGISTERS, "move", "img2col", "element"}
    for row in rows():
        assert row.cost or not isinstance(row.body, Do), row.name
        if row.cost and row.cost not in priced and row.family.section != "simt":
            for costs in (costs_a2a3.COSTS, costs_a5.COSTS):
                known = row.cost in costs.classes or row.cost in costs.lanes
                assert known or row.cost.endswith("_fold"), row.name


def test_the_timeline_opens_in_perfetto():
    events = json.loads(json.dumps(chrome(copy.time((64, 128), (64, 128)))))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in slices] == ["tload", "tstore"]
    assert all(e["dur"] > 0 and {"pid", "tid", "ts"} <= e.keys() for e in slices)
    starts, ends = ([e for e in events if e["ph"] == kind] for kind in "sf")
    assert [e["id"] for e in starts] == [e["id"] for e in ends] != []


def test_a_profile_that_is_no_chip():
    module = copy.module(np.zeros((64, 128), np.float32), np.zeros((64, 128), np.float32))
    with pytest.raises(PtoError, match="PTO-C002"):
        timing.time(module, args=[np.zeros((64, 128), np.float32)] * 2, profile="cpu")


STREAM = """
module attributes {pto.target_arch = "a5"} {
  func.func @k(%out: !pto.ptr<ui32>) {
    %zero = arith.constant 0 : i64
    %end = arith.constant 0 : i32
    %ub = pto.castptr %zero : i64 -> !pto.ptr<ui32, ub>
    pto.vecscope {
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %begin = pto.init_align : !pto.align
      %state, %next = pto.pstu %begin, %all, %ub : !pto.align, !pto.mask<b32>, !pto.ptr<ui32, ub> -> !pto.align, !pto.ptr<ui32, ub>
      pto.vstas %state, %next, %end : !pto.align, !pto.ptr<ui32, ub>, i32
    }
    return
  }
}
"""  # noqa: E501


def test_an_address_that_comes_out_of_a_stream_is_followed_in_every_block():
    """Blocks that were only asked for addresses did not run the registers which give them."""
    found = timing.time(pto.parse(STREAM), args=[np.zeros(16, np.uint32)], blocks=2)
    assert found.us > 0


@pytest.mark.parametrize(
    ("pipes", "side"),
    [("S", "vector"), ("MTE2 V MTE3", "vector"), ("MTE2 MTE1 M FIX", "cube"), ("M V", "core")],
)
def test_pipes_of_code_without_sides_tell_which_unit_it_is(pipes: str, side: str):
    stream = RecordStream(sides=["both", "vector"])
    stream.pipes = [Track(0, name) for name in pipes.split()] + [Track(1, "M")]
    assert [stream.side(agent) for agent in (0, 1)] == [side, "vector"]
