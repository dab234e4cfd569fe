"""Communication between ranks: transfers, signals, collectives; answers from NumPy."""

# ruff: noqa: E501  (lines of programs)
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch


def program(params: str, body: str, *, element: str = "f32", rows: int = 16, cols: int = 32) -> Any:
    """%name pointers become views %v_name of rows x cols; %t is a staging tile of 8 x cols."""
    names = [p.split(":")[0].strip() for p in params.split(",") if "ptr" in p]
    lines = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    lines += [f"%rows = arith.constant {rows} : index", f"%cols = arith.constant {cols} : index"]
    for name in names:
        word = name.lstrip("%")
        lines.append(
            f"%w_{word} = pto.make_tensor_view {name}, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<{rows}x{cols}x{element}>"
        )
        lines.append(
            f"%v_{word} = pto.partition_view %w_{word}, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<{rows}x{cols}x{element}> -> !view"
        )
    head = f"!view = !pto.partition_tensor_view<{rows}x{cols}x{element}>\n!tile = !pto.tile_buf<vec, 8x{cols}x{element}>\n"
    text = "\n".join(lines)
    return parse(
        f'{head}module attributes {{pto.target_arch = "a5"}} {{\nfunc.func @f({params}) {{\n{text}\n'
        f"%t = pto.alloc_tile : !tile\n%u = pto.alloc_tile : !tile\n%x = pto.alloc_tile : !tile\n{body}\nreturn\n}}\n}}"
    )


def numbers(rank: int, rows: int = 16, cols: int = 32) -> np.ndarray[Any, Any]:
    return (np.arange(rows * cols, dtype=np.float32) + 10_000 * rank).reshape(rows, cols)


def code_of(run: Any) -> str:
    with pytest.raises(PtoError) as caught:
        run()
    return caught.value.code


# ---- point to point

PUT = "pto.comm.tput(%v_dst, %v_src, buf(%t) : !view, !view, !tile) {atomicType = #pto<atomic_type atomic_none>}"
ADD = "pto.comm.tput(%v_dst, %v_src, buf(%t, %u) : !view, !view, !tile, !tile) {atomicType = #pto<atomic_type atomic_add>}"
GET = "pto.comm.tget(%v_dst, %v_src, buf(%t) : !view, !view, !tile)"
POINTERS = "%dst: !pto.ptr<f32>, %src: !pto.ptr<f32>"


def test_every_rank_writes_to_its_neighbour() -> None:
    world = pto.World(4, "a5")
    inbox = world.symmetric((16, 32), "f32")
    mine = [numbers(rank) for rank in range(4)]
    world.launch(program(POINTERS, PUT), args=[[inbox[(r + 1) % 4], mine[r]] for r in range(4)])
    assert not inbox[0].any()  # the host submits; nothing has run yet
    world.synchronize()
    for rank in range(4):
        np.testing.assert_array_equal(inbox[(rank + 1) % 4], mine[rank])


def test_every_rank_reads_from_its_neighbour() -> None:
    world = pto.World(3, "a5")
    data = [numbers(rank) for rank in range(3)]
    out = [np.zeros_like(d) for d in data]
    world.launch(program(POINTERS, GET), args=[[out[r], data[(r + 1) % 3]] for r in range(3)])
    world.synchronize()
    for rank in range(3):
        np.testing.assert_array_equal(out[rank], data[(rank + 1) % 3])


def test_atomic_puts_of_all_ranks_add_up() -> None:
    world = pto.World(4, "a5")
    total = np.ones((16, 32), np.float32)
    world.launch(program(POINTERS, ADD), args=[[total, numbers(r)] for r in range(4)])
    world.synchronize()
    np.testing.assert_array_equal(total, 1 + sum(numbers(r) for r in range(4)))


def test_an_atomic_put_of_bf16_rounds_once() -> None:
    kind = ml_dtypes.bfloat16
    a, b = np.full((16, 32), 256, kind), np.full((16, 32), 1, kind)
    module = program("%dst: !pto.ptr<bf16>, %src: !pto.ptr<bf16>", ADD, element="bf16")
    launch(module, args=[a, b])
    assert (a == kind(256)).all()  # 257 is halfway between 256 and 258: to even


def test_a_transfer_moves_exactly_its_view() -> None:
    text = """
    !tile = !pto.tile_buf<vec, 4x8xf32>
    !view = !pto.partition_tensor_view<4x8xf32>
    module attributes {pto.target_arch = "a5"} {
      func.func @f(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) {
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %c16 = arith.constant 16 : index
        %wa = pto.make_tensor_view %a, shape = [%c8, %c16], strides = [%c16, %c1] : !pto.tensor_view<8x16xf32>
        %wb = pto.make_tensor_view %b, shape = [%c8, %c16], strides = [%c16, %c1] : !pto.tensor_view<8x16xf32>
        %pa = pto.partition_view %wa, offsets = [%c2, %c3], sizes = [%c4, %c8] : !pto.tensor_view<8x16xf32> -> !view
        %pb = pto.partition_view %wb, offsets = [%c1, %c8], sizes = [%c4, %c8] : !pto.tensor_view<8x16xf32> -> !view
        %t = pto.alloc_tile : !tile
        pto.comm.tput(%pb, %pa, buf(%t) : !view, !view, !tile) {atomicType = #pto<atomic_type atomic_none>}
        return
      }
    }
    """
    a, b = numbers(0, 8, 16), np.full((8, 16), -1, np.float32)
    launch(parse(text), args=[a, b])
    want = np.full((8, 16), -1, np.float32)
    want[1:5, 8:16] = a[2:6, 3:11]
    np.testing.assert_array_equal(b, want)


def test_a_staging_tile_of_fixed_size_must_divide_the_rows() -> None:
    module = program(POINTERS, PUT, rows=20)
    dst = np.zeros((20, 32), np.float32)
    assert code_of(lambda: launch(module, args=[dst, numbers(0, 20)])) == "PTO-S191"
    assert not dst.any()


def test_a_dynamic_staging_tile_may_leave_a_rest() -> None:
    open_tile = "!pto.tile_buf<vec, 8x32xf32, valid=?x?>"
    body = f"""
    %c8 = arith.constant 8 : index
    %d = pto.alloc_tile valid_row = %c8 valid_col = %cols : {open_tile}
    pto.comm.tput(%v_dst, %v_src, buf(%d) : !view, !view, {open_tile}) {{atomicType = #pto<atomic_type atomic_none>}}
    """
    dst = np.zeros((20, 32), np.float32)
    launch(program(POINTERS, body, rows=20), args=[dst, numbers(0, 20)])
    np.testing.assert_array_equal(dst, numbers(0, 20))


# ---- other ranks by address


def test_an_address_out_of_a_table_reaches_another_rank() -> None:
    """As kernels do it: base of the peer's window from a table, plus an offset."""
    body = """
    %at = arith.index_cast %peer : i32 to index
    %base = pto.load_scalar %table[%at] : !pto.ptr<i64> -> i64
    %off = arith.constant 64 : i64
    %number = arith.addi %base, %off : i64
    %p = pto.castptr %number : i64 -> !pto.ptr<f32>
    %c16 = arith.constant 16 : index
    pto.store_scalar %v, %p[%c0] : !pto.ptr<f32>, f32
    """
    text = f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%table: !pto.ptr<i64>, %peer: i32, %v: f32) {{
        %c0 = arith.constant 0 : index
        {body}
        return
      }}
    }}
    """
    world = pto.World(3, "a5")
    heap = world.symmetric(64, "f32")
    table = world.addresses(heap)
    assert np.unique(np.diff(table)).size == 1  # the same offset on every rank
    world.launch(text, args=[[table, (r + 1) % 3, 10.0 + r] for r in range(3)])
    world.synchronize()
    for rank in range(3):
        want = np.zeros(64, np.float32)
        want[16] = 10.0 + (rank - 1) % 3
        np.testing.assert_array_equal(heap[rank], want)


ASYNC = """
!flat = !pto.partition_tensor_view<512xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @f(%near: !pto.ptr<f32>, %far: !pto.ptr<f32>, %room: !pto.ptr<i8>, %peer: i32, %done: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 512 : index
    %wn = pto.make_tensor_view %near, shape = [%n], strides = [%c1] : !pto.tensor_view<512xf32>
    %wf = pto.make_tensor_view %far, shape = [%n], strides = [%c1] : !pto.tensor_view<512xf32>
    %vn = pto.partition_view %wn, offsets = [%c0], sizes = [%n] : !pto.tensor_view<512xf32> -> !flat
    %vf = pto.partition_view %wf, offsets = [%c0], sizes = [%n] : !pto.tensor_view<512xf32> -> !flat
    %scratch = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>
    %s = pto.comm.build_async_session(%scratch, %room : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>) -> !pto.async_session
    %e = pto.comm.OP_async(OPERANDS : !flat, !flat, !pto.async_sessionPEER) {engine = "ENGINE"} -> !pto.async_event
    %now = pto.comm.test_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
    %ok = pto.comm.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
    %both = arith.andi %now, %ok : i1
    %w = arith.extui %both : i1 to i32
    pto.store_scalar %w, %done[%c0] : !pto.ptr<i32>, i32
    return
  }
}
"""


def async_program(op: str, engine: str) -> str:
    order = "%vf, %vn" if op == "tput" else "%vn, %vf"
    peer = engine == "RDMA"
    text = ASYNC.replace("OPERANDS", f"{order}, %s" + (", %peer" if peer else ""))
    return text.replace("OP", op).replace("PEER", ", i32" if peer else "").replace("ENGINE", engine)


@pytest.mark.parametrize("op", ["tput", "tget"])
def test_an_asynchronous_transfer_is_complete_after_its_wait(op: str) -> None:
    world = pto.World(2, "a5")
    data = [np.arange(512, dtype=np.float32) + 1000 * r for r in range(2)]
    boxes = [np.zeros(512, np.float32) for _ in range(2)]
    done = [np.zeros(1, np.int32) for _ in range(2)]
    room = np.zeros(1024, np.int8)
    # put: near is mine, far the other's box; get: near is my box, far the other's data
    pairs = [(data[r], boxes[1 - r]) if op == "tput" else (boxes[r], data[1 - r]) for r in range(2)]
    world.launch(async_program(op, "SDMA"), args=[[*pairs[r], room, 0, done[r]] for r in range(2)])
    world.synchronize()
    assert [int(d[0]) for d in done] == [1, 1]
    for rank in range(2):
        np.testing.assert_array_equal(boxes[rank], data[1 - rank])


def test_a_peer_turns_an_address_of_the_own_heap_into_the_same_place_there() -> None:
    world = pto.World(3, "a5")
    boxes = world.symmetric(512, "f32")
    data = [np.arange(512, dtype=np.float32) + 1000 * r for r in range(3)]
    done, room = np.zeros(1, np.int32), np.zeros(1024, np.int8)
    args = [[data[r], boxes[r], room, (r + 1) % 3, done] for r in range(3)]
    world.launch(async_program("tput", "RDMA"), args=args)
    world.synchronize()
    for rank in range(3):
        np.testing.assert_array_equal(boxes[rank], data[(rank - 1) % 3])


@pytest.mark.parametrize(("peer", "heap"), [(1, False), (7, True)])
def test_a_place_that_no_peer_has_is_refused(peer: int, heap: bool) -> None:
    world = pto.World(2, "a5")
    boxes = world.symmetric(512, "f32") if heap else [np.zeros(512, np.float32) for _ in range(2)]
    data, done, room = np.zeros(512, np.float32), np.zeros(1, np.int32), np.zeros(1024, np.int8)
    stream = world[0].stream()
    stream.launch(async_program("tput", "RDMA"), args=[data, boxes[0], room, peer, done])
    assert code_of(world.synchronize) == "PTO-M195"


# ---- signals


def signal_program(body: str, size: int = 4) -> str:
    return f"""
    !word = !pto.partition_tensor_view<{size}xi32>
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%near: !pto.ptr<i32>, %far: !pto.ptr<i32>, %n: i32, %out: !pto.ptr<i32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %size = arith.constant {size} : index
        %wn = pto.make_tensor_view %near, shape = [%size], strides = [%c1] : !pto.tensor_view<{size}xi32>
        %wf = pto.make_tensor_view %far, shape = [%size], strides = [%c1] : !pto.tensor_view<{size}xi32>
        %mine = pto.partition_view %wn, offsets = [%c0], sizes = [%size] : !pto.tensor_view<{size}xi32> -> !word
        %theirs = pto.partition_view %wf, offsets = [%c0], sizes = [%size] : !pto.tensor_view<{size}xi32> -> !word
        {body}
        return
      }}
    }}
    """


@pytest.mark.parametrize(
    ("op", "before", "value", "after"),
    [
        ("set", 5, 7, 7),
        ("atomic_add", 5, 7, 12),
        ("atomic_add", 2**31 - 1, 1, -(2**31)),
        ("set", 0, -1, -1),
    ],
)
def test_a_notification_changes_the_first_word_alone(
    op: str, before: int, value: int, after: int
) -> None:
    body = f"pto.comm.tnotify(%mine, %n : !word, i32) {{notifyOp = #pto<notify_op {op}>}}"
    words = np.full(4, before, np.int32)
    launch(parse(signal_program(body)), args=[words, words, value, words])
    assert words.tolist() == [after, before, before, before]


@pytest.mark.parametrize(
    ("cmp", "met"),
    [
        ("eq", (0, 0)),
        ("ne", (1, 0)),
        ("gt", (1, 0)),
        ("ge", (1, 0)),
        ("lt", (0, 0)),
        ("le", (0, 1)),
    ],
)
def test_a_test_holds_when_every_word_compares(cmp: str, met: tuple[int, int]) -> None:
    """Words 5 6 7 8 against 4, and against 8; eq and lt hold for all words of neither."""
    body = f"""
    %r = pto.comm.ttest(%mine, %n : !word, i32) {{cmp = #pto<wait_cmp {cmp}>}} -> i1
    %w = arith.extui %r : i1 to i32
    pto.store_scalar %w, %out[%c0] : !pto.ptr<i32>, i32
    """
    words, out = np.array([5, 6, 7, 8], np.int32), np.zeros(1, np.int32)
    for value, want in zip((4, 8), met, strict=True):
        launch(parse(signal_program(body)), args=[words, words, value, out])
        assert out[0] == want
        numpy = {"eq": words == value, "ne": words != value, "gt": words > value}
        numpy |= {"ge": words >= value, "lt": words < value, "le": words <= value}
        assert bool(want) == bool(numpy[cmp].all())


PING_PONG = """
    pto.comm.tnotify(%theirs, %n : !word, i32) {notifyOp = #pto<notify_op atomic_add>}
    pto.comm.twait(%mine, %n : !word, i32) {cmp = #pto<wait_cmp ge>}
    %one = arith.constant 1 : i32
    %m = arith.addi %n, %one : i32
    pto.comm.tnotify(%theirs, %n : !word, i32) {notifyOp = #pto<notify_op atomic_add>}
    pto.comm.twait(%mine, %m : !word, i32) {cmp = #pto<wait_cmp ge>}
    pto.store_scalar %m, %out[%c0] : !pto.ptr<i32>, i32
"""


def test_ranks_wait_for_each_other() -> None:
    world = pto.World(2, "a5")
    words = world.symmetric(1, "i32")
    out = [np.zeros(1, np.int32) for _ in range(2)]
    args = [[words[r], words[1 - r], 1, out[r]] for r in range(2)]
    world.launch(signal_program(PING_PONG, size=1), args=args)
    world.synchronize()
    assert [int(o[0]) for o in out] == [2, 2]
    assert [int(w[0]) for w in words] == [2, 2]


def test_ranks_that_all_wait_are_a_deadlock_that_names_them() -> None:
    body = "pto.comm.twait(%mine, %n : !word, i32) {cmp = #pto<wait_cmp ge>}"
    world = pto.World(2, "a5")
    words = world.symmetric(1, "i32")
    words[1][0] = 2
    out = np.zeros(1, np.int32)
    world.launch(
        signal_program(body, size=1), args=[[words[r], words[1 - r], 3, out] for r in (0, 1)]
    )
    with pytest.raises(PtoError) as caught:
        world.synchronize()
    (found,) = caught.value.diagnostics
    addresses = world.addresses(words)
    assert found.code == "PTO-D110"
    assert [note.message for note in found.notes] == [
        f"rank {r} block 0 waits at 'pto.comm.twait' op for a signal >= 3 at {addresses[r]:#x}, where it is {2 * r}"
        for r in range(2)
    ]
    world.synchronize()  # what was submitted is forgotten: the world goes on


def test_a_signal_lies_at_a_multiple_of_four_bytes() -> None:
    text = """
    !word = !pto.partition_tensor_view<1xi32>
    module attributes {pto.target_arch = "a5"} {
      func.func @f(%p: !pto.ptr<i8>, %n: i32) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %q = pto.addptr %p, %c2 : !pto.ptr<i8> -> !pto.ptr<i8>
        %w = pto.castptr %q : !pto.ptr<i8> -> !pto.ptr<i32>
        %v = pto.make_tensor_view %w, shape = [%c1], strides = [%c1] : !pto.tensor_view<1xi32>
        %s = pto.partition_view %v, offsets = [%c0], sizes = [%c1] : !pto.tensor_view<1xi32> -> !word
        pto.comm.tnotify(%s, %n : !word, i32) {notifyOp = #pto<notify_op set>}
        return
      }
    }
    """
    assert code_of(lambda: launch(parse(text), args=[np.zeros(16, np.int8), 1])) == "PTO-M193"


# ---- collectives

FOUR = "%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>, %one: !pto.ptr<f32>"
GROUP = "group(%v_a, %v_b, %v_c)"
TYPES = "!view, !tile, !view, !view, !view"


def test_a_broadcast_gives_all_members_the_roots_data() -> None:
    body = f"pto.comm.tbroadcast(%v_one, recv(%t), {GROUP} : {TYPES}) {{root = 1 : i32}}"
    world = pto.World(3, "a5")
    boxes = world.symmetric((16, 32), "f32")
    stream = world[1].stream()
    stream.launch(program(FOUR, body), args=[*boxes, numbers(1)])
    world.synchronize()
    for box in boxes:
        np.testing.assert_array_equal(box, numbers(1))


def whole_program(body: str, rows: int = 16, total: int = 48) -> Any:
    """Three members of rows x 32 and a whole of total x 32."""
    params = "%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>, %all: !pto.ptr<f32>"
    made = f"""
    !view = !pto.partition_tensor_view<{rows}x32xf32>
    !whole = !pto.partition_tensor_view<{total}x32xf32>
    !tile = !pto.tile_buf<vec, 8x32xf32>
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f({params}) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        %rows = arith.constant {rows} : index
        %total = arith.constant {total} : index
        %t = pto.alloc_tile : !tile
    """
    for name in "abc":
        made += f"""
        %w_{name} = pto.make_tensor_view %{name}, shape = [%rows, %c32], strides = [%c32, %c1] : !pto.tensor_view<{rows}x32xf32>
        %v_{name} = pto.partition_view %w_{name}, offsets = [%c0, %c0], sizes = [%rows, %c32] : !pto.tensor_view<{rows}x32xf32> -> !view
        """
    made += f"""
        %w_all = pto.make_tensor_view %all, shape = [%total, %c32], strides = [%c32, %c1] : !pto.tensor_view<{total}x32xf32>
        %v_all = pto.partition_view %w_all, offsets = [%c0, %c0], sizes = [%total, %c32] : !pto.tensor_view<{total}x32xf32> -> !whole
        {body}
        return
      }}
    }}
    """
    return parse(made)


@pytest.mark.parametrize("total", [48, 56])
def test_a_gather_stacks_the_members_rows(total: int) -> None:
    body = f"pto.comm.tgather(%v_all, recv(%t), {GROUP} : !whole, !tile, !view, !view, !view) {{root = 0 : i32}}"
    parts = [numbers(r) for r in range(3)]
    out = np.full((total, 32), -1, np.float32)
    launch(whole_program(body, total=total), args=[*parts, out])
    np.testing.assert_array_equal(out[:48], np.concatenate(parts))
    assert (out[48:] == -1).all()  # rows beyond the last member stay


@pytest.mark.parametrize("total", [48, 56])
def test_a_scatter_deals_the_rows_out(total: int) -> None:
    body = f"pto.comm.tscatter(%v_all, recv(%t), {GROUP} : !whole, !tile, !view, !view, !view) {{root = 0 : i32}}"
    parts = [np.zeros((16, 32), np.float32) for _ in range(3)]
    data = numbers(0, total)
    launch(whole_program(body, total=total), args=[*parts, data])
    for rank, part in enumerate(parts):
        np.testing.assert_array_equal(part, data[16 * rank : 16 * rank + 16])


def reduce_body(op: str, root: int) -> str:
    return (
        f"pto.comm.treduce(%v_one, %x, recv(%t, %u), {GROUP} : !view, !tile, !tile, !tile, !view, !view, !view)"
        f" {{reduceOp = #pto<reduce_op {op}>, root = {root} : i32}}"
    )


@pytest.mark.parametrize(
    ("op", "numpy"), [("sum", np.add), ("max", np.maximum), ("min", np.minimum)]
)
def test_a_reduction_combines_all_members(op: str, numpy: Any) -> None:
    rng = np.random.default_rng(4)
    parts = [rng.integers(-99, 99, (16, 32)).astype(np.float32) for _ in range(3)]
    out = np.zeros((16, 32), np.float32)
    launch(program(FOUR, reduce_body(op, 0)), args=[*parts, out])
    np.testing.assert_array_equal(out, numpy(numpy(parts[0], parts[1]), parts[2]))


@pytest.mark.parametrize(("root", "want"), [(0, 0.0), (1, 0.0), (2, 1.0)])
def test_the_order_of_a_sum_is_root_first_then_ascending_ranks(root: int, want: float) -> None:
    """In f32: (1e8 + 1) - 1e8 = 0, (1 + 1e8) - 1e8 = 0, but (-1e8 + 1e8) + 1 = 1."""
    parts = [np.full((16, 32), value, np.float32) for value in (1e8, 1, -1e8)]
    out = np.full((16, 32), 9, np.float32)
    launch(program(FOUR, reduce_body("sum", root)), args=[*parts, out])
    assert (out == want).all()


def test_a_call_by_another_rank_than_the_root_is_refused() -> None:
    body = f"pto.comm.tbroadcast(%v_one, recv(%t), {GROUP} : {TYPES}) {{root = 1 : i32}}"
    world = pto.World(3, "a5")
    boxes = world.symmetric((16, 32), "f32")
    stream = world[0].stream()
    stream.launch(program(FOUR, body), args=[*boxes, numbers(1)])
    assert code_of(world.synchronize) == "PTO-D196"
    assert not any(box.any() for box in boxes)


CCU = f'pto.comm.tbroadcast(%v_one, recv(%t), {GROUP} : {TYPES}) {{root = 1 : i32, engine = "CCU"}}'
COPY = "\npto.comm.tput(%v_out, %v_a, buf(%t) : !view, !view, !tile) {atomicType = #pto<atomic_type atomic_none>}"


def test_on_the_collective_unit_every_rank_calls_and_sees_the_result() -> None:
    """Each rank copies member 0 right after the call: rank 0 comes first and has to wait."""
    world = pto.World(3, "a5")
    boxes = world.symmetric((16, 32), "f32")
    out = [np.zeros((16, 32), np.float32) for _ in range(3)]
    module = program(FOUR + ", %out: !pto.ptr<f32>", CCU + COPY)
    world.launch(module, args=[[*boxes, numbers(1), out[r]] for r in range(3)])
    world.synchronize()
    for box in (*boxes, *out):
        np.testing.assert_array_equal(box, numbers(1))


def test_a_rank_that_does_not_come_is_named() -> None:
    world = pto.World(3, "a5")
    boxes = world.symmetric((16, 32), "f32")
    module = program(FOUR, CCU)
    for rank in (0, 1):
        world[rank].stream().launch(module, args=[*boxes, numbers(1)])
    with pytest.raises(PtoError) as caught:
        world.synchronize()
    assert [note.message for note in caught.value.diagnostics[0].notes] == [
        "rank 0 block 0 waits at 'pto.comm.tbroadcast' op for the root, rank 1, of the collective",
        "rank 1 block 0 waits at 'pto.comm.tbroadcast' op for rank 2 to come to the collective",
    ]


def test_the_wrong_number_of_argument_lists_is_refused() -> None:
    world = pto.World(2, "a5")
    assert code_of(lambda: world.launch(program(POINTERS, PUT), args=[[]])) == "PTO-U192"
