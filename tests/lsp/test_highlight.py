"""Colours: every word of the test programs has one, and the grammar in the repository is the table's."""  # noqa: E501

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pygments", reason="Pygments is not installed")

from pygments.token import Error, Name, String

from pto.ir.text import lexer as lx
from pto.lsp.highlight import PtoLexer, grammar

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "pto" / "good").glob("*.pto"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_words_are_those_of_the_lexer(path: Path) -> None:
    text = path.read_text("utf-8")
    found = [(kind, word) for _, kind, word in PtoLexer().get_tokens_unprocessed(text)]
    assert [word for kind, word in found if kind is Error] == []
    tokens = lx.Tokens(str(path), text)
    pairs = list(zip(tokens.kinds, tokens.texts, strict=True))
    plain = [word for kind, word in pairs if kind == lx.VALUE]
    assert [word for kind, word in found if kind is Name.Variable] == plain
    strings = [word for kind, word in pairs if kind == lx.STRING]
    assert [word for kind, word in found if kind is String.Double][: len(strings)] == strings


def test_the_grammar_of_the_extension_is_made_from_the_table() -> None:
    kept = ROOT / "editors" / "vscode" / "pto.tmLanguage.json"
    assert json.loads(kept.read_text("utf-8")) == grammar()


def test_pygments_finds_it_by_its_name() -> None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        found = get_lexer_by_name("pto")
    except ClassNotFound:
        pytest.skip("the package is not installed, so it has no entry points")
    assert type(found).__name__ == "PtoLexer"
