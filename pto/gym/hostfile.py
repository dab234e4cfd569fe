"""A case's host program: reads the case names of its table, and interprets it for one case.

The C++ interpreter is in `pto/gym/host`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pto.core.errors import Loc
from pto.gym.host.evaluator import KernelCall
from pto.gym.host.interpreter import Interpreter
from pto.gym.host.parser import parse_file
from pto.gym.host.runtime import Files, Runtime
from pto.gym.host.syntax import TEXT
from pto.gym.host.values import CArray, Closure, CStruct, Value, cannot_follow


@dataclass(frozen=True, slots=True)
class HostRun:
    """The result of one run: exit code, messages, and the files read and written in order."""

    code: int
    messages: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class HostProgram:
    """The host files of one directory, read once and interpreted for each case."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.file = str(paths[-1])
        self._machine = Interpreter([parse_file(path) for path in paths])

    def case_names(self) -> list[str]:
        """The names in the tables of the program, in order: rows of structs with a `name`."""
        cells = [cell for scope in self._machine.scopes for cell in scope.names.values()]
        return list(dict.fromkeys(name for cell in cells for name in _names_in(cell.get())))

    def run(self, files: Files, launch: Callable[[KernelCall], None], case: str = "") -> HostRun:
        """Interpret `main`, filtered to `case` as by its command line."""
        runtime = Runtime(files)
        try:
            self._machine.start(runtime, launch)
            code = self._main(["case", case] if case else ["case"])
        except RecursionError:
            raise cannot_follow("the host program nests too deeply", Loc(self.file, 1)) from None
        return HostRun(code, tuple(runtime.messages), tuple(runtime.reads), tuple(runtime.writes))

    def _main(self, words: list[str]) -> int:
        cell = self._machine.shared.find("main")
        main = cell.get() if cell else None
        if not isinstance(main, Closure):
            raise cannot_follow("the host files define no main", Loc(self.file, 1))
        given: list[Value] = [len(words), CArray([*words], TEXT)]
        params = main.definition.params
        result = self._machine.call(main, given[: len(params)])
        return int(result or 0)


def _names_in(value: Value) -> list[str]:
    if not isinstance(value, CArray):
        return []
    rows = [item for item in value.items if isinstance(item, CStruct)]
    return [row.fields["name"] for row in rows if isinstance(row.fields.get("name"), str)]
