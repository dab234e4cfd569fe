"""Vector loads: which byte of UB each lane is, from the tables of the manuals."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.vectors import Registers, reg

UB = np.arange(2048, dtype=np.int64)


def loaded(dist, elem, data, offset=0, profile="a5"):
    bench = Registers(profile)
    bench.pointer("p", f"{elem}, ub", data)
    bench.scalar("at", "index", offset)
    return bench.one(f'%r = pto.vlds %p[%at] {{dist = "{dist}"}} : {{p}} -> {reg(elem)}', reg(elem))


def test_norm_is_256_bytes_from_the_offset_in_elements():
    assert loaded("NORM", "f32", UB[:256], 64).tolist() == list(range(64, 128))
    assert loaded("NORM", "ui8", UB[:512] % 251, 32).tolist() == [n % 251 for n in range(32, 288)]
    assert loaded("NORM", "i64", -UB[:128], 8).tolist() == [-n for n in range(8, 40)]


def test_a_register_does_not_change_when_ub_does():
    bench = Registers()
    live = bench.pointer("p", "f32, ub", UB[:64])
    got = bench.one(
        f"%z = arith.constant 0 : index\n%r = pto.vlds %p[%z] : {{p}} -> {reg('f32')}", reg("f32")
    )
    live[:] = -1
    assert got.tolist() == list(range(64))


def test_an_offset_counts_elements_of_the_pointer_not_of_the_register():
    bench = Registers()
    bench.pointer("p", "f16, ub", np.arange(512))
    bench.scalar("at", "index", 128)
    got = bench.one(f"%r = pto.vlds %p[%at] : {{p}} -> {reg('ui8')}", reg("ui8"))
    assert got.view(np.float16).tolist() == list(range(128, 256))


@pytest.mark.parametrize("elem", ["ui8", "i16", "f32"])
def test_brc_repeats_one_item_of_its_own_width(elem):
    data = np.frombuffer(bytes(range(1, 129)), np.uint8)
    for bits in (8, 16, 32):
        bench = Registers()
        bench.pointer("b", "ui8, ub", data)
        bench.pointer(
            "p",
            f"{elem}, ub",
            data.view(np.uint8)[:64].view({"ui8": "u1", "i16": "i2", "f32": "f4"}[elem]),
        )
        bench.scalar("at", "index", 4)
        got = bench.one(
            f'%r = pto.vlds %p[%at] {{dist = "BRC_B{bits}"}} : {{p}} -> {reg(elem)}', reg(elem)
        )
        size = {"ui8": 1, "i16": 2, "f32": 4}[elem]
        want = bytes(data[4 * size : 4 * size + bits // 8]) * (256 * 8 // bits)
        assert got.tobytes() == want


def test_brc_needs_the_alignment_of_its_item_only():
    assert loaded("BRC_B32", "f32", UB[:64], 3).tolist() == [3.0] * 64


@pytest.mark.parametrize("bits, elem", [(8, "ui8"), (16, "ui16")])
def test_us_doubles_and_ds_keeps_every_second(bits, elem):
    lanes = 2048 // bits
    data = (UB[: 2 * lanes] * 7) % 256
    assert loaded(f"US_B{bits}", elem, data).tolist() == [data[i // 2] for i in range(lanes)]
    assert loaded(f"DS_B{bits}", elem, data).tolist() == [data[2 * i] for i in range(lanes)]


@pytest.mark.parametrize("bits, elem", [(8, "ui8"), (16, "i16"), (32, "f32")])
def test_unpk_puts_zeros_between(bits, elem):
    lanes = 2048 // bits
    got = loaded(f"UNPK_B{bits}", elem, UB[:lanes] % 100 + 1)
    assert got[::2].tolist() == [i % 100 + 1 for i in range(lanes // 2)]
    assert not got[1::2].any()


def test_unpk4_makes_words_of_bytes():
    got = loaded("UNPK4", "ui8", UB[:256])
    assert got.view(np.uint32).tolist() == list(range(64))


@pytest.mark.parametrize("dist", ["BRC_BLK", "BLK"])
def test_brc_blk_repeats_a_32_byte_block(dist):
    assert loaded(dist, "f32", UB[:64], 8).tolist() == list(range(8, 16)) * 8


@pytest.mark.parametrize("bits, elem, copies", [(16, "f16", 16), (32, "f32", 8)])
def test_e2b_fills_block_g_with_item_g(bits, elem, copies):
    got = loaded(f"E2B_B{bits}", elem, UB[:256], 8)
    assert got.tolist() == [8 + g for g in range(8) for _ in range(copies)]


@pytest.mark.parametrize(
    "dist, elem, step",
    [
        ("SPLT4CHN", "ui8", 4),
        ("SPLT4CHN_B8", "ui8", 4),
        ("SPLT2CHN_B8", "ui8", 2),
        ("SPLT2CHN_B16", "i16", 2),
        ("DINTLV_B32", "f32", 2),
    ],
)
def test_split_keeps_channel_0(dist, elem, step):
    data = UB[:1024] % 256
    got = loaded(dist, elem, data)
    assert got.tolist() == [data[step * i] for i in range(got.size)]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_dintlv_follows_the_width_of_its_token(bits):
    bench = Registers()
    raw = np.arange(512, dtype=np.uint32).astype(np.uint8)
    bench.pointer("p", "f32, ub", raw.view(np.float32))
    bench.scalar("at", "index", 0)
    low, high = bench.two(
        f'%r, %s = pto.vldsx2 %p[%at], "DINTLV_B{bits}" : {{p}}, index'
        f" -> {reg('f32')}, {reg('f32')}",
        reg("f32"),
    )
    items = raw.view(f"u{bits // 8}")
    assert low.view(items.dtype).tolist() == items[0::2].tolist()
    assert high.view(items.dtype).tolist() == items[1::2].tolist()


def test_bdintlv_splits_32_byte_blocks():
    bench = Registers()
    bench.pointer("p", "i16, ub", UB[:512])
    bench.scalar("at", "index", 16)
    low, high = bench.two(
        f'%r, %s = pto.vldsx2 %p[%at], "BDINTLV" : {{p}}, index -> {reg("i16")}, {reg("i16")}',
        reg("i16"),
    )
    blocks = UB[16 : 16 + 256].reshape(16, 16)
    assert low.tolist() == blocks[0::2].reshape(-1).tolist()
    assert high.tolist() == blocks[1::2].reshape(-1).tolist()


def test_post_update_loads_at_the_base_and_moves_it_on():
    bench = Registers()
    bench.pointer("p", "f32, ub", UB[:256])
    bench.scalar("at", "index", 64)
    value, moved = bench.two(
        f"%r, %s = pto.vlds %p[%at] : {{p}} -> {reg('f32')}, {{p}}", reg("f32"), "!pto.ptr<f32, ub>"
    )
    assert value.tolist() == list(range(64))
    assert moved.address == bench.values["p"].address + 256


def strided(profile="a5", mask=None, block=2, repeat=4):
    bench = Registers(profile)
    bench.pointer("p", "f32, ub", np.arange(1024))
    bench.scalar("b", "i16", block)
    bench.scalar("s", "i16", repeat)
    bench.mask("m", 32, mask)
    return bench.one(
        f"%r = pto.vsldb %p, %b, %s, %m : {{p}}, i16, i16, {{m}} -> {reg('f32')}", reg("f32")
    )


def test_vsldb_starts_at_repeat_stride_and_steps_by_block_stride():
    want = [8 * (4 + 2 * b) + i for b in range(8) for i in range(8)]
    assert strided().tolist() == want
    assert strided(block=0, repeat=1).tolist() == list(range(8, 16)) * 8


def test_vsldb_masked_blocks_are_zero_and_raise_no_fault():
    got = strided(mask=[0, 2], block=3, repeat=0).reshape(8, 8)
    assert got[0].tolist() == list(range(8))
    assert got[2].tolist() == list(range(48, 56))
    assert not got[[1, 3, 4, 5, 6, 7]].any()
    assert strided(mask=[0], block=8000, repeat=0)[:8].tolist() == list(range(8))
    with pytest.raises(PtoError, match="PTO-M001"):
        strided(mask=[0, 5], block=8000, repeat=0)


def gathered(row, elem, index_elem, data, index, bits, lanes=None):
    bench = Registers()
    bench.pointer("p", f"{elem}, ub", data)
    bench.vreg("i", index_elem, index)
    bench.mask("m", bits, lanes)
    return bench.one(f"%r = pto.{row} %p, %i, %m : {{p}}, {{i}}, {{m}} -> {reg(elem)}", reg(elem))


@pytest.mark.parametrize("row", ["vgather2", "vgather2_bc"])
def test_gather_takes_elements_by_index_and_zeroes_masked_lanes(row):
    index = (np.arange(64) * 37) % 64
    got = gathered(row, "f32", "i32", np.arange(64) + 0.5, index, 32, [0, 1, 2, 63])
    assert got[[0, 1, 2, 63]].tolist() == [i + 0.5 for i in index[[0, 1, 2, 63]]]
    assert not np.delete(got, [0, 1, 2, 63]).any()


def test_gather_takes_an_index_twice():
    assert gathered("vgather2", "f32", "ui32", np.arange(64), [5], 32).tolist() == [5.0] * 64


def test_gather_reads_16_bit_indices_as_unsigned():
    data = np.zeros(40000, np.int16)
    data[[1, 39999]] = 7, 9
    got = gathered(
        "vgather2", "i16", "i16", data, np.array([1, 39999], np.uint16).view(np.int16), 16
    )
    assert got.tolist() == [7, 9] * 64


def test_gather_outside_the_buffer_names_the_lane():
    index = np.zeros(64, np.int32)
    index[7] = 1 << 20
    with pytest.raises(PtoError, match=r"PTO-M141.*lane 7 has index 1048576"):
        gathered("vgather2", "f32", "i32", np.arange(64), index, 32)
    index[7] = -5000
    with pytest.raises(PtoError, match=r"PTO-M141.*lane 7 has index -5000"):
        gathered("vgather2", "f32", "i32", np.arange(64), index, 32)
    assert not gathered("vgather2", "f32", "i32", np.zeros(64), index, 32, [1, 2]).any()


def test_gatherb_takes_blocks_at_byte_offsets():
    index = np.resize([64, 0, 96, 32, 0, 0, 224, 128], 64)
    got = gathered("vgatherb", "f32", "ui32", np.arange(64), index, 32, [0, 1, 2, 3, 6, 7]).reshape(
        8, 8
    )
    firsts = [16, 0, 24, 8, 0, 0, 56, 32]
    for block, start in enumerate(firsts):
        want = [0] * 8 if block in (4, 5) else list(range(start, start + 8))
        assert got[block].tolist() == want


def test_gatherb_needs_whole_blocks():
    with pytest.raises(PtoError, match="PTO-M140"):
        gathered("vgatherb", "f32", "ui32", np.arange(64), [16], 32)


@pytest.mark.parametrize(
    "token, elem, item, step",
    [
        ("STRIDE_S3_B16", "i16", np.int16, 3),
        ("STRIDE_S8_B32", "f32", np.float32, 8),
        ("STRIDE_S4_B64", "f32", np.uint64, 4),
        ("STRIDE_S2_B64", "ui8", np.uint64, 2),
    ],
)
def test_vsld_takes_items_as_its_token_is_spelled(token, elem, item, step):
    bench = Registers()
    raw = np.arange(4096, dtype=np.uint32).astype(np.uint8)
    kind = {"i16": np.int16, "f32": np.float32, "ui8": np.uint8}[elem]
    bench.pointer("p", f"{elem}, ub", raw.view(kind))
    bench.scalar("at", "index", 0)
    got = bench.one(f'%r = pto.vsld %p[%at], "{token}" : {{p}} -> {reg(elem)}', reg(elem))
    items = raw.view(item)
    assert got.tobytes() == items[: got.nbytes // items.itemsize * step : step].tobytes()


def test_norm_at_a_misaligned_address_on_a5_names_the_unaligned_loads():
    with pytest.raises(PtoError, match=r"PTO-M140.*'pto.vlds' op.*0x4") as caught:
        loaded("NORM", "f32", UB[:128], 1)
    assert "pto.vldas and pto.vldus" in str(caught.value.diagnostics[0].help)


@pytest.mark.parametrize("profile", ["cpu", "a2a3"])
def test_norm_takes_any_element_elsewhere(profile):
    assert loaded("NORM", "f32", UB[:128], 1, profile).tolist() == list(range(1, 65))


def test_cpu_takes_any_byte():
    bench = Registers("cpu")
    bench.pointer("p", "ui8, ub", np.arange(512) % 256)
    bench.scalar("at", "index", 3)
    got = bench.one(f"%r = pto.vlds %p[%at] : {{p}} -> {reg('i32')}", reg("i32"))
    assert got.tobytes() == bytes(n % 256 for n in range(3, 259))


def test_a_load_past_the_end_of_ub_is_caught():
    bench = Registers()
    bench.pointer("p", "f32, ub", UB[:64])
    bench.scalar("at", "index", 256 * 1024 // 4 - 32)
    with pytest.raises(PtoError, match="PTO-M001"):
        bench.one(f"%r = pto.vlds %p[%at] : {{p}} -> {reg('f32')}", reg("f32"))


def test_pairs_and_blocks_with_a_base_that_moves_on():
    bench = Registers()
    bench.pointer("p", "f32, ub", np.arange(512))
    bench.scalar("n", "index", 128)
    bench.scalar("one", "i16", 1)
    bench.scalar("two", "i16", 2)
    bench.mask("m", 32)
    low, blocks = bench.two(
        f'%r, %high, %next = pto.vldsx2 %p[%n], "DINTLV_B32" : {{p}}, index'
        f" -> {reg('f32')}, {reg('f32')}, {{p}}\n"
        f"%x, %behind = pto.vsldb %next, %one, %two, %m : {{p}}, i16, i16, {{m}}"
        f" -> {reg('f32')}, {{p}}\n"
        f"%s, %last = pto.vsldb %behind, %one, %two, %m : {{p}}, i16, i16, {{m}}"
        f" -> {reg('f32')}, {{p}}",
        reg("f32"),
    )
    assert low.tolist() == list(range(0, 128, 2))
    assert blocks.tolist() == list(range(144, 208))


def test_gathered_bytes_are_zero_extended():
    bench = Registers()
    bench.pointer("p", "ui8, ub", np.arange(256)[::-1])
    bench.vreg("i", "ui16", np.arange(128) * 2)
    bench.mask("m", 16, 3)
    got = bench.one(
        f"%r = pto.vgather2 %p, %i, %m : {{p}}, {{i}}, {{m}} -> {reg('ui16')}", reg("ui16")
    )
    assert got.tolist() == [255, 253, 251] + [0] * 125


def test_older_programs_count_the_lanes_that_gather():
    bench = Registers()
    bench.pointer("p", "f32, ub", np.arange(64))
    bench.vreg("i", "ui32", np.arange(64)[::-1])
    bench.scalar("n", "index", 3)
    got = bench.one(
        f"%r = pto.vgather2 %p, %i, %n : {{p}}, {{i}}, index -> {reg('f32')}", reg("f32")
    )
    assert got.tolist() == [63, 62, 61] + [0] * 61


def test_the_older_names_of_loads_and_stores_that_move_on():
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.arange(256))
    bench.scalar("n", "index", 64)
    bench.scalar("zero", "index", 0)
    bench.mask("m", 32)
    bench.run(
        f"%v, %q = pto.vlds_post %p[%n] : {{p}} -> {reg('f32')}, {{p}}\n"
        f"%w, %r = pto.vlds_post %q[%n] : {{p}} -> {reg('f32')}, {{p}}\n"
        f"%s = pto.vsts_post %v, %r[%n], %m : {reg('f32')}, {{p}}, {{m}} -> {{p}}\n"
        f'pto.vsts %w, %s[%zero], %m {{dist = "ONEPT_B32"}} : {reg("f32")}, {{p}}, {{m}}'
    )
    assert live[128:192].tolist() == list(range(64)) and live[192] == 64 and live[193] == 193


def test_bytes_are_gathered_into_16_bit_lanes_with_zeros_in_front():
    bench = Registers()
    bench.pointer("p", "ui8, ub", np.arange(256))
    index = (np.arange(128) * 7) % 256
    bench.vreg("i", "ui16", index)
    bench.mask("m", 16)
    text = f"%r = pto.vgather2 %p, %i, %m : {{p}}, {{i}}, {{m}} -> {reg('ui16')}"
    assert bench.one(text, reg("ui16")).tolist() == index.tolist()
