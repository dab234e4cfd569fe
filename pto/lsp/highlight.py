"""Syntax highlighting without a server: a grammar for Pygments and for TextMate.

Both come from one table; `python -m pto.lsp.highlight` writes the grammar of the VS Code extension.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

# (expression, Pygments' token, TextMate's scope); the first match counts. The words are those of
# the lexer (pto/ir/text/lexer.py); a test compares them.
RULES: list[tuple[str, Any, str]] = [
    (r"//[^\n]*", Comment.Single, "comment.line.double-slash"),
    (r'"(?:[^"\\\n]|\\.)*"', String.Double, "string.quoted.double"),
    (r"%[\w$.-]+(?:#\d+)?", Name.Variable, "variable.other"),
    (r"@(?:[\w$.-]+|\"[^\"\n]*\")", Name.Function, "entity.name.function"),
    (r"\^[\w$.-]+", Name.Label, "entity.name.label"),
    (r"![A-Za-z_][\w.$]*", Keyword.Type, "support.type"),
    (r"#[A-Za-z_][\w.$]*", Name.Constant, "constant.language"),
    (
        r"\b(?:[su]?i\d+|ui\d+|b?f\d+|f8E\w+|index)\b|\b(?:memref|vector)(?=<)",
        Keyword.Type,
        "storage.type",
    ),
    (r"-?\b0x[0-9a-fA-F]+\b", Number.Hex, "constant.numeric"),
    (r"(?:(?:\b\d+|\?)x)+", Number.Integer, "constant.numeric"),
    (r"-?\b\d+\.\d*(?:[eE][-+]?\d+)?", Number.Float, "constant.numeric"),
    (r"-?\d+", Number.Integer, "constant.numeric"),
    (r"\b(?:func|scf|arith|math|memref|builtin|llvm)\.[\w.]+", Keyword, "keyword.control"),
    (r"\b(?:module|return|attributes|to|step|iter_args|else)\b", Keyword, "keyword.control"),
    (r"\bpto\.[\w.]+", Name.Builtin, "support.function"),
    (r"\b(?:true|false)\b", Keyword.Constant, "constant.language"),
    (r"[A-Za-z_][\w$.]*", Name.Attribute, "variable.parameter"),
    (r"->|[=*+/|?-]", Operator, "keyword.operator"),
    (r"[(){}\[\]<>,:]", Punctuation, "punctuation"),
]


class PtoLexer(RegexLexer):
    """`.pto` programs; `pygmentize -l pto kernel.pto` finds it by its entry point."""

    name = "PTO"
    aliases: ClassVar = ["pto"]
    filenames: ClassVar = ["*.pto"]
    tokens: ClassVar = {
        "root": [(r"\s+", Whitespace), *((words, kind) for words, kind, _ in RULES)]
    }


def grammar() -> dict[str, Any]:
    """The TextMate grammar."""
    patterns = [{"match": words, "name": f"{scope}.pto"} for words, _, scope in RULES]
    return {"name": "PTO", "scopeName": "source.pto", "fileTypes": ["pto"], "patterns": patterns}


def write_grammar(root: Path) -> Path:
    target = root / "editors" / "vscode" / "pto.tmLanguage.json"
    target.write_text(json.dumps(grammar(), indent=2) + "\n", "utf-8")
    return target


if __name__ == "__main__":
    print(write_grammar(Path(__file__).parents[2]))
