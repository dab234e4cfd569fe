"""A document that changes: what is found is what `pto check` finds, and little is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.lsp.document import Document
from pto.verify import judge

ROOT = Path(__file__).parents[1] / "pto"
FILES = sorted([*(ROOT / "good").glob("*.pto"), *(ROOT / "bad").glob("*.pto")])
TILE = "!pto.tile_buf<vec, 16x64xf32>"
FUNCTION = f"""
  // about @NAME
  func.func @NAME(%n: index) {{
    %t = pto.alloc_tile : {TILE}
    pto.texp ins(%t : {TILE}) outs(%t : {TILE})
    return
  }}
"""


def program(*names: str) -> str:
    body = "".join(FUNCTION.replace("NAME", name) for name in names)
    return f'!t = {TILE}\nmodule attributes {{pto.target_arch = "a5"}} {{{body}}}\n'


def checked(text: str, file: str) -> list[Diagnostic]:
    try:
        return judge(parse(text, file))[1]
    except PtoError as error:
        return list(error.diagnostics)


def shown(findings: list[Diagnostic]) -> list[str]:
    return sorted({f"{d} {d.notes}" for d in findings})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_found_is_what_check_finds(path: Path) -> None:
    text = path.read_text("utf-8")
    document = Document(str(path))
    document.update(text)
    assert shown(document.findings) == shown(checked(text, str(path)))
    document.update("\n\n" + text)
    assert shown(document.findings) == shown(checked("\n\n" + text, str(path)))


def test_there_are_programs_of_several_functions_among_them() -> None:
    assert sum(path.read_text("utf-8").count("func.func") > 2 for path in FILES) > 10


def test_a_change_reads_the_function_it_is_in() -> None:
    document = Document("f.pto")
    document.update(program("a", "b", "c", "d"))
    assert (document.read, len(document.pieces), document.findings) == (5, 5, [])
    text = program("a", "b", "c", "d").replace("%t : !pto", "%u : !pto", 3)
    document.update(text)
    assert document.read == 2  # texp of @a, and the first operand of @b
    assert shown(document.findings) == shown(checked(text, "f.pto"))


def test_a_change_keeps_the_use_lists() -> None:
    document = Document("k.pto")
    for names in (("a", "b"), ("a", "c", "b"), ("b",), ("a", "b")):
        document.update(program(*names))
        assert document.module is not None
        ops = list(document.module.walk())
        values = {value for op in ops for value in op.operands}
        assert values
        for value in values:
            assert value.uses == [op for op in ops for each in op.operands if each is value]
        assert all(op.parent is None or op in op.parent.ops for op in ops)


def test_a_function_that_moves_keeps_its_findings_at_their_new_lines() -> None:
    bad = program("a", "b").replace("texp ins(%t :", "texp ins(%n :")
    document = Document("f.pto")
    document.update(bad)
    first = [d.loc.line for d in document.findings if d.loc]
    moved = bad.replace("  // about @a", "\n\n  // about @a")
    document.update(moved)
    assert document.read == 1  # what stands before the first function
    assert [d.loc.line for d in document.findings if d.loc] == [line + 2 for line in first]
    assert shown(document.findings) == shown(checked(moved, "f.pto"))


@pytest.mark.parametrize(
    "break_it",
    [
        lambda text: text.replace("return\n  }", "return\n", 1),
        lambda text: text.replace("return\n  }", "return\n  }\n  }", 1),
        lambda text: text + "}\n",
        lambda text: text.replace("outs(", "outs(%", 1),
        lambda text: text.replace("// about @b", 'module { func.func @b() { return } }\n "'),
        lambda text: text.replace("@b(", "@a("),
        lambda text: text.replace("// about @b", "!t = f32"),
    ],
)
def test_broken_texts_are_told_the_same_and_mending_reads_little(break_it) -> None:
    whole = program("a", "b", "c")
    document = Document("f.pto")
    document.update(whole)
    text = break_it(whole)
    document.update(text)
    assert shown(document.findings) == shown(checked(text, "f.pto"))
    document.update(whole)
    assert document.findings == [] and document.read <= 2


def test_what_holds_between_functions_is_judged_anew() -> None:
    caller = program("a", "b").replace("return", "func.call @c(%n) : (index) -> ()\n    return", 1)
    document = Document("f.pto")
    document.update(caller)
    assert [d.code for d in document.findings] == ["PTO-S102"]
    document.update(caller.replace("@b(", "@c("))
    assert document.findings == [] and document.read == 1


def test_a_target_may_be_asked_for() -> None:
    text = program("a", "b").replace("xf32", "xbf16")
    document = Document("f.pto", profile="a2a3")
    document.update(text)
    wanted = judge(parse(text, "f.pto"), profile="a2a3")[1]
    assert wanted and shown(document.findings) == shown(wanted)
