"""Functions that wait, in compiled code: the same bits, waits and mistakes as the reference."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import numpy as np
import pytest

import pto
from examples.flash_attention import ROWS, SLOT, SLOTS, flash_attention
from pto.core.errors import PtoError
from pto.run.jit.emit.order import queue
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.coroutine import Coroutine, CoroutineGroup
from pto.run.launch.call import prepare
from pto.target.profile import choose

QUEUE = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @cube(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %buf = pto.import_reserved_buffer {{name = "slots", peer_func = @vector}} -> i32
    %none = arith.constant 0 : i32
    pto.aic_initialize_pipe {{id = 0, dir_mask = 1, slot_size = 1024}}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %none : i32)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {pushes} : index
    %t = pto.alloc_tile : !pto.tile_buf<acc, 16x16xf32>
    scf.for %i = %c0 to %n step %c1 {{
      pto.tpush_to_aiv(%t : !pto.tile_buf<acc, 16x16xf32>) {{split = {split}}}
    }}
    return
  }}
  func.func @vector(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %buf = pto.reserve_buffer {{name = "slots", size = 8192,
      location = #pto.address_space<vec>, auto = true}} -> i32
    %none = arith.constant 0 : i32
    pto.aiv_initialize_pipe {{id = 0, dir_mask = 1, slot_size = 1024}}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %none : i32)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {pops} : index
    scf.for %i = %c0 to %n step %c1 {{
      %t = pto.tpop_from_aic {{split = {split}}} -> !pto.tile_buf<vec, {rows}x16xf32>
      pto.tfree_from_aic {{split = {split}}}
    }}
    return
  }}
}}
"""


def told(engine: str, pushes: int, pops: int, split: int = 1) -> str:
    """What the program says of itself, with all its notes."""
    text = QUEUE.format(pushes=pushes, pops=pops, split=split, rows=8 if split else 16)
    x = np.zeros(64, np.float32)
    try:
        pto.launch(pto.parse(text), args=[x, x.copy()], engine=engine, blocks=3)
    except PtoError as error:
        return str(error.diagnostics)
    return ""


# eight slots, given back four at a time
@pytest.mark.parametrize(
    ("pushes", "pops", "ends"),
    [(3, 3, True), (40, 40, True), (8, 1, True), (9, 2, False), (12, 4, True), (2, 5, False)],
)
def test_deadlocks_are_told_alike(pushes: int, pops: int, ends: bool) -> None:
    ours, theirs = (told(engine, pushes, pops) for engine in ("jit", "reference"))
    assert ours == theirs
    assert ends == ("deadlock" not in ours)


@pytest.mark.parametrize("profile", ["a5", "a2a3"])
@pytest.mark.parametrize("length", [64, 128, 320])
def test_attention_through_queues_has_the_same_bits(profile: str, length: int) -> None:
    rng = np.random.default_rng(length)
    q, k, v = rng.standard_normal((3, length, 64)).astype(np.float16)
    kt, blocks = np.ascontiguousarray(k.T), length // ROWS
    room = np.zeros(blocks * 2 * SLOTS * SLOT // 4, np.float32)
    found: list[Any] = []
    for engine in ("jit", "reference"):
        o = np.zeros((length, 64), np.float32)
        run = flash_attention.on(profile)[blocks]
        run(q, kt, v, o, room.copy(), profile == "a2a3", engine=engine)
        found.append(o)
    assert np.array_equal(found[0].view(np.uint32), found[1].view(np.uint32))


def test_nothing_of_a_queue_in_local_buffers_is_left_to_python() -> None:
    q = np.zeros((64, 64), np.float16)
    o, room = np.zeros((64, 64), np.float32), np.zeros(1, np.float32)
    module = flash_attention.module(q, q, q, o, room, False)
    kernel = prepare(module, None, choose(profile_name="a5").profile, engine="jit")
    assert all(isinstance(code, Coroutine) for _, code in kernel._sides)
    assert not kernel.left_out


def test_a_failure_in_a_block_of_agents_ends_the_launch() -> None:
    """The second block finds no rows; what the first wrote stays."""
    q, kt = np.ones((32, 64), np.float16), np.ones((64, 64), np.float16)
    said: list[str] = []
    for engine in ("jit", "reference"):
        o, room = np.zeros((64, 64), np.float32), np.zeros(1, np.float32)
        with pytest.raises(PtoError) as error:
            flash_attention[2](q, kt, kt, o, room, False, engine=engine)
        said.append(str(error.value))
        assert o[:32].all() and not o[32:].any()
    assert said[0] == said[1]


def test_interrupted_work_can_be_done_again() -> None:
    q, kt = np.ones((64, 64), np.float16), np.ones((64, 1 << 14), np.float16)
    v, o = np.ones((1 << 14, 64), np.float16), np.zeros((64, 64), np.float32)
    room = np.zeros(1, np.float32)
    with pytest.raises(PtoError, match="PTO-D114"):
        flash_attention[2](q, kt, v, o, room, False, engine="jit", timeout=1e-9)
    flash_attention[2](q, kt, v, o, room, False, engine="jit", timeout=60)
    assert np.allclose(o, 1)


@pytest.mark.parametrize(("split", "given"), [(0, ""), (1, ""), (1, "(%n, %n)")])
def test_a_region_that_the_pusher_tells(split: int, given: str) -> None:
    """12 x 10 of 16 x 16 are pushed, whole or in halves."""
    rows = 16 // (1 + split)
    tile = f"!pto.tile_buf<vec, {rows}x16xf32, valid=?x?>"
    text = QUEUE.format(pushes=2, pops=2, split=split, rows=rows)
    text = text.replace("acc, 16x16xf32>", "acc, 16x16xf32, valid=12x10>")
    text = re.sub(
        r"%t = pto.tpop_from_aic .*",
        f"""%t = pto.tpop_from_aic{given} {{{{split = {split}}}}} -> {tile}
      %r, %c = pto.get_validshape %t : {tile}
      %rows = arith.index_cast %r : index to i32
      %cols = arith.index_cast %c : index to i32
      pto.store_scalar %rows, %seen[%c0] : !pto.ptr<i32, gm>, i32
      pto.store_scalar %cols, %seen[%c1] : !pto.ptr<i32, gm>, i32""".replace("{{", "{").replace(
            "}}", "}"
        ),
        text,
    )
    text = text.replace("%y: !pto.ptr<f32>)", "%y: !pto.ptr<f32>, %seen: !pto.ptr<i32>)")
    wanted = [2, 2] if given else [12 // (1 + split), 10]
    for engine in ("jit", "reference"):
        x, seen = np.zeros(64, np.float32), np.zeros(2, np.int32)
        report = pto.launch(pto.parse(text), args=[x, x.copy(), seen], engine=engine)
        assert seen.tolist() == wanted
        assert not report.left_out, dict(report.left_out)


HALVES = """
!view = !pto.tensor_view<?x?xf32>
!part = !pto.partition_tensor_view<16x16xf32>
!mat = !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf32, blayout=col_major, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf32, blayout=row_major, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!half = !pto.tile_buf<vec, 8x16xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @cube(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %out: !pto.ptr<f32>)
      attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
    %buf = pto.import_reserved_buffer {name = "slots", peer_func = @vector} -> i32
    %none = arith.constant 0 : i32
    pto.aic_initialize_pipe {id = 0, dir_mask = 1, slot_size = 1024}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %none : i32)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %va = pto.make_tensor_view %a, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %vb = pto.make_tensor_view %b, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !part
    %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !part
    %ma = pto.alloc_tile : !mat
    %mb = pto.alloc_tile : !mat
    %l = pto.alloc_tile : !left
    %r = pto.alloc_tile : !right
    %acc = pto.alloc_tile : !acc
    pto.tload ins(%pa : !part) outs(%ma : !mat)
    pto.tload ins(%pb : !part) outs(%mb : !mat)
    pto.tmov ins(%ma : !mat) outs(%l : !left)
    pto.tmov ins(%mb : !mat) outs(%r : !right)
    pto.tmatmul ins(%l, %r : !left, !right) outs(%acc : !acc)
    pto.tpush_to_aiv(%acc : !acc) {split = 1}
    return
  }
  func.func @vector(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %out: !pto.ptr<f32>)
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %buf = pto.reserve_buffer {name = "slots", size = 8192,
      location = #pto.address_space<vec>, auto = true} -> i32
    %none = arith.constant 0 : i32
    pto.aiv_initialize_pipe {id = 0, dir_mask = 1, slot_size = 1024}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %none : i32)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %sub = pto.get_subblock_idx
    %n = arith.index_cast %sub : i64 to index
    %row = arith.muli %n, %c8 : index
    %vo = pto.make_tensor_view %out, shape = [%c16, %c16], strides = [%c16, %c1] : !view
    %po = pto.partition_view %vo, offsets = [%row, %c0], sizes = [%c8, %c16]
      : !view -> !pto.partition_tensor_view<8x16xf32>
    %t = pto.tpop_from_aic {split = 1} -> !half
    pto.tstore ins(%t : !half) outs(%po : !pto.partition_tensor_view<8x16xf32>)
    pto.tfree_from_aic {split = 1}
    return
  }
}
"""


def test_a_half_may_begin_inside_a_box() -> None:
    """Boxes of an accumulator have 16 rows: the second vector gets the lower 8 of one."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(-8, 8, (2, 16, 16)).astype(np.float32)
    for engine in ("jit", "reference"):
        out = np.zeros((16, 16), np.float32)
        report = pto.launch(pto.parse(HALVES), args=[a.copy(), b.copy(), out], engine=engine)
        np.testing.assert_array_equal(out, a @ b)  # small integers: exact in any order
        assert not report.left_out, dict(report.left_out)


def entries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks in which Python has let coroutines go on."""
    seen: list[int] = []
    go_on = CoroutineGroup.go_on

    def noted(crowd: CoroutineGroup, blocks: Any) -> None:
        seen.append(crowd._cluster.block)
        go_on(crowd, blocks)

    monkeypatch.setattr(CoroutineGroup, "go_on", noted)
    return seen


def test_agents_go_on_with_the_next_block_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block opens the queue, which Python does; all others run in compiled code."""
    rng, seen, told = np.random.default_rng(1), entries(monkeypatch), list[tuple[int, int]]()
    q, k, v = rng.standard_normal((3, 256, 64)).astype(np.float16)
    kt, room = np.ascontiguousarray(k.T), np.zeros(1, np.float32)
    ours, theirs = np.zeros((2, 256, 64), np.float32)
    launch = flash_attention[8]
    launch(q, kt, v, ours, room, False, engine="jit", progress=lambda *done: told.append(done))
    assert seen == [0, 1]
    assert told[0] == (1, 8) and told[-1] == (8, 8) and told == sorted(told)
    launch(q, kt, v, theirs, room, False, engine="reference")
    assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))


# Of the vectors, each block says how often it pops, and that it has been there.
DIFFERENT = QUEUE.format(pushes=3, pops=3, split=1, rows=8).replace(
    "%n = arith.constant 3 : index\n    scf.for %i", "{count}\n    scf.for %i"
)
COUNT = """
    %b = pto.get_block_idx
    %which = arith.constant {which} : i64
    %is = arith.cmpi eq, %b, %which : i64
    %more = arith.constant {pops} : index
    %usual = arith.constant 3 : index
    %n = arith.select %is, %more, %usual : index
    %k = arith.index_cast %b : i64 to index
    %one = arith.constant 1.0 : f32
    {work}
    pto.store_scalar %one, %y[%k] : !pto.ptr<f32>, f32
"""
PRINT = """
    scf.if %is {
      pto.print ins("block %d", %b : i64)
    }
"""
FLAG = """
    scf.if %is {
      pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    } else {
      pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    }
"""


@pytest.mark.parametrize(
    ("pops", "size", "work", "says"),
    [
        (3, 8, "", ""),
        (1, 8, "", ""),  # what it leaves in its queue is nobody's
        (4, 8, "", "deadlock"),
        (3, 6, "", "PTO-M"),  # block 6 stores behind the end
        (3, 8, PRINT, ""),
        (3, 8, FLAG, "PTO-D"),  # flags of the blocks before it are gone
    ],
)
def test_a_block_may_differ_from_the_others(pops: int, size: int, work: str, says: str) -> None:
    text = DIFFERENT.replace("{count}", COUNT.format(which=2, pops=pops, work=work))
    found: list[Any] = []
    for engine in ("jit", "reference"):
        x, y = np.zeros(64, np.float32), np.zeros(size, np.float32)
        try:
            report = pto.launch(pto.parse(text), args=[x, y], engine=engine, blocks=8)
            found.append(("", tuple(report.printed), y.tolist()))
        except PtoError as error:
            found.append((str(error.diagnostics), (), y.tolist()))
    assert found[0] == found[1]
    assert says in found[0][0] and bool(says) == bool(found[0][0])
    assert found[0][1] == (("block 2",) * 2 if work is PRINT else ())


def attention(q: Any, o: Any, **options: Any) -> None:
    blocks, room = len(q) // ROWS, np.zeros(1, np.float32)
    flash_attention[blocks](q, np.ascontiguousarray(q.T), q, o, room, False, **options)


def test_agents_are_kept_for_later_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues are open then: even the first block runs in compiled code alone."""
    rng, launches = np.random.default_rng(2), list[list[int]]()
    q = rng.standard_normal((128, 64)).astype(np.float16)
    for _ in range(3):
        with monkeypatch.context() as patched:
            launches.append(entries(patched))
            ours, theirs = np.zeros((2, 128, 64), np.float32)
            attention(q, ours, engine="jit")
        attention(q, theirs, engine="reference")
        assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))
        q = q[::-1].copy()
    assert launches[1:] == [[0], [0]]


def test_agents_that_are_kept_keep_no_arrays() -> None:
    q, o = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
    attention(q, o, engine="jit")
    assert np.allclose(o, 1)
    seen = weakref.ref(q), weakref.ref(o)
    del q, o
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_a_launch_after_one_that_failed_begins_anew() -> None:
    text = DIFFERENT.replace("{count}", COUNT.format(which=2, pops=4, work=""))
    module, x = pto.parse(text), np.zeros(64, np.float32)
    for _ in range(2):
        y = np.zeros(8, np.float32)
        pto.launch(module, args=[x, y], engine="jit", blocks=2)
        assert y.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
        with pytest.raises(PtoError, match="deadlock"):
            pto.launch(module, args=[x, y], engine="jit", blocks=3)


@pytest.mark.parametrize("pushes", ["compiled", "by Python from block 2 on"])
@pytest.mark.parametrize("apart", [0, 4096])
def test_a_queue_in_global_memory_has_slots_in_every_block(
    apart: int, pushes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code opens it again. Where its ends name different places the first one counts."""
    rng, seen = np.random.default_rng(3), entries(monkeypatch)
    q = rng.standard_normal((128, 64)).astype(np.float16)
    size = 2 * SLOTS * SLOT // 4  # of a block, in elements
    given = q, np.ascontiguousarray(q.T), q
    room = np.zeros(4 * size + 3 * apart, np.float32)
    o = np.zeros((128, 64), np.float32)
    text = pto.print_module(flash_attention.on("a2a3").module(*given, o, room, True))
    head, cube, vector = text.split("func.func")
    text = "func.func".join([head, cube, vector.replace(f" {size} :", f" {size + apart} :")])
    if pushes == "by Python from block 2 on":
        into = queue._into_global

        def early(s: Any, *more: Any) -> Any:
            fits, put = into(s, *more)
            block = s.x.load("i64", s.x.at("%ctx", Word.BLOCK.offset), 8)
            return lambda number: fits(number) & s.x.compare("slt", block, 2), put

        monkeypatch.setattr(queue, "_into_global", early)
    found: list[Any] = []
    for engine in ("jit", "reference"):
        o, room = np.zeros_like(o), np.zeros_like(room)
        pto.launch(pto.parse(text), args=[*given, o, room], engine=engine, blocks=4)
        found.append((o.tobytes(), room.tobytes()))
    assert found[0] == found[1] and np.any(o)
    assert seen[:2] == [0, 1] and (len(seen) == 2) == (pushes == "compiled")
