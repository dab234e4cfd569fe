"""Checks of the jit engine: reads of local memory that nobody has written, at their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from examples import flash_attention, gemm_f16, softmax, softmax_registers
from pto import isa
from pto.cli.main import main
from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch

T = "!pto.tile_buf<vec, 16x64xf32, valid={}x{}, blayout=row_major, slayout=none_box, fractal=512>"
WHOLE = T.format(16, 64)


def program(body: str, head: str = "") -> str:
    return (
        'module attributes {pto.target_arch = "a5"} {\n'
        "  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {\n"
        "    %c0 = arith.constant 0 : i64\n"
        "    %c1 = arith.constant 1 : i64\n"
        "    %c256 = arith.constant 256 : i64\n"
        "    %c8192 = arith.constant 8192 : i64\n"
        "    %i0 = arith.constant 0 : index\n"
        "    %i1 = arith.constant 1 : index\n"
        "    %i16 = arith.constant 16 : index\n"
        "    %i64 = arith.constant 64 : index\n"
        "    %i1024 = arith.constant 1024 : index\n"
        f"{head}{body}\n    return\n  }}\n}}\n"
    )


def view(name: str, pointer: str) -> str:
    return (
        f"%{name} = pto.make_tensor_view %{pointer}, shape = [%i16, %i64], strides = [%i64, %i1] "
        ": !pto.tensor_view<?x?xf32>\n"
    )


def tiles(rows: int = 16) -> str:
    return (
        f"%a = pto.alloc_tile addr = %c0 : {T.format(rows, 64)}\n"
        f"%whole = pto.alloc_tile addr = %c0 : {WHOLE}\n"
        f"%b = pto.alloc_tile addr = %c8192 : {WHOLE}\n{view('vx', 'x')}{view('vy', 'y')}"
    )


def run(text: str, **options: Any) -> np.ndarray[Any, Any]:
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    launch(parse(text), args=[x, y], **{"engine": "jit", "check_reads": True, **options})
    return y


def finding(text: str) -> Diagnostic:
    with pytest.raises(PtoError) as caught:
        run(text)
    (found,) = caught.value.diagnostics
    return found


ADD = f"pto.tadd ins(%whole, %whole : {WHOLE}, {WHOLE}) outs(%b : {WHOLE})"
SUM = f"pto.tstore ins(%b : {WHOLE}) outs(%vy : !pto.tensor_view<?x?xf32>)"


def test_a_tile_that_nobody_has_written() -> None:
    text = program(tiles() + ADD)
    found = finding(text)
    assert found.code == "PTO-V250"
    assert (
        "'pto.tadd' op reads src0, of whose 4096 bytes in ub none has been written" in found.message
    )
    assert found.loc and "pto.tadd" in text.splitlines()[found.loc.line - 1]


def test_a_tile_that_is_written_in_part() -> None:
    load = (
        "%part = pto.partition_view %vx, offsets = [%i0, %i0], sizes = [%i5, %i64] "
        ": !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<5x64xf32>\n"
        "pto.tload ins(%part : !pto.partition_tensor_view<5x64xf32>) "
        f"outs(%a : {T.format(5, 64)})\n"
    )
    text = program("%i5 = arith.constant 5 : index\n" + tiles(5) + load + ADD + "\n" + SUM)
    assert "of whose 4096 bytes in ub 1280 have been written" in finding(text).message
    # on cpu a load fills the rest of its tile with zeros
    x = np.arange(1024, dtype=np.float32)
    wanted = np.where(x < 5 * 64, 2 * x, 0)
    assert np.array_equal(run(text.replace('"a5"', '"cpu"')), wanted)


def test_a_tile_that_is_written_before() -> None:
    load = f"pto.tload ins(%vx : !pto.tensor_view<?x?xf32>) outs(%a : {WHOLE})\n"
    found = run(program(tiles() + load + ADD + "\n" + SUM))
    assert np.array_equal(found, 2 * np.arange(1024, dtype=np.float32))


def test_a_store_of_what_nobody_has_written() -> None:
    found = finding(program(tiles() + SUM))
    assert (found.code, found.message.split(",")[0]) == ("PTO-V250", "'pto.tstore' op reads src")


POINTERS = "%p = pto.castptr %c0 : i64 -> !pto.ptr<f32, ub>\n"
VLDS = "%v = pto.vlds %p[%i64] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>\n"
ALL = '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n'


def test_a_register_loaded_from_nowhere() -> None:
    found = finding(program("pto.vecscope {\n" + POINTERS + VLDS + "}"))
    assert found.code == "PTO-V251"
    assert "'pto.vlds' op reads 256 bytes of source at 0x100, of which none" in found.message


def test_a_register_loaded_from_what_was_stored() -> None:
    store = (
        "%one = arith.constant 1.0 : f32\n"
        "%w = pto.vdup %one, %m : f32, !pto.mask<b32> -> !pto.vreg<64xf32>\n"
        "pto.vsts %w, %p[%i64], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>\n"
    )
    out = (
        "pto.mte_ub_gm %p, %y, %c256 nburst(%c1, %c256, %c256) "
        ": !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64"
    )
    body = "pto.vecscope {\n" + POINTERS + ALL + store + VLDS + "}"
    run(program(body))
    assert finding(program(POINTERS + out)).code == "PTO-V251"


@pytest.mark.parametrize("example", [softmax, softmax_registers, gemm_f16, flash_attention])
def test_checks_change_no_result(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = example.example()
    monkeypatch.setenv("PTO_CHECK_READS", "1")
    checked, _ = example.example()
    assert np.array_equal(plain, checked)


def test_what_another_block_or_launch_has_written_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @pto.kernel(profile="a5")
    def part(y: pto.Global[pto.f32], n: pto.Scalar[pto.i64]) -> None:
        t = pto.tile(8, 64, pto.f32)
        if pto.block_idx() < n:
            isa.texpands(t, 1.0)
        isa.tstore(y, t)

    monkeypatch.setenv("PTO_CHECK_READS", "1")
    y = np.zeros((8, 64), np.float32)
    for blocks in (1, 3):
        for n in (blocks, blocks, blocks - 1, blocks):
            if n == blocks:
                part[blocks](y, n, engine="jit")
                continue
            with pytest.raises(PtoError, match="PTO-V250"):
                part[blocks](y, n, engine="jit")


def test_the_reference_engine_has_none() -> None:
    with pytest.raises(PtoError, match="check_reads works on the jit engine only") as caught:
        run(program(tiles()), engine="reference")
    assert caught.value.diagnostics[0].code == "PTO-U092"


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sum.pto"
    path.write_text(program(tiles() + ADD))
    given = ["run", str(path), "--arg", "x=rand:1024xf32", "--arg", "y=zeros:1024xf32"]
    given += ["--engine", "jit"]
    assert main(given) == 0
    assert main([*given, "--check-reads"]) != 0
    said = capsys.readouterr()
    assert "PTO-V250" in said.out + said.err
