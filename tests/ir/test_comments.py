"""Comments of a program that is printed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.ir.copied import same
from pto.ir.text.comments import formatted
from pto.ir.text.parser import parse

FILES = sorted((Path(__file__).parents[1] / "pto" / "good").glob("*.pto"))
BEFORE = """\
// top
module {
  // about f
  func.func @f(%a: index) { // beside f
        %c0 = arith.constant 0 : index // zero


    %s = pto.get_block_idx {name = "// no comment"}
    // loop
    scf.for %i = %c0 to %a step %a { // head
      // first
      pto.barrier
           #pto.pipe<PIPE_ALL> // inside an operation
      // end of loop
    }
    return
    // last
  } // after f

  // end of module
}
// bottom
"""
AFTER = """\
// top
module {
  // about f
  func.func @f(%a: index) {  // beside f
    %c0 = arith.constant 0 : index  // zero

    %s = pto.get_block_idx {name = "// no comment"}
    // loop
    scf.for %i = %c0 to %a step %a {  // head
      // first
      pto.barrier #pto.pipe<PIPE_ALL>
      // inside an operation
      // end of loop
    }
    return
    // last
  }
  // after f

  // end of module
}
// bottom
"""


def test_each_comment_stays_with_its_operation() -> None:
    assert formatted(BEFORE) == AFTER


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_comment_is_lost_and_a_second_time_changes_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    once = formatted(text)
    assert formatted(once) == once
    assert once.count("//") >= text.count("//")
    assert same(parse(once).op, parse(text).op)
