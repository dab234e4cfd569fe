"""Communication between ranks in compiled code: no data moves by Python, no wait asks it."""

# ruff: noqa: E501  (lines of programs)
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from tests.known.test_collective import POINTERS, numbers, program, signal_program
from tests.run.jit.both import agree, fails_alike

GROUP = "%one: !pto.ptr<{0}>, %a: !pto.ptr<{0}>, %b: !pto.ptr<{0}>, %c: !pto.ptr<{0}>"
MEMBERS = "group(%v_a, %v_b, %v_c)"
TYPES = "!view, !tile, !view, !view, !view"


def data(seed: int, element: str = "f32") -> Any:
    kind = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "f16": np.float16}
    found = np.random.default_rng(seed).normal(size=(16, 32)) * 100
    return found.astype(kind[element])


@pytest.mark.parametrize("element", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("atomic", ["none", "add"])
def test_a_put_is_compiled(atomic: str, element: str) -> None:
    body = f"pto.comm.tput(%v_dst, %v_src, buf(%t) : !view, !view, !tile) {{atomicType = #pto<atomic_type atomic_{atomic}>}}"
    module = program(POINTERS.replace("f32", element), body, element=element)
    agree(module, [data(1, element), data(2, element)])


@pytest.mark.parametrize("shift", [0, 1, 40])
@pytest.mark.parametrize("atomic", ["none", "add"])
def test_sides_that_overlap_are_read_first(atomic: str, shift: int) -> None:
    """Views of one array that begin `shift` elements apart."""
    text = f"""
    !tile = !pto.tile_buf<vec, 4x8xf32>
    !view = !pto.tensor_view<4x8xf32>
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%a: !pto.ptr<f32>) {{
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %shift = arith.constant {shift} : index
        %b = pto.addptr %a, %shift : !pto.ptr<f32> -> !pto.ptr<f32>
        %x = pto.make_tensor_view %a, shape = [%c4, %c8], strides = [%c8, %c1] : !view
        %y = pto.make_tensor_view %b, shape = [%c4, %c8], strides = [%c8, %c1] : !view
        %t = pto.alloc_tile : !tile
        pto.comm.tput(%y, %x, buf(%t) : !view, !view, !tile) {{atomicType = #pto<atomic_type atomic_{atomic}>}}
        return
      }}
    }}
    """
    agree(text, [np.arange(100, dtype=np.float32)])


@pytest.mark.parametrize("strides", ["%c8, %c1", "%c1, %c4", "%c16, %c2", "%c0, %c1"])
def test_views_of_any_strides(strides: str) -> None:
    text = f"""
    !tile = !pto.tile_buf<vec, 4x8xf32>
    !view = !pto.tensor_view<4x8xf32>
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %c16 = arith.constant 16 : index
        %x = pto.make_tensor_view %a, shape = [%c4, %c8], strides = [{strides}] : !view
        %y = pto.make_tensor_view %b, shape = [%c4, %c8], strides = [%c16, %c2] : !view
        %t = pto.alloc_tile : !tile
        pto.comm.tget(%y, %x, buf(%t) : !view, !view, !tile)
        return
      }}
    }}
    """
    agree(text, [np.arange(100, dtype=np.float32), np.zeros(100, np.float32)])


@pytest.mark.parametrize("element", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("how", ["sum", "max", "min"])
def test_a_reduction_is_compiled(how: str, element: str) -> None:
    body = f"pto.comm.treduce(%v_one, %u, recv(%t), {MEMBERS} : !view, !tile, !tile, !view, !view, !view) {{reduceOp = #pto<reduce_op {how}>, root = 1 : i32}}"
    module = program(GROUP.format(element), body, element=element)
    agree(module, [np.zeros_like(data(0, element)), *(data(n, element) for n in (1, 2, 3))])


def test_a_broadcast_is_compiled() -> None:
    body = f"pto.comm.tbroadcast(%v_one, recv(%t), {MEMBERS} : {TYPES}) {{root = 1 : i32}}"
    given = [data(n) for n in range(4)]
    found = agree(program(GROUP.format("f32"), body), given)
    assert all((member == given[0]).all() for member in found)


@pytest.mark.parametrize("op", ["tgather", "tscatter"])
def test_parts_of_a_whole_are_compiled(op: str) -> None:
    body = f"""
    %high = arith.constant 56 : index
    %whole = pto.make_tensor_view %one, shape = [%high, %cols], strides = [%cols, %c1] : !pto.tensor_view<56x32xf32>
    %all = pto.partition_view %whole, offsets = [%c0, %c0], sizes = [%high, %cols] : !pto.tensor_view<56x32xf32> -> !pto.partition_tensor_view<56x32xf32>
    pto.comm.{op}(%all, recv(%t), {MEMBERS} : !pto.partition_tensor_view<56x32xf32>, !tile, !view, !view, !view) {{root = 0 : i32}}
    """
    whole = np.arange(56 * 32, dtype=np.float32).reshape(56, 32)
    agree(program(GROUP.format("f32"), body), [whole, *(data(n) for n in (1, 2, 3))])


def test_what_is_wrong_the_reference_says() -> None:
    body = "pto.comm.tput(%v_dst, %v_src, buf(%t) : !view, !view, !tile) {atomicType = #pto<atomic_type atomic_none>}"
    short = [np.zeros(31, np.float32), numbers(0)]
    assert fails_alike(program(POINTERS, body), short) == "PTO-M001"
    odd = "pto.comm.tnotify(%odd, %n : !word, i32) {notifyOp = #pto<notify_op set>}"
    at = """
    %raw = pto.castptr %near : !pto.ptr<i32> -> !pto.ptr<i8>
    %next = pto.addptr %raw, %c1 : !pto.ptr<i8> -> !pto.ptr<i8>
    %back = pto.castptr %next : !pto.ptr<i8> -> !pto.ptr<i32>
    %wo = pto.make_tensor_view %back, shape = [%c1], strides = [%c1] : !pto.tensor_view<1xi32>
    %odd = pto.partition_view %wo, offsets = [%c0], sizes = [%c1] : !pto.tensor_view<1xi32> -> !word
    """
    words = np.zeros(4, np.int32)
    assert fails_alike(signal_program(at + odd, 1), [words, words, 1, words]) == "PTO-M193"


RING = """
    pto.comm.tnotify(%theirs, %n : !word, i32) {notifyOp = #pto<notify_op atomic_add>}
    pto.comm.twait(%mine, %n : !word, i32) {cmp = #pto<wait_cmp ge>}
    pto.store_scalar %n, %out[%c0] : !pto.ptr<i32>, i32
"""


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.usefixtures("python_is_silent")
def test_ranks_in_a_ring_wait_without_python(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_ENGINE", engine)
    world = pto.World(3, "a5")
    words, out = world.symmetric(1, "i32"), [np.zeros(1, np.int32) for _ in range(3)]
    args = [[words[r], words[(r + 1) % 3], 5, out[r]] for r in range(3)]
    world.launch(signal_program(RING, size=1), args=args)
    world.synchronize()
    assert [int(o[0]) for o in out] == [5, 5, 5]


def test_who_waits_in_vain_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    for engine in ("reference", "jit"):
        monkeypatch.setenv("PTO_ENGINE", engine)
        world = pto.World(2, "a5")
        words, out = world.symmetric(4, "i32"), [np.zeros(1, np.int32) for _ in range(2)]
        wait = "pto.comm.twait(%mine, %n : !word, i32) {cmp = #pto<wait_cmp gt>}"
        world.launch(signal_program(wait), args=[[words[r], words[r], 1, out[r]] for r in range(2)])
        with pytest.raises(PtoError) as caught:
            world.synchronize()
        said.append(
            [(d.code, d.message, [n.message for n in d.notes]) for d in caught.value.diagnostics]
        )
    assert said[0] == said[1]
    assert "a signal > 1" in said[0][0][2][0]


def test_another_rank_may_not_call_what_the_root_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"pto.comm.tbroadcast(%v_one, recv(%t), {MEMBERS} : {TYPES}) {{root = 1 : i32}}"
    module = program(GROUP.format("f32"), body)
    for engine in ("reference", "jit"):
        monkeypatch.setenv("PTO_ENGINE", engine)
        world = pto.World(3, "a5")
        boxes = world.symmetric((16, 32), "f32")
        for rank in (1, 0):  # the root, then another
            world[rank].stream().launch(module, numbers(7), *boxes)
            if rank:
                world.synchronize()
        assert all((box == numbers(7)).all() for box in boxes)
        with pytest.raises(PtoError) as caught:
            world.synchronize()
        assert caught.value.code == "PTO-D196"


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_sums_are_told_where_ranks_run_elsewhere(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of a cluster has to hear what is added to memory that others add to too."""
    monkeypatch.setenv("PTO_ENGINE", engine)
    world = pto.World(2, "a5")
    world.added = []
    words, total = world.symmetric(1, "i32"), np.zeros((16, 32), np.float32)
    notify = "pto.comm.tnotify(%mine, %n : !word, i32) {notifyOp = #pto<notify_op atomic_add>}"
    put = "pto.comm.tput(%v_dst, %v_src, buf(%t) : !view, !view, !tile) {atomicType = #pto<atomic_type atomic_add>}"
    world.launch(signal_program(notify, 1), args=[[w, w, 3, w] for w in words])
    world.launch(program(POINTERS, put), args=[[total, numbers(r)] for r in range(2)])
    world.synchronize()
    assert (total == numbers(0) + numbers(1)).all() and [int(w[0]) for w in words] == [3, 3]
    assert sorted(values.size for _, values in world.added) == [1, 1, 512, 512]
