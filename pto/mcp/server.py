"""The tools of `pto mcp`. Each runs a command of `pto` and returns its JSON.

A program is text. Programs in Python and C++ are executed with the rights of the server, so they
are rejected unless the server was started with that permission.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pto import __version__
from pto.core.confined import ProcessLimits, run

# By name: the SDK is optional, and type checkers need not find it.
_SDK: Any = import_module("mcp.server")
ToolError: Any = import_module("mcp.server.mcpserver.exceptions").ToolError
Language = Literal["pto", "python", "cpp"]
Arguments = dict[str, str | int | float | list[Any]]
_FILES = {"pto": "program.pto", "python": "program.py", "cpp": "program.cpp"}
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_MADE = re.compile(r"(rand|zeros|ones|range|full\([-+.\w]+\))(:[\w.]+)?|[-+.\w]+")
_INSTRUCTIONS = (
    "Tools of a PTO machine: check, run, sanitize and time kernels for Ascend NPUs without the"
    " hardware. Programs are .pto text. Begin with check; explain describes a finding, isa an "
    "instruction."
)


@dataclass(frozen=True)
class Permissions:
    """Languages of programs that may be executed natively."""

    languages: frozenset[str] = field(default_factory=frozenset[str])
    tasks: Path | None = None  # a folder of tasks that agents may name

    def require(self, language: str) -> None:
        if language != "pto" and language not in self.languages:
            raise ToolError(
                f"programs in {language} are executed with the rights of the server, which was"
                f" started without that permission: `pto mcp --allow-{language}`"
            )


def server(permissions: Permissions, limits: ProcessLimits) -> Any:
    """A server with every tool; `.run()` serves on standard input and output."""
    sdk_server = _SDK.MCPServer("pto", version=__version__, instructions=_INSTRUCTIONS)
    for tool in (
        *_of_programs(permissions, limits),
        _of_tasks(permissions, limits),
        *_of_tables(limits),
    ):
        sdk_server.tool()(tool)
    return sdk_server


def _of_programs(permissions: Permissions, limits: ProcessLimits) -> list[Callable[..., Any]]:
    def command(verb: str, program: str, language: Language, entry: str | None, *words: Any) -> Any:
        permissions.require(language)
        return _program(verb, program, language, entry, words, limits)

    def check(
        program: str,
        profile: str | None = None,
        deep: bool = False,
        language: Language = "pto",
        entry: str | None = None,
        arguments: Arguments | None = None,
    ) -> dict[str, Any]:
        """Check that a program is well formed and legal on a profile (cpu, a2a3, a5). With `deep`,
        also run it on generated inputs to find races. Status 0: no errors."""
        words = (_option("profile", profile), "--deep" if deep else None, arguments or {})
        return command("check", program, language, entry, *words)

    def run(
        program: str,
        arguments: Arguments | None = None,
        blocks: str = "1",
        profile: str | None = None,
        language: Language = "pto",
        entry: str | None = None,
    ) -> dict[str, Any]:
        """Run a kernel and list the arrays that it changed. `arguments` by name: a number, a list
        of numbers, or rand, zeros, ones, range, full(1.5), with a shape: zeros:16x64xf32."""
        words = (_option("profile", profile), _blocks(blocks), arguments or {})
        return command("run", program, language, entry, *words)

    def sanitize(
        program: str,
        arguments: Arguments | None = None,
        blocks: str = "1",
        profile: str | None = None,
        language: Language = "pto",
        entry: str | None = None,
    ) -> dict[str, Any]:
        """Run a kernel and report races, deadlocks and flags that do not match."""
        words = ("--sanitize", _option("profile", profile), _blocks(blocks), arguments or {})
        return command("run", program, language, entry, *words)

    def time(
        program: str,
        arguments: Arguments | None = None,
        blocks: str = "1",
        device: str | None = None,
        language: Language = "pto",
        entry: str | None = None,
    ) -> dict[str, Any]:
        """Estimate the time of a kernel on a chip (910b1, 950pr, ...), what limits it, where it
        waits."""
        words = (_option("device", device), _blocks(blocks), arguments or {})
        return command("time", program, language, entry, *words)

    return [check, run, sanitize, time]


def _of_tasks(permissions: Permissions, limits: ProcessLimits) -> Callable[..., Any]:
    def judge(
        task: str,
        candidate: str,
        language: Literal["python", "pto"] = "python",
        device: str | None = None,
        blocks: str | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Judge a kernel for a task: is it right, safe, deterministic, and how fast? `task` is the
        name of a task of the server, or the text of a task file; `candidate` is the text of a
        kernel. The answer names the first failed check, its first finding, and what to improve."""
        name = _FILES[language]
        files = {name: candidate.encode()}
        words = [f"--timeout={limits.seconds}", f"--memory={limits.megabytes}", "-j1"]
        words += [*_option("device", device), *_option("blocks", blocks)]
        words += _option("seed", None if seed is None else str(seed))
        if "\n" in task:
            permissions.require("python")
            files["task.py"] = task.encode()
            place = "task.py"
        else:
            place = str(_task_named(task, permissions.tasks))
        line = ["judge", "--format=json", *words, "--", place, name]
        return _short(run(line, files, limits))

    return judge


def _task_named(name: str, folder: Path | None) -> Path:
    """A task in the folder of the server: a Python file, or a folder."""
    if folder is None:
        raise ToolError("give the text of a task: the server was started without --tasks FOLDER")
    known = {each.stem: each for each in sorted(folder.iterdir()) if each.suffix in ("", ".py")}
    if name not in known:
        raise ToolError(f"there is no task {name!r}; there are {', '.join(known)}")
    return known[name].resolve()


def _short(answer: dict[str, Any]) -> dict[str, Any]:
    """A verdict without what an agent does not need: the first finding instead of all."""
    verdict = answer.get("result", {}).get("judgements", [None])[0]
    if verdict is None:  # no verdict: the findings say what is wrong with the request
        return answer
    failed = next((c for c in verdict["checks"] if c["status"] == "failed"), None)
    timed = [c for c in verdict["cases"] if "us" in c]
    short: dict[str, Any] = {
        "status": answer["status"],
        "accepted": verdict["accepted"],
        "checks": {c["name"]: c["status"] for c in verdict["checks"]},
        "score": verdict["score"],
        "seed": verdict["seed"],
    }
    if failed is not None:
        short |= {"failed": failed["name"], "finding": failed["findings"][0]}
        short["next"] = f"explain {failed['findings'][0]['code']}"
    if timed:
        names = ("name", "us", "share", "hap")
        short["times"] = [{n: c[n] for n in names if n in c} for c in timed]
        short["remedies"] = verdict["remedies"]
    return short


def _of_tables(limits: ProcessLimits) -> list[Callable[..., Any]]:
    def isa(name: str, profile: str | None = None) -> dict[str, Any]:
        """Describe an instruction (tadd, vlds): operands, types, rules, meaning, cost."""
        return run(["isa", *_option("profile", profile), "--json", "--", name], {}, limits)

    def explain(code: str) -> dict[str, Any]:
        """Explain the code of a finding (PTO-L001), with a wrong and a right program."""
        return run(["explain", "--", code], {}, limits)

    def layout(tile: str, profile: str | None = None) -> dict[str, Any]:
        """Show the memory position of each element of a tile: `vec 16x64xf32`,
        `mat 32x32xf16 NZ`."""
        return run(["layout", *_option("profile", profile), "--", tile], {}, limits)

    return [isa, explain, layout]


def _program(
    verb: str, program: str, language: str, entry: str | None, words: Any, limits: ProcessLimits
) -> dict[str, Any]:
    name = _FILES[language]
    files = {name: program.encode()}
    line = [verb, "--json"]
    for word in words:
        if isinstance(word, Mapping):
            line += _arguments(word, files)  # pyright: ignore[reportUnknownArgumentType]
        elif word is not None:
            line += [word] if isinstance(word, str) else word
    line += _option("entry", entry)
    return run([*line, "--", name], files, limits)


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"--{name}={value}"]


def _blocks(blocks: str) -> list[str]:
    return _option("blocks", str(blocks))


def _arguments(arguments: Mapping[str, Any], files: dict[str, bytes]) -> list[str]:
    """Command-line options for arguments; a list becomes an f32 array in a file. No other file is
    read."""
    words: list[str] = []
    for name, value in arguments.items():
        if _WORD.fullmatch(name) is None:
            raise ToolError(f"{name!r} is not the name of an argument")
        if isinstance(value, list):
            data = io.BytesIO()
            np.save(data, np.asarray(value, np.float32))
            files[f"{name}.npy"] = data.getvalue()
            words.append(f"--arg={name}={name}.npy")
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        if _MADE.fullmatch(text) is None or text.endswith(".npy"):
            raise ToolError(
                f"{name} is {text!r}: a number, a list of numbers, or rand, zeros, ones, range,"
                " full(1.5), with a shape as zeros:16x64xf32"
            )
        words.append(f"--arg={name}={text}")
    return words
