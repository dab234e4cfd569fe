"""Every code block of the README and the guides is run: what a page shows is what happens.

```python    executed in order, one namespace a page; `title="k.py"` names its file in findings
```output    what the python block before it prints; a block that prints must have one
```console   `$ pto ...` and `$ python -m examples...`, and what they print
```pto       a whole program: `pto check` finds nothing, or what `// error: words [CODE]` names;
             `title="k.pto"` keeps it as a file for later commands
```sh        commands of set-up, not run: every target and extra they name exists
```cpp       a source, kept as a file by its title; the page is skipped without a C++ compiler
```text      anything else; a statement that could be run has a title that says why it is not:
             `title="not run: needs torch"`
A line `...` in shown output stands for any lines, and `...` in a line for anything.
"""

from __future__ import annotations

import argparse
import linecache
import re
import runpy
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import VERBS, load, main, verb_parser
from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.verify import judge

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "guide").glob("*.md"))
_FENCE = re.compile(r"^```(.*?)$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_RUNNABLE = re.compile(
    r"^(?:\$ |>>> )?(?:\w+=\S+ )?(?:pto (?!\w+\.)\w+ |python |pip |import pto|with pto\.)",
    re.MULTILINE,
)
_EXPECTED = re.compile(r"// error: (.*?)\s*\[(PTO-\w+)\]")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int  # of its first line of text


@dataclass
class Run:
    """A page being run, in a folder of its own that sees the examples."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""  # by the last python block, and not yet compared


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, _, rest = match[1].partition(" ")
        title = _TITLE.search(rest)
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(language, title[1] if title else None, match[2], line))
    return found


def matches(shown: str, printed: str) -> bool:
    """`...` alone on a line is any number of lines; inside a line it is anything."""
    wanted = [line.rstrip() for line in shown.rstrip().split("\n")]
    given = [line.rstrip() for line in printed.rstrip().split("\n")]
    reached = {0}  # how many lines of `given` the lines of `wanted` so far may have taken
    for line in wanted:
        if line.strip() == "...":
            reached = set(range(min(reached, default=0), len(given) + 1)) if reached else set()
        else:
            reached = {n + 1 for n in reached if n < len(given) and same_line(line, given[n])}
    return len(given) in reached


def same_line(wanted: str, given: str) -> bool:
    first, *rest = wanted.split("...")
    if not rest:
        return wanted == given
    at = len(first)
    if not given.startswith(first):
        return False
    for part in rest[:-1]:
        found = given.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return given.endswith(rest[-1]) and len(given) - len(rest[-1]) >= at


def compare(shown: str, printed: str, what: str) -> None:
    if not matches(shown, printed):
        pytest.fail(f"{what} prints\n{printed}\nand the page shows\n{shown}", pytrace=False)


def captured(act: Callable[[], Any]) -> str:
    """What is printed, errors and findings too."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        act()
    return out.getvalue()


# ---- one function for each kind of block


def run_python(run: Run, block: Block) -> None:
    assert not run.printed, f"nothing shows what was printed before line {block.line}"
    name = block.title or f"lines_{block.line}.py"
    (run.folder / name).write_text(block.text, "utf-8")
    linecache.clearcache()  # another page may have a file of this name
    code = compile(block.text, name, "exec")
    run.printed = captured(lambda: exec(code, run.names))


def run_output(run: Run, block: Block) -> None:
    compare(block.text, run.printed, "the code")
    run.printed = ""


def run_console(run: Run, block: Block) -> None:
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert commands[0] == "", "a console block begins with a command"
    for each in commands[1:]:
        command, _, shown = each.partition("\n")
        compare(shown, captured(partial(execute, shlex.split(command))), command)


def execute(words: list[str]) -> None:
    if words[0] == "pto":
        main(words[1:])
    elif words[:2] == ["python", "-m"] and words[2].startswith("examples."):
        runpy.run_path(
            str(ROOT.joinpath(*words[2].split(".")).with_suffix(".py")), run_name="__main__"
        )
    else:
        pytest.fail(f"no way to run {shlex.join(words)}")


def run_program(run: Run, block: Block) -> None:
    name = block.title or f"lines_{block.line}.pto"
    (run.folder / name).write_text(block.text, "utf-8")
    try:
        found = judge(parse(block.text, name))[1]
    except PtoError as error:
        found = list(error.diagnostics)
    actual = {(d.loc.line if d.loc else 0, d.code): d.message for d in found}
    expected = {
        (number, match[2]): match[1]
        for number, line in enumerate(block.text.split("\n"), 1)
        for match in _EXPECTED.finditer(line)
    }
    assert actual.keys() == expected.keys(), [str(d) for d in found]
    assert [key for key, part in expected.items() if part not in actual[key]] == []


def run_setup(run: Run, block: Block) -> None:
    """Commands that would change the machine are looked up, not run."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    plugin = (ROOT / "pto" / "pytest_plugin.py").read_text("utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = set(extras["optional-dependencies"])
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
        elif words[:1] == ["pytest"]:
            options = [word for word in words if word.startswith("--pto-")]
            assert options and all(f'"{word}"' in plugin for word in options), line
        elif words[:2] == ["pip", "install"]:
            named = re.search(r"\[([\w,]+)\]", words[-1])
            assert named is None or set(named[1].split(",")) <= known, line
        elif words[:1] == ["pto"]:
            verb_parser(words[1], load(words[1])).parse_args(words[2:])
        else:
            known_words = ([], ["cd"], ["export"], ["python"], ["ray"])
            assert words[:1] in known_words, f"what is `{line}`?"


def keep_source(run: Run, block: Block) -> None:
    if not any(map(shutil.which, ("g++", "clang++"))):
        pytest.skip("no C++ compiler: this page was NOT run")
    assert block.title, "a source needs a title"
    (run.folder / block.title).write_text(block.text, "utf-8")


def read_text(run: Run, block: Block) -> None:
    marked = (block.title or "").startswith("not run: ")
    assert marked or not _RUNNABLE.search(block.text), "run it, or say in a title why it is not"


def keep_settings(run: Run, block: Block) -> None:
    """A file of settings for the commands that follow."""
    tomllib.loads(block.text)
    (run.folder / (block.title or "pyproject.toml")).write_text(block.text, "utf-8")


KINDS: dict[str, Callable[[Run, Block], None]] = {
    "python": run_python,
    "output": run_output,
    "console": run_console,
    "pto": run_program,
    "sh": run_setup,
    "cpp": keep_source,
    "toml": keep_settings,
    "text": read_text,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_of_a_page_do_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr(sys, "argv", ["pto"])
    for name in ("examples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    run = Run(tmp_path)
    for block in blocks(page):
        assert block.language in KINDS, f"line {block.line}: no rule for {block.language!r}"
        assert block.language == "output" or not run.printed, f"no output before {block.line}"
        try:
            KINDS[block.language](run, block)
        except Exception as error:
            error.add_note(f"{page.name}, block of line {block.line}")
            raise
    assert not run.printed, "nothing shows what the last block prints"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_fence_is_a_block(page: Path) -> None:
    fences = re.findall(r"^\s*```", page.read_text("utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "an indented or unclosed fence is never run"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    outside_blocks = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text("utf-8")))
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", outside_blocks)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_page_of_the_command_line_lists_every_command() -> None:
    page = ROOT / "docs" / "guide" / "command_line.md"
    listed = re.findall(r"^\| `pto (\w+)` \|", page.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(VERBS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_prose_exist_with_their_options(page: Path) -> None:
    """`pto check --deep FILE`: the command and every option that it names."""
    wrong: list[str] = []
    for code in re.findall(r"(?<!`)`(pto \S[^`\n]*)`", _FENCE.sub("", page.read_text("utf-8"))):
        verb, *words = code.split()[1:]
        if verb in VERBS:
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            wrong += [code] if not named <= options(verb_parser(verb, load(verb))) else []
        elif verb not in ("COMMAND", "--version"):
            wrong.append(code)
    assert wrong == []


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Every option of a command, and of the commands below it."""
    found: set[str] = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action.choices, dict):
            found |= {o for each in action.choices.values() for o in options(each)}
    return found


def test_there_are_pages_and_blocks_to_run() -> None:
    kinds = {block.language for page in PAGES for block in blocks(page)}
    assert {"python", "output", "console", "pto"} <= kinds


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...\nd", "a\nd\n", True),
        ("a ... d", "a b c d", True),
        ("a\nc", "a\nb\n", False),
        ("a", "a\nb\n", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_shown_output_is_compared_line_by_line(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same
