"""What the scalar unit reads and writes: other pipes wait for it, as they do for each other."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import choose

_PROGRAM = """
!tile = !pto.tile_buf<vec, 1x64xf32>
!view = !pto.tensor_view<1x64xf32>
!part = !pto.partition_tensor_view<1x64xf32>
module attributes {{pto.target_arch = "{profile}"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i64
    %nine = arith.constant 9.0 : f32
    %from = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !view
    %to = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !view
    %in = pto.partition_view %from, offsets = [%c0, %c0], sizes = [%c1, %c64] : !view -> !part
    %out = pto.partition_view %to, offsets = [%c0, %c0], sizes = [%c1, %c64] : !view -> !part
    %t = pto.alloc_tile {place} : !tile
    pto.tload ins(%in : !part) outs(%t : !tile)
    {first}
    {access}
    {second}
    {last}
    return
  }}
}}
"""


def _flag(src: str, dst: str) -> str:
    name = f"[#pto.pipe<PIPE_{src}>, #pto.pipe<PIPE_{dst}>, #pto.event<EVENT_ID0>]"
    return f"pto.set_flag{name}\n    pto.wait_flag{name}"


def _args() -> list[np.ndarray]:
    return [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]


WRITE = "pto.tsetval ins(%c1, %nine : index, f32) outs(%t : !tile)"
READ = "%v = pto.tgetval ins(%t, %c1 : !tile, index) outs : f32"
STORE = "pto.tstore ins(%t : !tile) outs(%out : !part)"
AGAIN = "pto.tload ins(%in : !part) outs(%t : !tile)"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("access", "pipe", "last", "code"),
    [(WRITE, "MTE3", STORE, "PTO-R001"), (READ, "MTE2", AGAIN, "PTO-R002")],
)
def test_a_scalar_access_needs_a_flag(
    profile: str, access: str, pipe: str, last: str, code: str
) -> None:
    def codes(second: str) -> list[str]:
        parts = {"place": "addr = %zero", "first": _flag("MTE2", "S"), "second": second}
        text = _PROGRAM.format(profile=profile, access=access, last=last, **parts)
        return [d.code for d in sanitize(parse(text), args=_args()).findings]

    assert codes("") == [code]
    assert codes(_flag("S", pipe)) == []
    assert codes("pto.barrier #pto.pipe<PIPE_ALL>") == []


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_inserted_flags_wait_for_scalar_writes(profile: str) -> None:
    none = {"place": "", "first": "", "second": ""}
    text = _PROGRAM.format(profile=profile, access=WRITE, last=STORE, **none)
    made = insert(parse(text), choose(profile_name=profile).profile)
    flags = [op for op in made.walk() if op.name == "pto.wait_flag"]
    assert [op.attrs["dst_pipe"].value for op in flags] == ["PIPE_S", "PIPE_MTE3"]  # type: ignore[attr-defined]
    assert sanitize(made, args=_args()).findings == ()
    args = _args()
    launch(made, args=args, schedule="late")
    assert args[1].tolist() == [0.0, 9.0, *range(2, 64)]
