"""The parser of one command: mistakes are findings, and an option that would do nothing is one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pto.core.errors import fail, nearest

TEXT = ".pto programs"
PYTHON = "Python kernels"
CPP = "C++ kernels"
_PYTHON_FILE = re.compile(r".+\.py(:\w+)?")
CPP_ENDINGS = (".cpp", ".cc", ".cxx", ".cce")
_ARGPARSE = re.compile(r"argument (\S+): (.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: (.*) \(choose from (.*)\)")
_VALUE = re.compile(r"invalid (int|float) value: (.*)")
_KINDS = {"int": "whole number", "float": "number"}
_UNKNOWN = "unrecognized arguments: "


def language_of(file: str) -> str:
    """The language of a file on the command line, by its name; a folder holds .pto programs."""
    if _PYTHON_FILE.fullmatch(file):
        return PYTHON
    return CPP if file.endswith(CPP_ENDINGS) else TEXT


@dataclass(frozen=True, slots=True)
class _Condition:
    """What an option needs to have an effect: a language of the program, or other options."""

    option: str
    attribute: str
    default: Any
    languages: frozenset[str] = frozenset()
    others: Sequence[str] = ()  # attributes of options, of which one must be given
    why: str = ""


class CommandLine(argparse.ArgumentParser):
    """A parser without abbreviations that reports errors as findings."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how, allow_abbrev=False)
        self._conditions: list[_Condition] = []

    def error(self, message: str) -> NoReturn:
        reworded, help = self._reworded(message)
        raise fail("PTO-U013", reworded, help=help or f"`{self.prog} --help` lists the options")

    def _reworded(self, message: str) -> tuple[str, str | None]:
        """The message of argparse as ours, and a help line if there is a better one than usual."""
        if message.startswith(_UNKNOWN):
            word = message.removeprefix(_UNKNOWN).split()[0]
            if not word.startswith("-"):
                return f"{self.prog} takes no further argument {word}", None
            option = word.partition("=")[0]
            return f"{self.prog} has no option {option}", nearest(option, self._options())
        parts = _ARGPARSE.fullmatch(message)
        if parts is None:
            return message, None
        option, detail = parts[1].rpartition("/")[2], parts[2]
        value = _VALUE.fullmatch(detail)
        if value is not None:
            return f"{option}: {value[2]} is no {_KINDS[value[1]]}", None
        choice = _CHOICE.fullmatch(detail)
        if choice is None:
            return f"{option}: {detail}", None
        word, choices = choice[1].strip("'"), re.findall(r"[^', ]+", choice[2])
        return f"{option}: there is no {word!r}; it is {', '.join(choices)}", nearest(word, choices)

    def _options(self) -> list[str]:
        return [word for action in self._actions for word in action.option_strings]

    # ---- options that have an effect only sometimes

    def only_for(self, *actions: argparse.Action, languages: Sequence[str]) -> None:
        """Refuse options unless one of the files is in one of these languages."""
        for action in actions:
            self._conditions.append(self._condition(action, languages=frozenset(languages)))

    def only_with(self, action: argparse.Action, *others: argparse.Action, why: str) -> None:
        """Refuse an option unless one of the others is given; `why` ends the message."""
        names = tuple(other.dest for other in others)
        self._conditions.append(self._condition(action, others=names, why=why))

    @staticmethod
    def _condition(action: argparse.Action, **requirements: Any) -> _Condition:
        option = max(action.option_strings, key=len)
        return _Condition(option, action.dest, action.default, **requirements)

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        parsed = super().parse_args(args, namespace)
        for condition in self._conditions:
            if getattr(parsed, condition.attribute) != condition.default:
                self._require(condition, parsed)
        return parsed

    def _require(self, condition: _Condition, parsed: argparse.Namespace) -> None:
        if condition.languages:
            files = [parsed.file] if hasattr(parsed, "file") else parsed.files
            if not any(language_of(file) in condition.languages for file in files):
                languages = " and ".join(sorted(condition.languages, reverse=True))
                raise fail(
                    "PTO-U280",
                    f"{condition.option} is for {languages}, and {files[0]} is none",
                    help=f"leave it out: for {language_of(files[0])} it would do nothing",
                )
        if condition.others and not any(getattr(parsed, name) for name in condition.others):
            needed = " or ".join(f"--{name.replace('_', '-')}" for name in condition.others)
            raise fail("PTO-U232", f"{condition.option} needs {needed}: {condition.why}")
