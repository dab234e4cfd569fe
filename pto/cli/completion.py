"""`pto completion`: prints a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pto.cli.command_line import CommandLine

EXAMPLES = """\
  pto completion bash > ~/.local/share/bash-completion/completions/pto
  pto completion zsh > ~/.zfunc/_pto       with fpath+=~/.zfunc before compinit in ~/.zshrc
  pto completion fish > ~/.config/fish/completions/pto.fish
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help=_SHELL)


_SHELL = "bash, zsh or fish"


def run(args: argparse.Namespace) -> int:
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]
    print("\n".join(write(_commands())))
    return 0


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    about: str
    takes_value: bool
    values: tuple[str, ...]  # where there are few


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    about: str
    options: tuple[_Option, ...]


def _commands() -> list[_Command]:
    """Every command with its options, read from their parsers."""
    from pto.cli.main import VERBS, load, verb_parser  # which imports this module

    return [
        _Command(name, about, tuple(_options(verb_parser(name, load(name)))))
        for name, about in VERBS.items()
    ]


def _options(parser: argparse.ArgumentParser) -> Iterator[_Option]:
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        for nested in getattr(action, "choices", None) or ():
            if isinstance(action.choices, dict):
                yield from _options(action.choices[nested])  # pyright: ignore
        if action.option_strings:
            values = action.choices or _KNOWN.get(action.dest, lambda: ())()
            about = re.sub(r"\s+", " ", (action.help or "").partition(";")[0])
            takes_value = action.nargs != 0
            yield _Option(tuple(action.option_strings), about, takes_value, tuple(map(str, values)))


def _profiles() -> tuple[str, ...]:
    return "cpu", "a2a3", "a5"


def _devices() -> tuple[str, ...]:
    from pto.target.devices import DEVICES

    return tuple(row.name for row in DEVICES)


def _engines() -> tuple[str, ...]:
    return "jit", "reference"


_KNOWN = {"profile": _profiles, "device": _devices, "engine": _engines}


def _bash(commands: list[_Command]) -> Iterator[str]:
    yield "_pto() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words="
    yield "    case $before in"
    for option in _valued(commands):
        yield f"        {'|'.join(option.names)}) words={' '.join(option.values)!r};;"
    yield "    esac"
    yield "    if [[ $COMP_CWORD -eq 1 ]]; then"
    yield f"        words='{' '.join(command.name for command in commands)}'"
    yield "    elif [[ -z $words && $word == -* ]]; then"
    yield "        case ${COMP_WORDS[1]} in"
    for command in commands:
        yield f"            {command.name}) words='{' '.join(_words(command))}';;"
    yield "        esac"
    yield "    fi"
    yield '    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _pto pto"


def _valued(commands: list[_Command]) -> list[_Option]:
    """Options with a list of values, each name once with all values that a command takes."""
    values_of: dict[tuple[str, ...], dict[str, None]] = {}
    for command in commands:
        for option in command.options:
            if option.values:
                values_of.setdefault(option.names, {}).update(dict.fromkeys(option.values))
    return [_Option(names, "", True, tuple(values)) for names, values in values_of.items()]


def _words(command: _Command) -> list[str]:
    return list(dict.fromkeys(name for option in command.options for name in option.names))


def _zsh(commands: list[_Command]) -> Iterator[str]:
    yield "#compdef pto"
    yield "_pto() {"
    yield "    local -a commands=("
    for command in commands:
        yield f"        {_quoted(f'{command.name}:{command.about}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then _describe command commands; return; fi"
    yield "    shift words; (( CURRENT-- ))"
    yield "    case $words[1] in"
    for command in commands:
        yield f"        {command.name}) _arguments \\"
        for option in command.options:
            for name in option.names:
                yield f"            {_quoted(_zsh_option(name, option))} \\"
        yield "            '*:file:_files';;"
    yield "    esac"
    yield "}"
    yield '_pto "$@"'


def _zsh_option(name: str, option: _Option) -> str:
    about = re.sub(r"([\[\]:])", r"\\\1", option.about)
    if not option.takes_value:
        return f"*{name}[{about}]"
    values = f"({' '.join(option.values)})" if option.values else "_files"
    return f"*{name}[{about}]:value:{values}"


def _fish(commands: list[_Command]) -> Iterator[str]:
    for command in commands:
        about = _quoted(command.about)
        yield f"complete -c pto -n __fish_use_subcommand -a {command.name} -d {about}"
        for option in command.options:
            named = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = " -r" if option.takes_value else ""
            value += f" -f -a {_quoted(' '.join(option.values))}" if option.values else ""
            inside = f"'__fish_seen_subcommand_from {command.name}'"
            yield f"complete -c pto -n {inside} {named}{value} -d {_quoted(option.about)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
