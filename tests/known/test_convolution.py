"""Orders of feature maps and filters, by NumPy's reshape and transpose."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.places import view
from tests.machine import Bench

G, N, C, D, H, W, C0, ROOM = 2, 3, 13, 2, 3, 4, 8, 16
BLOCKS = -(-C // C0)


def blocked(plain: np.ndarray) -> np.ndarray:
    """.., C, H, W -> .., C1, H, W, C0, channels filled up with zeros."""
    *outer, c, h, w = plain.shape
    wide = [(0, 0)] * len(outer) + [(0, -c % C0), (0, 0), (0, 0)]
    return np.moveaxis(np.pad(plain, wide).reshape(*outer, -1, C0, h, w), -3, -1)


def filters(maps: np.ndarray) -> np.ndarray:
    """N, .., C0 -> .., 16, C0, filters filled up with zeros."""
    full = np.pad(maps, [(0, ROOM - maps.shape[0])] + [(0, 0)] * (maps.ndim - 1))
    return np.moveaxis(full, 0, -2)


def numbers(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape)


PLAIN, GROUPS = numbers(N, C, H, W), numbers(G, N, C, H, W)
DEEP = numbers(N, C, D, H, W)
FULL = numbers(N, BLOCKS, H, W, C0)
LATER = np.moveaxis(DEEP, 2, 1)  # depth before channels


def attrs(source: str, target: str, **more: int) -> str:
    given = {"n": N, "c": C, "h": H, "w": W, "c0": C0, **more}
    listed = "".join(f", {name} = {number} : i64" for name, number in given.items())
    return f'{{src_order = "{source}", dst_order = "{target}"{listed}}}'


def turned(profile: str, text: str, src: np.ndarray, count: int) -> np.ndarray:
    bench = Bench(profile)
    room = -(-src.size // C0) * C0
    bench.tile("s", f"vec, 1x{room}xi32", src.reshape(1, -1))
    bench.tile("t", "vec, 16x32xi32")
    bench.tile("d", f"vec, 1x{count}xi32")
    bench.run(f"pto.ttrans_conv ins(%s, %t : {{s}}, {{t}}) outs(%d : {{d}}) {text}")
    return bench["d"].reshape(-1)


@pytest.mark.parametrize(
    ("profile", "source", "target", "more", "src", "want"),
    [
        ("a5", "NCHW", "NC1HWC0", {}, PLAIN, blocked(PLAIN)),
        ("a2a3", "NCHW", "NC1HWC0", {}, PLAIN, blocked(PLAIN)),
        ("a2a3", "GNCHW", "GNC1HWC0", {"g": G}, GROUPS, blocked(GROUPS)),
        ("a5", "NC1HWC0", "FRACTAL_Z", {"c": BLOCKS * C0, "room": ROOM}, FULL, filters(FULL)),
        ("a2a3", "NCDHW", "FRACTAL_Z_3D", {"d": D, "room": ROOM}, DEEP, filters(blocked(LATER))),
        ("a2a3", "NC1HWC0", "NCHW", {}, blocked(PLAIN), PLAIN),
        ("a2a3", "GNC1HWC0", "GNCHW", {"g": G}, blocked(GROUPS), GROUPS),
    ],
)
def test_tiles_in_another_order(profile, source, target, more, src, want):
    count = -(-want.size // C0) * C0
    found = turned(profile, attrs(source, target, **more), src, count)
    assert np.array_equal(found[: want.size], want.reshape(-1))


def test_groups_of_filters_lie_as_far_apart_in_both():
    """GNC1HWC0 to FRACTAL_Z: group after group, each with room for 16 filters in src too."""
    full = numbers(G, N, BLOCKS, H, W, C0)
    src = np.pad(full, [(0, 0), (0, ROOM - N)] + [(0, 0)] * 4, constant_values=-1)
    want = np.stack([filters(group) for group in full])
    text = attrs(
        "GNC1HWC0", "FRACTAL_Z", g=G, c=BLOCKS * C0, room=ROOM, pitch=ROOM
    )  # what lies between is not filters: it does not arrive
    assert np.array_equal(turned("a5", text, src, want.size), want.reshape(-1))


@pytest.mark.parametrize(
    ("source", "target", "more", "src", "want"),
    [
        ("NHWC", "NC1HWC0", {}, np.moveaxis(PLAIN, 1, -1), blocked(PLAIN)),
        ("NCHW", "NC1HWC0", {}, PLAIN, blocked(PLAIN)),
        ("NCHW", "FRACTAL_Z", {"room": ROOM}, PLAIN, filters(blocked(PLAIN))),
        ("NCDHW", "NDC1HWC0", {"d": D}, DEEP, blocked(LATER)),
        (
            *("NCDHW", "FRACTAL_Z_3D", {"d": D, "room": ROOM}, DEEP),
            filters(np.moveaxis(blocked(LATER), 1, 2)),  # channels before depth, in a load
        ),
    ],
)
def test_loads_into_another_order(source, target, more, src, want):
    bench = Bench("a5")
    tile = bench.tile("d", f"mat, 1x{-(-want.size // C0) * C0}xi32")
    view(bench, "v", np.ascontiguousarray(src), "i32")
    text = attrs(source, target, **more)
    bench.run(f"pto.tload_conv ins(%v : {{v}}) outs(%d : {{d}}) {text}")
    assert np.array_equal(tile.read().reshape(-1)[: want.size], want.reshape(-1))


def test_what_sizes_say_must_be_there():
    with pytest.raises(PtoError, match="PTO-S173"):
        turned("a5", attrs("NCHW", "NC1HWC0"), PLAIN[:1], 1024)
    with pytest.raises(PtoError, match="PTO-S173"):
        turned("a5", attrs("NCHW", "NC1HWC0"), PLAIN, 64)


@pytest.mark.parametrize("wrong", [{"c0": 0}, {"h": 0}, {"w": -4, "h": -3}])
def test_sizes_below_one_are_refused_without_checks_too(wrong: dict[str, int]):
    """A block of no channels divided by zero."""
    with pytest.raises(PtoError, match="to be at least 1: it is") as caught:
        turned("a5", attrs("NCHW", "NC1HWC0", **wrong), PLAIN, 1024)
    assert caught.value.code == "PTO-T070"
