"""Transfers that are refused: what the message says, and that nothing was written before it."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.transfers import FILL, Transfers

BYTES = (np.arange(4096) % 251).astype(np.uint8)


def moved(body, *, profile="a5", address=0):
    """UB after a body that copies from %g (gm) to %u (ub)."""
    bench = Transfers(profile)
    bench.pointer("g", "ui8, gm", BYTES)
    bench.at("u", "ui8, ub", address)
    bench.go(body)
    return bench.memory(Space.UB)


def failure(body, code, **options):
    with pytest.raises(PtoError) as caught:
        moved(body, **options)
    assert caught.value.code == code
    return str(caught.value)


def test_a_burst_outside_gm_is_named_and_nothing_is_written():
    bench = Transfers()
    bench.pointer("g", "ui8, gm", BYTES[:256])
    bench.at("u", "ui8, ub", 0)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_gm_ub %g, %u, #0, #64 nburst(#5, #64, #64) : {g}, {u}, i64*5")
    assert caught.value.code == "PTO-M161"
    message = str(caught.value)
    assert "'pto.mte_gm_ub' op: burst 4 reads gm bytes 0x100 to 0x140" in message
    assert "outside the buffer of 0x100 bytes" in message
    assert (bench.memory(Space.UB) == FILL).all()


def test_a_burst_outside_ub_names_its_loops():
    message = failure(
        "pto.mte_gm_ub %g, %u, #0, #32 nburst(#2, #32, #32) loop(#4, #0, #64) : {g}, {u}, i64*5,"
        " loop i64*3",
        "PTO-M161",
        address=256 * 1024 - 128,
    )
    assert "burst 0 of loop 2 writes ub bytes 0x40000 to 0x40020" in message


def test_padding_outside_ub_is_found_too():
    failure(
        "%v = arith.constant 1 : i8\n"
        "pto.mte_gm_ub %g, %u, #0, #4 nburst(#1, #32, #32) pad(%v, #0, #60) : {g}, {u}, i64*5,"
        " pad i8, i64*2",
        "PTO-M161",
        address=256 * 1024 - 32,
    )


@pytest.mark.parametrize("profile, fails", [("a5", True), ("a2a3", True), ("cpu", False)])
def test_bursts_start_at_blocks_where_the_profile_asks_for_it(profile, fails):
    body = "pto.mte_gm_ub %g, %u, #0, #8 nburst(#2, #8, #24) : {g}, {u}, i64*5"
    if fails:
        assert "24 bytes apart in ub" in failure(body, "PTO-M164", profile=profile)
    else:
        assert moved(body, profile=profile)[24:32].tolist() == BYTES[8:16].tolist()


def test_an_address_between_blocks():
    body = "pto.mte_gm_ub %g, %u, #0, #8 nburst(#1, #8, #32) : {g}, {u}, i64*5"
    assert "0x11 is not a multiple of 32" in failure(body, "PTO-M164", address=0x11)


@pytest.mark.parametrize(
    "numbers", ["#-32 nburst(#1, #0, #0)", "#32 nburst(#-1, #0, #0)", "#32 nburst(#2, #-64, #32)"]
)
def test_negative_numbers(numbers):
    body = (
        f"%m = arith.subi #0, #32 : i64\npto.mte_gm_ub %g, %u, #0, {numbers} : {{g}}, {{u}}, i64*5"
    )
    failure(body, "PTO-S160")


def test_absurd_transfers_are_refused_quickly():
    failure(
        "pto.mte_gm_ub %g, %u, #0, #32 nburst(#2097151, #0, #0) loop(#2097151, #0, #0)"
        " : {g}, {u}, i64*5, loop i64*3",
        "PTO-M162",
    )
    failure("pto.mte_gm_ub %g, %u, #0, #32 nburst(#2097151, #0, #0) : {g}, {u}, i64*5", "PTO-M162")


def test_vector_without_a_cube_has_no_l1():
    bench = Transfers(side="vector")
    bench.at("a", "i16, ub", 0)
    bench.at("b", "i16, l1", 0)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_ub_l1 %a, %b, #2 nburst(#2, #1, #0) : {a}, {b}, i64*4")
    assert caught.value.code == "PTO-M160"


def test_a_cube_without_vectors_has_no_ub():
    bench = Transfers(side="cube")
    bench.at("a", "i16, l1", 0)
    bench.at("b", "i16, ub", 0)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_l1_ub %a, %b, #2 nburst(#2, #1, #0) : {a}, {b}, i64*4")
    assert caught.value.code == "PTO-M111"


def test_pad_elements_without_the_bit_are_not_defined():
    message = failure(
        "pto.copy_gm_to_ubuf %g, %u, #0, #1, #12, #0, #2, #false, #0, #12, #32"
        " : {g}, {u}, i64*5, i1, i64*3",
        "PTO-S161",
    )
    assert "the ISA does not define the padding value" in message


def test_an_atomic_burst_is_whole_elements():
    with pytest.raises(PtoError) as caught:
        moved("pto.set_atomic_s32\npto.mte_ub_gm %u, %g, #6 nburst(#1, #32, #32) : {u}, {g}, i64*4")
    assert caught.value.code == "PTO-M163"
