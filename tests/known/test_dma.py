"""DMA: which byte goes where, worked out by hand from the units of each row."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.memory import Space
from tests.transfers import FILL, Transfers, run_kernel

BYTES = (np.arange(4096) % 251).astype(np.uint8)


def moved(body, *, gm=BYTES, profile="a5", address=0):
    """UB after a body that copies from %g (gm) to %u (ub)."""
    bench = Transfers(profile)
    bench.pointer("g", "ui8, gm", gm)
    bench.at("u", "ui8, ub", address)
    bench.go(body)
    return bench.memory(Space.UB)


# ---- global memory to UB


def test_mte_gm_ub_counts_bytes_from_start_to_start():
    ub = moved("pto.mte_gm_ub %g, %u, #0, #40 nburst(#3, #100, #64) : {g}, {u}, i64*5")
    for row in range(3):
        assert ub[row * 64 :][:40].tolist() == BYTES[row * 100 :][:40].tolist()
        assert (ub[row * 64 + 40 : row * 64 + 64] == FILL).all()
    assert (ub[192:] == FILL).all()


def test_loops_of_mte_gm_ub_are_listed_from_inner_to_outer():
    ub = moved(
        "pto.mte_gm_ub %g, %u, #0, #32 nburst(#2, #50, #32) loop(#2, #200, #128)"
        " loop(#2, #1000, #512) : {g}, {u}, i64*5, loop i64*3, loop i64*3"
    )
    for outer in range(2):
        for inner in range(2):
            for row in range(2):
                start = outer * 1000 + inner * 200 + row * 50
                place = outer * 512 + inner * 128 + row * 32
                assert ub[place:][:32].tolist() == BYTES[start:][:32].tolist()
    assert (ub[64:128] == FILL).all() and (ub[704:] == FILL).all()


@pytest.mark.parametrize("count, length", [(0, 32), (3, 0)])
def test_no_bursts_and_empty_bursts_move_nothing(count, length):
    ub = moved(
        f"pto.mte_gm_ub %g, %u, #0, #{length} nburst(#{count}, #32, #32) : {{g}}, {{u}}, i64*5"
    )
    assert (ub == FILL).all()


def padded(clause, types, elem="f32", profile="a5", length=20):
    bench = Transfers(profile)
    bench.pointer("g", f"{elem}, gm", np.arange(1, 65))
    bench.at("u", f"{elem}, ub", 0)
    bench.scalar("v", "f32" if elem == "f32" else "i16", 7)
    bench.go(
        f"pto.mte_gm_ub %g, %u, #0, #{length} nburst(#2, #{length}, #64) pad(%v{clause})"
        f" : {{g}}, {{u}}, i64*5, pad {{v}}{types}"
    )
    return bench.memory(Space.UB)


def test_pad_fills_a_row_to_the_next_block():
    ub = padded("", "")
    assert ub[:32].view(np.float32).tolist() == [1, 2, 3, 4, 5, 7, 7, 7]
    assert ub[64:96].view(np.float32).tolist() == [6, 7, 8, 9, 10, 7, 7, 7]
    assert (ub[32:64] == FILL).all()


def test_pad_counts_are_elements_before_and_after_the_payload():
    ub = padded(", #2, #1", ", i64*2")
    assert ub[:32].view(np.float32).tolist() == [7, 7, 1, 2, 3, 4, 5, 7]
    assert (ub[32:64] == FILL).all()


def test_pad_value_may_be_an_integer_of_the_width_of_the_elements():
    bench = Transfers()
    bench.pointer("g", "f16, gm", np.array([1.5, -2.0], np.float16))
    bench.at("u", "f16, ub", 0)
    bench.scalar("v", "i16", 0x3C00)  # 1.0
    bench.go("pto.mte_gm_ub %g, %u, #0, #4 nburst(#1, #4, #32) pad(%v) : {g}, {u}, i64*5, pad {v}")
    assert bench.memory(Space.UB)[:32].view(np.float16).tolist() == [1.5, -2.0] + [1.0] * 14


def test_a_full_row_needs_no_pad():
    ub = padded("", "", length=32)
    assert ub[:32].view(np.float32).tolist() == list(range(1, 9))
    assert (ub[32:64] == FILL).all()


def test_copy_gm_to_ubuf_is_repeated_by_its_registers():
    ub = moved(
        "pto.set_loop_size_outtoub #2, #3 : i64, i64\n"  # loop2 = 2, loop1 = 3
        "pto.set_loop1_stride_outtoub #10, #64 : i64, i64\n"
        "pto.set_loop2_stride_outtoub #1000, #512 : i64, i64\n"
        "pto.copy_gm_to_ubuf %g, %u, #0, #2, #32, #0, #0, #false, #0, #100, #32"
        " : {g}, {u}, i64*5, i1, i64*3"
    )
    for outer in range(2):
        for inner in range(3):
            for row in range(2):
                start = outer * 1000 + inner * 10 + row * 100
                place = outer * 512 + inner * 64 + row * 32
                assert ub[place:][:32].tolist() == BYTES[start:][:32].tolist()


def test_registers_of_one_way_leave_the_other_alone():
    ub = moved(
        "pto.set_loop_size_ubtoout #2, #2 : i64, i64\n"
        "pto.set_loop1_stride_ubtoout #64, #64 : i64, i64\n"
        "pto.copy_gm_to_ubuf %g, %u, #0, #1, #32, #0, #0, #false, #0, #32, #32"
        " : {g}, {u}, i64*5, i1, i64*3"
    )
    assert (ub[32:] == FILL).all()


def test_copy_gm_to_ubuf_pads_with_the_register_where_the_bit_is_set():
    bench = Transfers()
    bench.pointer("g", "f32, gm", np.arange(1, 65))
    bench.at("u", "f32, ub", 0)
    bench.scalar("v", "f32", -1.5)
    bench.go(
        "pto.set_mov_pad_val %v : f32\n"
        "pto.copy_gm_to_ubuf %g, %u, #0, #1, #12, #1, #2, #true, #0, #12, #32"
        " : {g}, {u}, i64*5, i1, i64*3"
    )
    ub = bench.memory(Space.UB)
    assert ub[:32].view(np.float32).tolist() == [-1.5, 1, 2, 3, -1.5, -1.5, -1.5, -1.5]


# ---- UB to global memory


def stored(body, gm, ub=BYTES, profile="a5", elem="ui8"):
    bench = Transfers(profile)
    live = bench.pointer("g", f"{elem}, gm", gm)
    bench.at("u", f"{elem}, ub", 0, ub)
    bench.go(body)
    return live


def test_mte_ub_gm_writes_the_payload_of_each_row_only():
    gm = stored(
        "pto.mte_ub_gm %u, %g, #10 nburst(#3, #64, #12) : {u}, {g}, i64*4",
        np.full(64, FILL, np.uint8),
    )
    for row in range(3):
        assert gm[row * 12 :][:10].tolist() == BYTES[row * 64 :][:10].tolist()
        assert (gm[row * 12 + 10 : row * 12 + 12] == FILL).all()
    assert (gm[36:] == FILL).all()


def test_loops_of_mte_ub_gm():
    gm = stored(
        "pto.mte_ub_gm %u, %g, #32 nburst(#1, #0, #0) loop(#2, #64, #40) loop(#3, #256, #100)"
        " : {u}, {g}, i64*4, loop i64*3, loop i64*3",
        np.full(400, FILL, np.uint8),
    )
    for outer in range(3):
        for inner in range(2):
            place, start = outer * 100 + inner * 40, outer * 256 + inner * 64
            assert gm[place:][:32].tolist() == BYTES[start:][:32].tolist()


def test_bursts_that_write_the_same_bytes_leave_the_last():
    gm = stored(
        "pto.mte_ub_gm %u, %g, #32 nburst(#3, #32, #8) : {u}, {g}, i64*4",
        np.full(64, FILL, np.uint8),
    )
    want = np.full(64, FILL, np.uint8)
    for row in range(3):
        want[row * 8 : row * 8 + 32] = BYTES[row * 32 : row * 32 + 32]
    assert gm.tolist() == want.tolist()


@pytest.mark.parametrize(
    "setting, kind", [("pto.set_atomic_s32", np.int32), ("pto.set_atomic_s8", np.int8)]
)
def test_atomic_types_make_stores_add(setting, kind):
    top = np.iinfo(kind).max
    size = np.dtype(kind).itemsize
    new = np.array([1, -5, top, 7], kind)
    gm = stored(
        f"{setting}\npto.mte_ub_gm %u, %g, #{4 * size} nburst(#1, #32, #32) : {{u}}, {{g}}, i64*4",
        np.array([10, 20, 1, -7], kind).view(np.uint8),
        new,
    )
    assert gm.view(kind).tolist() == [11, 15, np.iinfo(kind).min, 0]  # wraps


@pytest.mark.parametrize("number, op, want", [(0, "add", 8.0), (1, "max", 5.0), (2, "min", 3.0)])
def test_control_bits_choose_the_atomic_operation(number, op, want):
    ctrl = 1 << 48 | 1 << 6 | number << 9  # f32
    gm = stored(
        f"pto.set_ctrl #{ctrl} : i64\n"
        "pto.mte_ub_gm %u, %g, #4 nburst(#1, #32, #32) : {u}, {g}, i64*4",
        np.array([3.0], np.float32).view(np.uint8),
        np.array([5.0], np.float32),
    )
    assert gm.view(np.float32).tolist() == [want], op


def test_atomic_bursts_over_the_same_element_all_count():
    gm = stored(
        "pto.set_atomic_s32\npto.mte_ub_gm %u, %g, #4 nburst(#5, #32, #0) : {u}, {g}, i64*4",
        np.zeros(4, np.uint8),
        np.tile(np.array([3, 0, 0, 0, 0, 0, 0, 0], np.int32), 5),
    )
    assert gm.view(np.int32).tolist() == [15]


# ---- between local buffers


@pytest.mark.parametrize(
    "text",
    [
        "pto.mte_ub_ub %a, %b, #2 nburst(#3, #1, #2) : {a}, {b}, i64*4",
        "pto.copy_ubuf_to_ubuf %a, %b, #0, #3, #2, #1, #2 : {a}, {b}, i64*5",
    ],
)
def test_copies_within_ub_count_blocks_and_gaps(text):
    bench = Transfers()
    bench.at("a", "i16, ub", 0, BYTES[:1024])
    bench.at("b", "i16, ub", 2048)
    bench.go(text)
    ub = bench.memory(Space.UB)[2048:]
    for row in range(3):
        assert ub[row * 128 :][:64].tolist() == BYTES[row * 96 :][:64].tolist()
        assert (ub[row * 128 + 64 : row * 128 + 128] == FILL).all()


def test_a_copy_onto_itself_reads_before_it_writes():
    bench = Transfers()
    bench.at("a", "i16, ub", 0, BYTES[:256])
    bench.at("b", "i16, ub", 32)
    bench.go("pto.mte_ub_ub %a, %b, #1 nburst(#4, #0, #0) : {a}, {b}, i64*4")
    ub = bench.memory(Space.UB)
    assert ub[32:160].tolist() == BYTES[:128].tolist()


@pytest.mark.parametrize(
    "text",
    [
        "pto.mte_ub_l1 %a, %b, #2 nburst(#2, #1, #0) : {a}, {b}, i64*4",
        "pto.copy_ubuf_to_cbuf %a, %b, #0, #2, #2, #1, #0 : {a}, {b}, i64*5",
    ],
)
def test_ub_to_l1_counts_blocks_and_gaps(text):
    bench = Transfers()
    bench.at("a", "i16, ub", 64, BYTES[:1024])
    bench.at("b", "i16, l1", 512)
    bench.go(text)
    l1 = bench.memory(Space.L1)
    assert l1[512:576].tolist() == BYTES[:64].tolist()
    assert l1[576:640].tolist() == BYTES[96:160].tolist()
    assert (l1[640:] == FILL).all() and (l1[:512] == FILL).all()


@pytest.mark.parametrize("sid", [0, 1])
def test_copy_cbuf_to_ubuf_writes_the_sub_block_of_its_sid(sid):
    out = [np.zeros(32, np.uint8) for _ in range(2)]
    run_kernel(
        "%g: !pto.ptr<ui8, gm>, %o0: !pto.ptr<ui8, gm>, %o1: !pto.ptr<ui8, gm>",
        f"""
        %l1 = pto.castptr #0 : i64 -> !pto.ptr<ui8, l1>
        %ub = pto.castptr #64 : i64 -> !pto.ptr<ui8, ub>
        pto.section.cube {{
          pto.mte_gm_l1 %g, %l1, #32 nburst(#1, #0, #0)
            : !pto.ptr<ui8, gm>, !pto.ptr<ui8, l1>, i64*4
          pto.copy_cbuf_to_ubuf %l1, %ub, #{sid}, #1, #1, #0, #0
            : !pto.ptr<ui8, l1>, !pto.ptr<ui8, ub>, i64*5
          pto.sync.set <PIPE_FIX>, 1
          pto.sync.set <PIPE_FIX>, 17
        }}
        pto.section.vector {{
          pto.sync.wait <PIPE_MTE3>, 1
          %sub = pto.get_subblock_idx
          %first = arith.cmpi eq, %sub, #0 : i64
          scf.if %first {{
            pto.mte_ub_gm %ub, %o0, #32 nburst(#1, #0, #0)
              : !pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64*4
          }} else {{
            pto.mte_ub_gm %ub, %o1, #32 nburst(#1, #0, #0)
              : !pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64*4
          }}
        }}""",
        [BYTES[:32].copy(), *out],
    )
    assert out[sid].tolist() == BYTES[:32].tolist()
    assert not out[1 - sid].any()


def test_vectors_and_the_cube_hand_data_on_through_l1():
    out = np.zeros((2, 64), np.uint8)
    run_kernel(
        "%g: !pto.ptr<ui8, gm>, %o: !pto.ptr<ui8, gm>",
        """
        %l1 = pto.castptr #1024 : i64 -> !pto.ptr<ui8, l1>
        %ub = pto.castptr #0 : i64 -> !pto.ptr<ui8, ub>
        %back = pto.castptr #256 : i64 -> !pto.ptr<ui8, ub>
        pto.section.vector {
          %sub = pto.get_subblock_idx
          %far = arith.muli %sub, #64 : i64
          %at = arith.index_cast %far : i64 to index
          %mine = pto.addptr %g, %at : !pto.ptr<ui8, gm> -> !pto.ptr<ui8, gm>
          %part = pto.addptr %l1, %at : !pto.ptr<ui8, l1> -> !pto.ptr<ui8, l1>
          pto.mte_gm_ub %mine, %ub, #0, #64 nburst(#1, #64, #64)
            : !pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, i64*5
          pto.mte_ub_l1 %ub, %part, #2 nburst(#1, #0, #0)
            : !pto.ptr<ui8, ub>, !pto.ptr<ui8, l1>, i64*4
          pto.sync.set <PIPE_MTE3>, 0
          pto.sync.wait <PIPE_MTE3>, 1
          %place = pto.addptr %o, %at : !pto.ptr<ui8, gm> -> !pto.ptr<ui8, gm>
          pto.mte_ub_gm %back, %place, #64 nburst(#1, #64, #64)
            : !pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64*4
        }
        pto.section.cube {
          pto.sync.wait <PIPE_MTE1>, 0
          pto.sync.wait <PIPE_MTE1>, 16
          %c64 = arith.constant 64 : index
          %second = pto.addptr %l1, %c64 : !pto.ptr<ui8, l1> -> !pto.ptr<ui8, l1>
          pto.copy_cbuf_to_ubuf %second, %back, #0, #1, #2, #0, #0
            : !pto.ptr<ui8, l1>, !pto.ptr<ui8, ub>, i64*5
          pto.copy_cbuf_to_ubuf %l1, %back, #1, #1, #2, #0, #0
            : !pto.ptr<ui8, l1>, !pto.ptr<ui8, ub>, i64*5
          pto.sync.set <PIPE_FIX>, 1
          pto.sync.set <PIPE_FIX>, 17
        }""",
        [BYTES[:128].copy(), out],
    )
    assert out[0].tolist() == BYTES[64:128].tolist()  # each got what the other brought
    assert out[1].tolist() == BYTES[:64].tolist()


# ---- L1


def test_mte_gm_l1_counts_bytes():
    bench = Transfers()
    bench.pointer("g", "f16, gm", BYTES[:512].view(np.uint16).astype(np.float16))
    source = bench.values["g"].memory.data
    bench.at("d", "f16, l1", 64)
    bench.go(
        "pto.mte_gm_l1 %g, %d, #48 nburst(#2, #100, #64) loop(#2, #10, #256)"
        " : {g}, {d}, i64*4, loop i64*3"
    )
    l1 = bench.memory(Space.L1)
    for outer in range(2):
        for row in range(2):
            place, start = 64 + outer * 256 + row * 64, outer * 10 + row * 100
            assert l1[place:][:48].tolist() == source[start:][:48].tolist()
            assert (l1[place + 48 : place + 64] == FILL).all()


def test_copy_gm_to_cbuf_is_repeated_by_packed_registers():
    sizes, first, second = 2 << 21 | 3, 100 | 64 << 40, 1000 | 256 << 40
    bench = Transfers()
    bench.pointer("g", "ui8, gm", BYTES)
    bench.at("d", "ui8, l1", 0)
    bench.go(
        f"pto.set_loop_size_outtol1 #{sizes} : i64\n"
        f"pto.set_loop1_stride_outtol1 #{first} : i64\n"
        f"pto.set_loop2_stride_outtol1 #{second} : i64\n"
        "pto.set_pad_val_outtol1 #0 : i64\n"
        "pto.copy_gm_to_cbuf %g, %d, #1, #32, #0, #0 : {g}, {d}, i64*4"
    )
    l1 = bench.memory(Space.L1)
    for outer in range(2):
        for inner in range(3):
            place, start = outer * 256 + inner * 64, outer * 1000 + inner * 100
            assert l1[place:][:32].tolist() == BYTES[start:][:32].tolist()


# ---- against a plain loop


def plain(source, target, length, groups):
    """The bursts one after the other; groups (count, source, target) from inner to outer."""
    if not groups:
        target[0][target[1] : target[1] + length] = source[0][source[1] : source[1] + length]
        return
    *inner, (count, src, dst) = groups
    for n in range(count):
        plain((source[0], source[1] + n * src), (target[0], target[1] + n * dst), length, inner)


@pytest.mark.parametrize("seed", range(25))
def test_any_bursts_and_loops_store_what_a_plain_loop_stores(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 40))
    groups = [
        (int(rng.integers(1, 4)), 32 * int(rng.integers(0, 4)), int(rng.integers(0, 70)))
        for _ in range(int(rng.integers(1, 4)))
    ]
    want = np.full(1024, FILL, np.uint8)
    plain((BYTES, 0), (want, 0), length, groups)
    nburst, *loops = [", ".join(f"#{n}" for n in g) for g in groups]
    gm = stored(
        f"pto.mte_ub_gm %u, %g, #{length} nburst({nburst})"
        + "".join(f" loop({loop})" for loop in loops)
        + " : {u}, {g}, i64*4"
        + ", loop i64*3" * len(loops),
        np.full(1024, FILL, np.uint8),
    )
    assert gm.tolist() == want.tolist()


# ---- atomics of floats, against ml_dtypes


@pytest.mark.parametrize("number, kind", [(2, np.float16), (6, ml_dtypes.bfloat16), (3, np.int16)])
def test_atomic_add_rounds_in_the_type_of_the_elements(number, kind):
    old, new = np.array([1.0, 256.0, 3.0], kind), np.array([0.001, 1.0, 4.0], kind)
    gm = stored(
        f"pto.set_ctrl #{1 << 48 | number << 6} : i64\n"
        "pto.mte_ub_gm %u, %g, #6 nburst(#1, #32, #32) : {u}, {g}, i64*4",
        old.view(np.uint8).copy(),
        new,
    )
    assert gm.view(kind).tobytes() == (old + new).astype(kind).tobytes()
