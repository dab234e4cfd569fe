"""Memory spaces: bounds, alignment, names, and that nothing is half-written."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Memory, Space, space


def test_bytes_written_are_bytes_read():
    ub = Memory(Space.UB, 1024)
    ub.write(64, np.array([1.5, -2.0], np.float32))
    assert ub.read(64, 8).tobytes() == np.array([1.5, -2.0], np.float32).tobytes()
    ub.write(1020, b"\x01\x02\x03\x04")
    assert ub.read(1020, 4).tolist() == [1, 2, 3, 4]
    assert ub.read(0, 64).any() == np.False_


def test_a_view_writes_through_and_a_read_does_not():
    ub = Memory(Space.UB, 64)
    ub.view(0, 4)[:] = 7
    copy = ub.read(0, 4)
    copy[:] = 9
    assert ub.read(0, 4).tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize(
    ("address", "nbytes"), [(1000, 32), (-4, 4), (1025, 0), (0, 1025), (0, -1)]
)
def test_an_address_outside_names_space_address_and_size(address: int, nbytes: int):
    with pytest.raises(
        PtoError, match=r"l0a address .* outside the buffer of 1024 bytes"
    ) as caught:
        Memory(Space.L0A, 1024).view(address, nbytes)
    assert caught.value.code == "PTO-M001"


def test_a_refused_write_leaves_every_byte_as_it_was():
    ub = Memory(Space.UB, 16)
    with pytest.raises(PtoError):
        ub.write(8, np.full(16, 255, np.uint8))
    with pytest.raises(PtoError):
        ub.write(6, np.full(4, 255, np.uint8), align=4)
    assert not ub.data.any()


def test_a_misaligned_address_is_refused_with_the_aligned_ones_beside_it():
    with pytest.raises(PtoError, match="ub address 0x2a is not a multiple of 32 bytes") as caught:
        Memory(Space.UB, 1024).view(0x2A, 4, align=32)
    assert caught.value.code == "PTO-M002"
    assert str(caught.value.diagnostics[0].help).endswith("0x20 and 0x40")


def test_a_memory_over_an_array_shares_its_bytes():
    backing = np.zeros(16, np.uint8)
    gm = Memory.over(Space.GM, backing)
    gm.write(4, b"\xff")
    assert backing[4] == 255
    assert gm.size == 16


@pytest.mark.parametrize("data", [np.zeros(4, np.int32), np.zeros((2, 2), np.uint8)])
def test_a_memory_is_made_of_a_row_of_bytes(data: np.ndarray):
    with pytest.raises(PtoError) as caught:
        Memory.over(Space.GM, data)
    assert caught.value.code == "PTO-M005"


def test_a_memory_of_negative_size_is_refused():
    with pytest.raises(PtoError) as caught:
        Memory(Space.UB, -1)
    assert caught.value.code == "PTO-M005"


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("gm GM", Space.GM),
        ("ub vec ubuf", Space.UB),
        ("l1 mat cbuf", Space.L1),
        ("l0a left ca", Space.L0A),
        ("l0b right cb", Space.L0B),
        ("l0c acc cc", Space.L0C),
        ("bias bt", Space.BIAS),
        ("scaling fb fixpipe", Space.FIXPIPE),
        ("scale_left", Space.SCALE_A),
        ("scale_right", Space.SCALE_B),
    ],
)
def test_programs_have_several_names_for_a_space(names: str, wanted: Space):
    assert {space(name) for name in names.split()} == {wanted}


def test_an_unknown_space_is_refused():
    with pytest.raises(PtoError, match="unknown memory space `righ`") as caught:
        space("righ")
    assert caught.value.code == "PTO-M003"
    assert "`right`" in str(caught.value.diagnostics[0].help)


def test_only_gm_is_not_local():
    assert [each for each in Space if not each.is_local] == [Space.GM]
