"""Colour on a terminal, plain text in a pipe, and NO_COLOR."""

import io

import pytest

from pto.cli import console
from pto.core.errors import Diagnostic


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


FINDING = Diagnostic("PTO-T001", "no type `f17`", help="did you mean `f16`?")
PLAIN = "error[PTO-T001]: no type `f17`\n   = help: did you mean `f16`?\n"


def test_a_pipe_gets_plain_text():
    pipe = io.StringIO()
    console.show([FINDING], stream=pipe)
    assert pipe.getvalue() == PLAIN


def test_a_terminal_gets_colour_and_the_same_words():
    terminal = Terminal()
    console.show([FINDING], stream=terminal)
    shown = terminal.getvalue()
    assert "\x1b[1;31merror[PTO-T001]" in shown
    for word in ("no type `f17`", "help: ", "did you mean `f16`?"):
        assert word in shown


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_none_gets_none(monkeypatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    terminal = Terminal()
    console.show([FINDING], stream=terminal)
    console.write_markdown("# Title\n", terminal)
    assert terminal.getvalue() == PLAIN + "# Title\n"


def test_square_brackets_are_text_not_markup():
    terminal = Terminal()
    console.write([("name", "[red]x[/red]")], terminal)
    assert "[red]x[/red]" in terminal.getvalue()


def test_a_page_is_rendered_on_a_terminal():
    terminal = Terminal()
    console.write_markdown("# Title\n\nsome `code`\n", terminal)
    shown = terminal.getvalue()
    assert "# Title" not in shown
    assert "Title" in shown
