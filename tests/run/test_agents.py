"""Agents take turns: who runs what, waiting both ways, deadlocks that are explained."""

# ruff: noqa: E501  (lines of programs)
from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.plan.calls import entry_functions, sides
from pto.run.launch.host import launch
from pto.target.profile import profile
from tests.known.test_fifo import ACC, local_queue, numbers, round_trip
from tests.trio import Trio

CUBE = "attributes {pto.kernel_kind = #pto.kernel_kind<cube>}"
VECTOR = "attributes {pto.kernel_kind = #pto.kernel_kind<vector>}"


def deadlock(text: str, *, args: tuple[object, ...] = (), blocks: int = 1) -> Diagnostic:
    with pytest.raises(PtoError) as caught:
        launch(parse(text), args=list(args), blocks=blocks)
    (found,) = caught.value.diagnostics
    assert found.code in ("PTO-D110", "PTO-D207")  # D207: a queue is full
    return found


def notes(found: Diagnostic) -> list[tuple[int | None, str]]:
    return [(note.loc.line if note.loc else None, note.message) for note in found.notes]


# ---- who runs a kernel


def agents(text: str, target: str) -> list[tuple[str, int]]:
    module = parse(text)
    return [(s.name, s.agents) for s in sides(entry_functions(module, None), profile(target))]


def test_a_kernel_without_sides_is_one_agent() -> None:
    assert agents("func.func @f() {\nreturn\n}", "a5") == [("both", 1)]


def test_a_kernel_of_one_kind_runs_on_that_side() -> None:
    assert agents(f"func.func @f() {VECTOR} {{\nreturn\n}}", "a5") == [("vector", 1)]


def test_sections_of_both_kinds_make_three_agents() -> None:
    text = "func.func @f() {\npto.section.cube {\n}\npto.section.vector {\n}\nreturn\n}"
    assert agents(text, "a5") == [("cube", 1), ("vector", 2)]


@pytest.mark.parametrize(
    ("target", "split", "vectors"), [("a5", 0, 1), ("a5", 1, 2), ("a2a3", 0, 2), ("a2a3", 2, 2)]
)
def test_queues_decide_how_many_sub_blocks_take_part(target: str, split: int, vectors: int) -> None:
    text = round_trip("a5" if target == "a5" else "a3", split)
    assert agents(text, target) == [("cube", 1), ("vector", vectors)]


@pytest.mark.parametrize("query", ["get_subblock_idx", "get_subblock_num"])
def test_a_program_that_asks_for_its_sub_block_has_both(query: str) -> None:
    """PTOAS leaves such vector code without a guard: hasExplicitSubblockControl."""
    at = "%t = pto.alloc_tile : !half"
    text = round_trip("a5", 0).replace(at, f"%own = pto.{query}\n{at}")
    assert agents(text, "a5") == [("cube", 1), ("vector", 2)]


def test_functions_at_two_ends_of_a_queue_run_together() -> None:
    text = f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @c() {CUBE} {{
        %b = pto.import_reserved_buffer {{name = "q", peer_func = @v}} -> i32
        return
      }}
      func.func @v() {VECTOR} {{
        %b = pto.reserve_buffer {{name = "q", size = 1024, location = #pto.address_space<vec>, auto = true}} -> i32
        return
      }}
      func.func @alone() {VECTOR} {{
        return
      }}
    }}
    """
    module = parse(text)
    for entry in ("c", "v"):
        names = [f.attrs["sym_name"].value for f in entry_functions(module, entry)]
        assert names == ["c", "v"]
    assert len(entry_functions(module, "alone")) == 1


def test_two_functions_of_one_name_in_a_cube_and_a_vector_module() -> None:
    text = """
    module attributes {pto.target_arch = "a5"} {
      module attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
        func.func @k(%p: !pto.ptr<i32>) attributes {pto.kernel} {
          %c0 = arith.constant 0 : index
          %v = arith.constant 7 : i32
          pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
          return
        }
      }
      module attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
        func.func @k(%p: !pto.ptr<i32>) attributes {pto.kernel} {
          %s = pto.get_subblock_idx
          %i = arith.index_cast %s : i64 to index
          %c1 = arith.constant 1 : index
          %at = arith.addi %i, %c1 : index
          %v = arith.constant 9 : i32
          pto.store_scalar %v, %p[%at] : !pto.ptr<i32>, i32
          return
        }
      }
    }
    """
    out = np.zeros(4, np.int32)
    launch(parse(text), args=[out])
    assert out.tolist() == [7, 9, 9, 0]


def test_a_call_runs_only_on_the_side_of_its_function() -> None:
    text = f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @main(%p: !pto.ptr<i32>) attributes {{pto.entry}} {{
        func.call @c(%p) : (!pto.ptr<i32>) -> ()
        func.call @v(%p) : (!pto.ptr<i32>) -> ()
        return
      }}
      func.func private @c(%p: !pto.ptr<i32>) {CUBE} {{
        %c0 = arith.constant 0 : index
        %n = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        %one = arith.constant 1 : i32
        %m = arith.addi %n, %one : i32
        pto.store_scalar %m, %p[%c0] : !pto.ptr<i32>, i32
        return
      }}
      func.func private @v(%p: !pto.ptr<i32>) {VECTOR} {{
        %c1 = arith.constant 1 : index
        %n = pto.load_scalar %p[%c1] : !pto.ptr<i32> -> i32
        %ten = arith.constant 10 : i32
        %m = arith.addi %n, %ten : i32
        pto.store_scalar %m, %p[%c1] : !pto.ptr<i32>, i32
        return
      }}
    }}
    """
    out = np.zeros(2, np.int32)
    launch(parse(text), args=[out], blocks=3)
    assert out.tolist() == [3, 2 * 3 * 10]


# ---- waiting


def test_a_ring_of_eight_slots_takes_any_number_of_tiles() -> None:
    trio = Trio("a5", vectors=1)
    trio.tile("cube", "t", ACC, numbers(32, 64))
    loop = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 100 : index
    scf.for %i = %c0 to %n step %c1 {
      BODY
    }
    """
    push = loop.replace("BODY", "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}")
    tile = "!pto.tile_buf<vec, 32x64xf32>"
    pop = f"%p = pto.declare_tile -> {tile}\n" + loop.replace(
        "BODY",
        f"pto.tpop(%p, %q : {tile}, !pto.pipe) {{split = 0}}\n"
        f"pto.tadd ins(%p, %sum : {tile}, {{sum}}) outs(%sum : {{sum}})\n"
        "pto.tfree(%q : !pto.pipe) {split = 0}",
    )
    total = trio.tile("vector0", "sum", "vec, 32x64xf32", np.zeros((32, 64)), address=0x20000)
    trio.run(cube=local_queue(1, 8192) + push, vector0=local_queue(1, 8192) + pop)
    assert np.array_equal(total.read(), 100 * numbers(32, 64))


def pushes_and_pops(pushed: int, popped: int) -> str:
    """The vector side answers after it has popped; the cube listens after it has pushed. Both say
    in %out how far they came."""
    lines = "\n".join(["pto.tpush_to_aiv(%acc : !acc) {split = 0}"] * pushed)
    pops = "\n".join(
        f"%t{n} = pto.tpop_from_aic {{split = 0}} -> !tile\npto.tfree_from_aic {{split = 0}}\n"
        f"%k{n} = arith.constant {n + 1} : i32\n"
        f"pto.store_scalar %k{n}, %out[%c1] : !pto.ptr<i32>, i32"
        for n in range(popped)
    )
    return f"""!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!tile = !pto.tile_buf<vec, 16x16xf32>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @c(%out: !pto.ptr<i32>) {CUBE} {{
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %count = arith.constant {pushed} : i32
    %acc = pto.alloc_tile : !acc
    %b = pto.import_reserved_buffer {{name = "q", peer_func = @v}} -> i32
    pto.aic_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (c2v_consumer_buf = %b : i32, v2c_consumer_buf = %zero : i32)
    {lines}
    pto.sync.wait <PIPE_MTE1>, 3
    pto.store_scalar %count, %out[%c0] : !pto.ptr<i32>, i32
    return
  }}
  func.func @v(%out: !pto.ptr<i32>) {VECTOR} {{
    %zero = arith.constant 0 : i32
    %c1 = arith.constant 1 : index
    %b = pto.reserve_buffer {{name = "q", size = 8192, location = #pto.address_space<vec>, auto = true}} -> i32
    pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (c2v_consumer_buf = %b : i32, v2c_consumer_buf = %zero : i32)
    {pops}
    pto.sync.set <PIPE_MTE3>, 3
    return
  }}
}}"""


@pytest.mark.parametrize(("pushed", "popped"), [(8, 0), (8, 8), (9, 4), (12, 4)])
def test_a_producer_runs_ahead_by_the_slots_there_are(pushed: int, popped: int) -> None:
    out = np.zeros(2, np.int32)
    launch(parse(pushes_and_pops(pushed, popped)), args=[out])
    assert out.tolist() == [pushed, popped]


@pytest.mark.parametrize(("pushed", "popped"), [(9, 0), (9, 3), (13, 4)])
def test_free_slots_are_told_half_a_ring_at_a_time(pushed: int, popped: int) -> None:
    """pto-isa TPush.hpp: waits for free slots happen once in SyncPeriod, 4 of 8 slots."""
    out = np.zeros(2, np.int32)
    found = deadlock(pushes_and_pops(pushed, popped), args=(out,))
    assert out.tolist() == [0, popped]
    (line, cube), (_, vector) = notes(found)
    assert "block 0 cube waits at 'pto.tpush_to_aiv' op for a free slot of queue 0" in cube
    assert f"{popped} freed" in cube and line is not None
    assert vector == "block 0 vector has finished"


def test_waiting_for_each_other_is_a_deadlock_that_says_who_waits_for_what() -> None:
    text = pushes_and_pops(1, 2).replace(
        "pto.sync.wait <PIPE_MTE1>, 3", "pto.sync.wait <PIPE_MTE1>, 4"
    )
    found = deadlock(text, args=(np.zeros(2, np.int32),))
    lines = text.split("\n")
    wait = next(n for n, line in enumerate(lines, 1) if "sync.wait" in line)
    pop = [n for n, line in enumerate(lines, 1) if "tpop" in line][1]
    assert found.message == "deadlock: neither of two agents can proceed"
    assert found.loc is not None and found.loc.line == wait
    assert notes(found) == [
        (wait, "block 0 cube waits at 'pto.sync.wait' op for signal 4, which was never sent"),
        (
            pop,
            "block 0 vector waits at 'pto.tpop_from_aic' op for tile 1 of queue 0, cube to vector, "
            "which the cube has not pushed",
        ),
    ]


def test_the_second_sub_block_gets_no_whole_tiles_on_a5() -> None:
    trio = Trio("a5")
    trio.tile("cube", "t", ACC, numbers(32, 64))
    tile = "!pto.tile_buf<vec, 32x64xf32>"
    push = local_queue(1, 8192) + "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}"
    pop = local_queue(1, 8192) + (
        f"%p = pto.declare_tile -> {tile}\npto.tpop(%p, %q : {tile}, !pto.pipe) {{split = 0}}"
    )
    with pytest.raises(PtoError) as caught:
        trio.run(cube=push, vector0=pop, vector1=pop)
    (note, *finished) = notes(caught.value.diagnostics[0])
    assert note[1].startswith("block 0 vector 1 waits at 'pto.tpop' op for a tile of")
    assert note[1].endswith("which sends undivided tiles only to vector 0")
    assert [text for _, text in finished] == [
        "block 0 cube has finished",
        "block 0 vector 0 has finished",
    ]


def test_the_same_deadlock_is_told_the_same_way_every_time() -> None:
    text = pushes_and_pops(9, 3)
    out = np.zeros(2, np.int32)
    assert len({str(notes(deadlock(text, args=(out,)))) for _ in range(3)}) == 1


# ---- blocks that wait for each other

SIGNALS = """
!word = !pto.partition_tensor_view<1xi32>
module attributes {pto.target_arch = "a5"} {
  func.func @ring(%words: !pto.ptr<i32>, %order: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %i64 = pto.get_block_idx
    %n64 = pto.get_block_num
    %i = arith.index_cast %i64 : i64 to index
    %n = arith.index_cast %n64 : i64 to index
    %v = pto.make_tensor_view %words, shape = [%n], strides = [%c1] : !pto.tensor_view<?xi32>
    %next0 = arith.addi %i, %c1 : index
    %next = arith.remui %next0, %n : index
    %mine = pto.partition_view %v, offsets = [%i], sizes = [%c1] : !pto.tensor_view<?xi32> -> !word
    %theirs = pto.partition_view %v, offsets = [%next], sizes = [%c1] : !pto.tensor_view<?xi32> -> !word
    %last = arith.subi %n, %c1 : index
    %starts = arith.cmpi eq, %i, %last : index
    scf.if %starts {
      pto.comm.tnotify(%theirs, %one : !word, i32) {notifyOp = #pto<notify_op atomic_add>}
    }
    WAIT
    %turn = pto.load_scalar %order[%c0] : !pto.ptr<i32> -> i32
    %more = arith.addi %turn, %one : i32
    pto.store_scalar %more, %order[%c0] : !pto.ptr<i32>, i32
    pto.store_scalar %turn, %order[%next0] : !pto.ptr<i32>, i32
    pto.comm.tnotify(%theirs, %one : !word, i32) {notifyOp = #pto<notify_op atomic_add>}
    return
  }
}
"""
BLOCKING = "pto.comm.twait(%mine, %one : !word, i32) {cmp = #pto<wait_cmp ge>}"
POLLING = """
    scf.while () : () -> () {
      %met = pto.comm.ttest(%mine, %one : !word, i32) {cmp = #pto<wait_cmp ge>} -> i1
      %true = arith.constant true
      %not = arith.xori %met, %true : i1
      scf.condition(%not)
    } do {
      scf.yield
    }
"""


@pytest.mark.parametrize("wait", [BLOCKING, POLLING], ids=["twait", "ttest in a loop"])
def test_blocks_hand_a_token_around(wait: str) -> None:
    """Block 0 waits for the last block: all of them live at once."""
    words, order = np.zeros(6, np.int32), np.zeros(7, np.int32)
    launch(parse(SIGNALS.replace("WAIT", wait)), args=[words, order], blocks=6)
    assert order.tolist() == [6, 0, 1, 2, 3, 4, 5]
    assert words.tolist() == [2, 1, 1, 1, 1, 1]


def test_a_block_that_polls_for_ever_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto.run.machine.agents._PATIENCE", 50)
    text = SIGNALS.replace("WAIT", POLLING.replace("%mine, %one", "%mine, %n32")).replace(
        "%starts =", "%n32 = arith.constant 99 : i32\n%starts ="
    )
    found = deadlock(text, args=(np.zeros(2, np.int32), np.zeros(3, np.int32)), blocks=2)
    assert [text for _, text in notes(found)] == [
        f"block {n} waits at 'scf.while' op for others to change what its loop looks at"
        for n in range(2)
    ]


def test_a_loop_that_changes_memory_itself_ends() -> None:
    """It looks at memory and carries nothing, yet is no deadlock."""
    text = """
    func.func @f(%p: !pto.ptr<i32>) {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %most = arith.constant 1000 : i32
      scf.while () : () -> () {
        %n = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        %less = arith.cmpi slt, %n, %most : i32
        scf.condition(%less)
      } do {
        %n = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        %m = arith.addi %n, %one : i32
        pto.store_scalar %m, %p[%c0] : !pto.ptr<i32>, i32
        scf.yield
      }
      return
    }
    """
    out = np.zeros(1, np.int32)
    launch(parse(text), args=[out])
    assert out[0] == 1000


def test_all_cores_of_a_launch_meet() -> None:
    """ffts_mode 0: a wait is met when every core of the kind has set."""
    text = """
    module attributes {pto.target_arch = "a3"} {
      func.func @meet(%p: !pto.ptr<i32>) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
        %c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %i64 = pto.get_block_idx
        %c1 = arith.constant 1 : index
        %i0 = arith.index_cast %i64 : i64 to index
        %i = arith.addi %i0, %c1 : index
        %n = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        %m = arith.addi %n, %one : i32
        pto.store_scalar %m, %p[%c0] : !pto.ptr<i32>, i32
        pto.sync.set <PIPE_MTE3>, 4 {ffts_mode = 0 : i32}
        pto.sync.wait <PIPE_MTE2>, 4
        %all = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        pto.store_scalar %all, %p[%i] : !pto.ptr<i32>, i32
        return
      }
    }
    """
    out = np.zeros(6, np.int32)
    launch(parse(text), args=[out], blocks=5)
    assert out.tolist() == [5, 5, 5, 5, 5, 5]


def test_blocks_that_do_not_wait_run_one_after_the_other() -> None:
    text = """
    func.func @f(%p: !pto.ptr<i32>) {
      %c0 = arith.constant 0 : index
      %ten = arith.constant 10 : i32
      %b64 = pto.get_block_idx
      %b = arith.trunci %b64 : i64 to i32
      %n = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
      %m = arith.muli %n, %ten : i32
      %k = arith.addi %m, %b : i32
      pto.store_scalar %k, %p[%c0] : !pto.ptr<i32>, i32
      return
    }
    """
    out = np.zeros(1, np.int32)
    launch(parse(text), args=[out], blocks=5)
    assert out[0] == 1234
