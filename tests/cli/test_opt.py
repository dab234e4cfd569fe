"""`pto opt`: what each pass does to a short program, worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.run.jit.emit.fusion import FusingEmitter

Capture = pytest.CaptureFixture[str]
TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
BODY = f"""
func.func @k(%x: {VIEW}, %n: index) {{
  %c4 = arith.constant 4 : index
  %a = pto.alloc_tile : {TILE}
  %b = pto.alloc_tile : {TILE}
  pto.tload ins(%x : {VIEW}) outs(%a : {TILE})
  %p = arith.muli %n, %c4 : index
  %q = arith.muli %n, %c4 : index
  %r = arith.addi %p, %q : index
  pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})
  pto.tstore ins(%b : {TILE}) outs(%x : {VIEW})
  return
}}"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "k.pto"
    path.write_text(BODY)
    return str(path)


def names(text: str) -> list[str]:
    (function,) = parse(text).functions()
    return [op.name.partition(".")[2] for op in function.regions[0].block.ops]


ALL = [*["constant", "alloc_tile", "alloc_tile", "tload", "muli", "muli", "addi"], "tadd", "tstore"]


@pytest.mark.parametrize(
    ("passes", "gone", "new"),
    [
        (["tidy"], ["muli"], []),
        (["unused"], ["muli", "muli", "addi", "constant"], []),
        (["reuse"], ["alloc_tile"], []),
        (["addresses"], [], ["constant", "constant"]),
        (["scratch"], [], []),
        (["tidy", "reuse"], ["muli", "alloc_tile"], []),
    ],
    ids="+".join,
)
def test_a_pass(passes: list[str], gone: list[str], new: list[str], file: str, capsys: Capture):
    words = [word for name in passes for word in ("--pass", name)]
    assert main(["opt", *words, file, "--profile", "a2a3"]) == 0
    text = capsys.readouterr().out
    left = [*ALL, "return", *new]
    for name in gone:
        left.remove(name)
    assert sorted(names(text)) == sorted(left)


@pytest.mark.parametrize(("profile", "more"), [("a2a3", 2 * 2 * 16 * 16), ("a5", 0)])
def test_a_function_for_both_cores_becomes_two(
    profile: str, more: int, tmp_path: Path, capsys: Capture
):
    """The accumulator goes to the vector core through a queue, on a2a3 with slots in an array."""

    @pto.kernel(profile=profile)
    def double(x: pto.Global[pto.f16], z: pto.Global[pto.f16], y: pto.Global[pto.f32]) -> None:
        product = pto.load(x, 16, 16) @ pto.load(z, 16, 16)
        pto.store(y, product + product)

    x, z = (np.arange(256).reshape(16, 16) % n for n in (7, 5))
    arrays = [x.astype(np.float16), z.astype(np.float16), np.zeros((16, 16), np.float32)]
    double.module(*arrays)
    path = tmp_path / "k.pto"
    path.write_text(double.ir)
    for passes in (["split"], ["split", "sync"]):
        words = [word for name in passes for word in ("--pass", name)]
        assert main(["opt", *words, str(path)]) == 0
        made = parse(capsys.readouterr().out)
        assert [f.side() for f in made.functions()] == ["cube", "vector"]
        arrays[2][:] = 0
        slots = [np.zeros(more, np.float32)] if more else []
        pto.launch(made, args=[*arrays, *slots])
        assert (arrays[2] == 2 * (x @ z)).all()


def test_results_over_a_source_are_that_tile(file: str, capsys: Capture):
    assert main(["opt", "--pass", "reuse", file]) == 0
    text = capsys.readouterr().out
    assert "ins(%a, %a" in text and "outs(%a" in text.split("pto.tadd")[1].splitlines()[0]
    assert "pto.tstore ins(%a" in text


OPEN = TILE.replace(">", ", valid=?x64>")
STORE = f"pto.tstore ins(%a : {TILE}) outs(%x : {VIEW})"
POINTER = f"%at = pto.tile_buf_addr %a : {TILE} -> !pto.ptr<f32, ub>"
LOOP = f"""%l = scf.for %i = %n to %c4 step %c4 iter_args(%t = %a) -> ({TILE}) {{
    scf.yield %t : {TILE}
  }}"""
NEEDED = {  # operations before and behind the sum
    "read later": ("", STORE),
    "a pointer": (POINTER, ""),
    "a loop": (LOOP, STORE.replace("%a", "%l")),
}


@pytest.mark.parametrize(("before", "behind"), NEEDED.values(), ids=NEEDED)
def test_a_tile_that_is_still_needed_is_not_written_over(
    before: str, behind: str, tmp_path: Path, capsys: Capture
):
    text = BODY.replace("  pto.tadd", f"  {before}\n  pto.tadd")
    path = tmp_path / "k.pto"
    path.write_text(text.replace("  return", f"  {behind}\n  return"))
    assert main(["opt", "--pass", "reuse", str(path)]) == 0
    assert names(capsys.readouterr().out).count("alloc_tile") == 2


@pytest.mark.parametrize(("other", "left"), [("%c8", 1), ("%c4", 2)])
def test_a_tile_of_another_region_is_not_written_over(
    other: str, left: int, tmp_path: Path, capsys: Capture
):
    text = BODY.replace("%c4 =", "%c8 = arith.constant 8 : index\n  %c4 =").replace(TILE, OPEN)
    text = text.replace("%a = pto.alloc_tile", "%a = pto.alloc_tile valid_row = %c8")
    text = text.replace("%b = pto.alloc_tile", f"%b = pto.alloc_tile valid_row = {other}")
    path = tmp_path / "k.pto"
    path.write_text(text)
    assert main(["opt", "--pass", "reuse", str(path), "--profile", "cpu"]) == 0
    assert names(capsys.readouterr().out).count("alloc_tile") == left


def test_sync_orders_pipes_and_writes_a_file(file: str, tmp_path: Path, capsys: Capture):
    made = tmp_path / "made.pto"
    assert main(["opt", "--pass", "sync", file, "--profile", "a2a3", "-o", str(made)]) == 0
    assert capsys.readouterr().out == ""
    found = names(made.read_text())
    assert (found.count("set_flag"), found.count("wait_flag")) == (2, 2)
    assert found.index("tload") < found.index("set_flag") < found.index("wait_flag")


def test_an_unknown_pass_and_a_program_that_is_not_legal(tmp_path: Path, capsys: Capture):
    known = tmp_path / "k.pto"
    known.write_text(BODY)
    assert main(["opt", "--pass", "inline", str(known)]) == 2
    assert "`inline` is no pass" in capsys.readouterr().err
    wrong = tmp_path / "wrong.pto"
    wrong.write_text(BODY.replace("outs(%b", "outs(%n").replace(f"%n : {TILE}", "%n : index"))
    assert main(["opt", "--pass", "tidy", str(wrong)]) == 1
    assert "wrong.pto:10" in capsys.readouterr().err


SOFTMAX = """
import pto

@pto.kernel(profile="a5")
def rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    t = pto.load(x[:, :], 16, 128)
    e = pto.exp(t - t.max(axis=1))
    pto.store(y[:, :], e / e.sum(axis=1))
"""


def test_the_stages_of_the_compiled_engine(tmp_path: Path, capsys: Capture) -> None:
    """`--show`: the instructions of a softmax are one loop on 16 x 128 elements."""
    path = tmp_path / "k.py"
    path.write_text(SOFTMAX)
    shown: dict[str, str] = {}
    for stage in ("groups", "nests", "llvm"):
        arrays = [word for name in "xy" for word in ("--arg", f"{name}=zeros:16x128")]
        assert main(["opt", f"{path}:rows", "--show", stage, *arrays]) == 0
        shown[stage] = capsys.readouterr().out
    title, *ops = (line.strip() for line in shown["groups"].splitlines())
    assert title == "group 1: 7 instructions in one loop"
    assert [op.partition(" ")[0].removeprefix("pto.") for op in ops] == [
        *("tload", "trowmax", "trowexpandsub", "texp", "trowsum", "trowexpanddiv", "tstore")
    ]
    assert ops[0].endswith("(line 6)") and ops[-1].endswith("(line 8)")
    _, head, *body = shown["nests"].splitlines()
    assert head.startswith("for i < ") and ", j < 128" in head
    results = [line.split(" = ")[1] for line in body[1:6]]
    starts = ("fold of maximum over j", "sub(", "exp(", "fold of add over j", "div(")
    assert all(map(str.startswith, results, starts)), results
    assert "define" in shown["llvm"] and "fdiv" in shown["llvm"]


ROOT = Path(__file__).parents[2]


def test_the_stages_of_the_readme_are_those_of_the_documentation(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/architecture.md has the printed text; the numbers of SSA names are arbitrary."""
    monkeypatch.setattr(FusingEmitter, "forwards", True)  # as it is outside of tests
    source = (ROOT / "README.md").read_text().split('```python title="softmax.py"\n')[1]
    path = tmp_path / "softmax.py"
    path.write_text(source.split("x = np.random")[0])
    page = (ROOT / "docs/architecture.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    shown = [block for block in blocks if "group 1" in block or "%v" in block]
    assert len(shown) == 3
    for stage, block in zip(("groups", "nests", "llvm"), shown, strict=True):
        arrays = [word for name in "xy" for word in ("--arg", f"{name}=zeros:100x128")]
        assert main(["opt", f"{path}:softmax_rows", "--show", stage, *arrays]) == 0
        printed = re.sub(r"%v\d+", "%v", capsys.readouterr().out)
        assert re.sub(r"%v\d+", "%v", block) in printed
