"""Any text is read, followed or refused; nothing else happens."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pto.core.errors import PtoError
from pto.gym.host import interpreter
from pto.gym.host.runtime import Directory
from pto.gym.hostfile import HostProgram
from tests.gym import checkout

_WORDS = [
    "int",
    "main",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ".",
    "*",
    "&",
    "&&",
    "!",
    "?",
    ":",
    "::",
    "=",
    "+",
    "-",
    "/",
    "%",
    "<<",
    ">>",
    "<<<",
    ">>>",
    "0",
    "1",
    "3.5f",
    "0x1F",
    "sizeof",
    "x",
    "y",
    '"s"',
    "'c'",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "return",
    "goto",
    "struct",
    "enum",
    "union",
    "using",
    "typedef",
    "template",
    "typename",
    "const",
    "static",
    "auto",
    "float",
    "void",
    "size_t",
    "std::string",
    "nullptr",
    "#",
    "define",
    "\n",
    "lambda",
    "ReadFile",
    "aclrtMalloc",
    "memcpy",
    "(void**)&x",
]


def follow(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "main.cpp"
        path.write_text(text)
        try:
            HostProgram([path]).run(Directory(Path(folder)), lambda launch: None)
        except PtoError as error:
            assert error.code in ("PTO-U062", "PTO-U063")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_characters(text: str):
    follow(text)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(_WORDS), max_size=25))
def test_any_words_in_a_body(monkeypatch, words: list[str]):
    monkeypatch.setattr(interpreter, "_MOST_STEPS", 2_000)
    follow("int main() { int x = 1; float *y = nullptr; " + " ".join(words) + " }")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_program_with_a_piece_cut_out(data: st.DataObject):
    text = checkout.SCALE_LAUNCH + checkout.SCALE_MAIN
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    follow(text[:start] + text[end:])
