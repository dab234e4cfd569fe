"""`pto suite gym --mutate`: counts, output, and a program from the checkout to the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main
from pto.core.render import Piece
from pto.core.selection import select
from pto.gym import mutate
from pto.gym.cases import find_programs
from pto.ir.text.parser import parse, parse_file
from pto.ir.text.printer import print_module
from pto.observe.fixes.mutants import Mutant
from pto.observe.fixes.mutations import PLACES
from pto.suite.result import Result
from tests.observe.test_mutation import ARGS, PROGRAMS

pytestmark = pytest.mark.usefixtures("cxx")

KERNEL = """\
!g = !pto.ptr<f16>
!p = !pto.ptr<f16, ub>
!v = !pto.vreg<128xf16>
!m = !pto.mask<b16>
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @scale_kernel(%v1: !g, %v2: !g, %factor: f16, %n: i32) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant 32 : i64
    %at = arith.constant 512 : i64
    %a = pto.castptr %z : i64 -> !p
    %b = pto.castptr %at : i64 -> !p
    %block = pto.get_block_idx
    %is_first = arith.cmpi eq, %block, %z : i64
    scf.if %is_first {
      pto.mte_gm_ub %v1, %a, %z, %bytes nburst(%one, %bytes, %bytes)
        : !g, !p, i64, i64, i64, i64, i64
      pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      pto.vecscope {
        %all = pto.pset_b16 "PAT_ALL" : !m
        %v = pto.vlds %a[%c0] : !p -> !v
        %w = pto.vmuls %v, %factor, %all : !v, f16, !m -> !v
        pto.vsts %w, %b[%c0], %all : !v, !p, !m
      }
      pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
      pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
      pto.mte_ub_gm %b, %v2, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
      pto.barrier #pto.pipe<PIPE_ALL>
    }
    return
  }
}
"""


@pytest.fixture
def scaling(checkout: Path) -> Path:
    """The checkout, its two programs of one case with a kernel that synchronises itself."""
    family = checkout / "examples" / "pto" / "micro-op" / "scaling"
    for name in ("scale", "scale-again"):
        (family / name / "kernel.pto").write_text(KERNEL)
    return checkout


def test_copies_are_left_out(scaling: Path) -> None:
    programs = find_programs(scaling, select(""))
    assert len(programs) == 3
    names = [p.name for p in mutate.worth_mutating(programs)]
    assert names == ["pto/micro-op/scaling/scale", "tileop/sum"]


def test_the_command_judges_every_flag(scaling: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four flags are missed by somebody, and each pair. Nothing comes after the last barrier, and
    what is scaled may stay where it was."""
    assert main(["suite", "gym", str(scaling), "--mutate", "-j", "1", "-k", "scaling"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.split("\n")]
    assert ["pto/micro-op/scaling/scale", "16", "12", "4", "."] in rows
    assert ["set_flag", "2", "2", ".", "."] in rows
    assert ["barrier", "1", ".", "1", "."] in rows
    for kind in ("pair of flags", "wrong pipe", "late wait", "early set"):
        assert [*kind.split(), "2", "2", ".", "."] in rows
    assert ["overlapping", "addresses", "2", ".", "2", "."] in rows
    assert "harmless pto.barrier #pto.pipe<PIPE_ALL>: pto/micro-op/scaling/scale:30" in out
    assert "12 found, 4 harmless, 0 missed of 16 mutants of 1 programs" in out
    assert "early, late, random:1" in out


def test_as_json(scaling: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["suite", "gym", str(scaling), "--mutate", "-j", "1", "--json", "-k", "scaling"]) == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["totals"] == {"found": 12, "harmless": 4, "missed": 0}
    (mutants,) = data["programs"].values()
    assert [m["line"] for m in mutants][:5] == [19, 20, 27, 28, 30]


def text(pieces: list[Piece]) -> str:
    return "".join(part for _, part in pieces)


def result(*mutants: Mutant) -> Result:
    return Result("a/b", "a/b", "a", "passed", facts={"mutants": mutants})


FOUND = Mutant("set_flag", "pto.set_flag", 3, "found", "PTO-D201")
MISSED = Mutant("barrier", "pto.barrier", 7, "missed", "late: other values")


def test_a_missed_mutant_is_named_and_is_a_failure() -> None:
    results = [result(FOUND, MISSED)]
    assert not mutate.is_good(results)
    assert mutate.is_good([result(FOUND)])
    assert "missed pto.barrier: a/b:7 (late: other values)" in text(mutate.unfound(results))
    assert "1 found, 0 harmless, 1 missed of 2 mutants" in text(mutate.summary(results, 1.0))


def test_a_program_that_does_not_run_is_a_failure_too() -> None:
    failed = Result("a/b", "a/b", "a", "failed", "run")
    assert not mutate.is_good([failed])


def test_each_entry_of_a_program_is_mutated_once() -> None:
    module = parse_file(PROGRAMS / "vector_scope.pto")
    args = ARGS["vector_scope"]()
    first = mutate.launch_mutated(module, args=args, check=False)
    again = mutate.launch_mutated(module, args=ARGS["vector_scope"](), check=False)
    assert len([m for m in first.mutants if m.op in ("set_flag", "wait_flag")]) == 4
    assert again.mutants == ()
    assert np.abs(args[1]).max() > 0  # the whole program ran too


def test_bytes_behind_what_the_host_owns_are_no_result() -> None:
    """The store is longer than the array, whose page goes on: behind 32 bytes of result it takes
    what was loaded, from wherever the result is put."""
    text = KERNEL.replace("%bytes, %bytes)", "%more, %more)").replace('"PAT_ALL"', '"PAT_VL16"')
    text = text.replace("%v1, %a, %z, %bytes", "%v1, %a, %z, %more").replace(
        "%b, %v2, %bytes", "%b, %v2, %more"
    )
    module = parse(text.replace("%at =", "%more = arith.constant 1024 : i64\n    %at ="))
    args = [np.arange(1, 513, dtype=np.float16), np.zeros(512, np.float16), 2.0, 512]

    def places(*asked: int) -> list[str]:
        launched = mutate.launch_mutated(parse(print_module(module)), args=args, asked=asked)
        return [m.judgement for m in launched.mutants if m.op == PLACES]

    assert places(1024, 32, 0, 0) == ["harmless", "harmless"]
    assert places(1024, 64, 0, 0) == ["missed", "missed"]


# ---- schedules of a checkout


@pytest.mark.parametrize("schedule", ["early", "late", "random:3"])
def test_a_case_in_order_passes_under_every_schedule(
    scaling: Path, schedule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["suite", "gym", str(scaling), "-k", "scaling", "-j", "1", "--schedule", schedule]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "2 passed of 2 cases" in out
    assert f"engine reference, schedule {schedule}" in out


def test_a_race_fails_its_case_under_a_schedule(scaling: Path) -> None:
    path = scaling / "examples" / "pto" / "micro-op" / "scaling" / "scale" / "kernel.pto"
    lines = [line for line in KERNEL.split("\n") if "PIPE_MTE2" not in line]
    path.write_text("\n".join(lines))
    words = ["suite", "gym", str(scaling), "-k", "scaling/scale and not again", "-j", "1"]
    assert main(words) == 0
    assert main([*words, "--schedule", "late"]) == 1
