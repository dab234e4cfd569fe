"""Turns a candidate in Python into programs, in a process that has no data and no rights.

`serve` is a process that has imported the language and nothing else; it forks one process for each
candidate. That process gets the text of the candidate and the shapes of the cases, confines itself,
executes the text, and writes the launches to a pipe. Arrays have shapes only, so no result can be
computed while a kernel is traced. Values are drawn after the process has ended.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import select
import signal
import struct
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from socket import socket
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from pto.core.confine import confine, limit, refuse_actions
from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, PtoError, fail, nearest
from pto.judging.programs import Recorder, finding_data
from pto.lang.arithmetic import computed, parsed
from pto.lang.bound import Bound
from pto.lang.file import kernels_of
from pto.lang.kernel import Kernel
from pto.lang.raised import raised
from pto.lang.tune import Autotuned
from pto.run.launch.call import Blocks
from pto.run.launch.host import Report
from pto.target.profile import Target
from pto.target.profile import profile as find_profile

Array = npt.NDArray[Any]
_MOST = 64 << 20  # bytes of a message
_MOST_LAUNCHES = 4096
_HEAD = struct.Struct("=Q")
_MODULE = "candidate"


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """The limits of the process of one candidate."""

    seconds: float = 20.0
    megabytes: int = 4096


# ---- the process that forks


def serve(link: socket, limits: TraceLimits) -> None:
    """Answer requests until the other end closes."""
    while (request := _received(link)) is not None:
        _sent(link, _confined(request, limits))


def _received(link: socket) -> bytes | None:
    head = _exactly(link, _HEAD.size)
    return None if head is None else _exactly(link, _HEAD.unpack(head)[0])


def _exactly(link: socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = link.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _sent(link: socket, data: bytes) -> None:
    link.sendall(_HEAD.pack(len(data)) + data)


def ask(link: socket, request: Mapping[str, Any]) -> dict[str, Any]:
    """Get the launches of a candidate from `serve`."""
    _sent(link, json.dumps(request).encode())
    answer = _received(link)
    if answer is None:
        raise fail("PTO-J009", "the process of the candidate ended the process that started it")
    try:
        message = json.loads(answer)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise fail("PTO-J013", "the candidate's process sent no launches")
    return message


def _confined(request: bytes, limits: TraceLimits) -> bytes:
    """Fork a process for one candidate; its message, or why it has none."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        _trace_and_exit(request, theirs, limits)
    os.close(theirs)
    try:
        data, why = _read(ours, limits.seconds)
    finally:
        os.close(ours)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    if data or why:
        return data if not why else _told("PTO-J009", why)
    return _told("PTO-J009", _ended(status, limits))


def _read(pipe: int, seconds: float) -> tuple[bytes, str]:
    """All that is written to a pipe, and what was too much of it."""
    until, data = time.monotonic() + seconds, bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return b"", f"tracing took longer than {seconds:g} s"
        part = os.read(pipe, 1 << 20)
        if not part:
            return bytes(data), ""
        data += part
        if len(data) > _MOST:
            return b"", f"the programs take more than {_MOST >> 20} MB"


def _ended(status: int, limits: TraceLimits) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"tracing was ended by signal {number}; it may use {limits.megabytes} MB"
    return f"the candidate ended its process with status {os.waitstatus_to_exitcode(status)}"


def _told(code: str, message: str) -> bytes:
    return json.dumps({"findings": [finding_data(Diagnostic(code, message))]}).encode()


# ---- the process of a candidate


def _readable() -> list[str]:
    """Folders that imports may read."""
    paths = sysconfig.get_paths()
    paths_read = [
        *(paths[n] for n in ("stdlib", "platstdlib", "purelib", "platlib")),
        sys.base_prefix,
    ]
    paths_read += [
        "/usr/lib",
        "/lib",
        "/lib64",
        "/usr/local/lib",
        "/etc/ld.so.cache",
        "/dev/urandom",
    ]
    return [p for p in (*paths_read, str(Path(__file__).parents[1])) if Path(p).exists()]


def _trace_and_exit(request: bytes, pipe: int, limits: TraceLimits) -> NoReturn:
    """The life of the process of a candidate."""
    write, leave = os.write, os._exit
    sys.dont_write_bytecode = True  # of modules of pto that the candidate is the first to import
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    _close_others(pipe)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()

    def answer(data: bytes) -> NoReturn:
        view = memoryview(data)
        while view:
            view = view[write(pipe, view) :]
        leave(0)

    def refused(action: str) -> None:
        answer(_told("PTO-J008", f"the candidate {action}"))

    limit(limits.seconds, limits.megabytes)
    readable = _readable()
    confine(readable)
    try:
        fields = json.loads(request)
        code = _compiled(fields["text"], fields["file"])  # Python reads the file for its errors
        refuse_actions(readable, refused)
        outcome = _traced(fields, code)
    except PtoError as error:
        outcome = {"findings": [finding_data(d) for d in error.diagnostics]}
    except MemoryError:
        answer(_told("PTO-J009", f"tracing needs more than {limits.megabytes} MB of memory"))
    except BaseException as error:
        outcome = {"findings": [finding_data(raised(error))]}
    answer(json.dumps(outcome).encode())


def _close_others(descriptor: int) -> None:
    """Close the files of the parent, so that the candidate has only its own pipe."""
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 256)


def _compiled(text: str, file: str) -> types.CodeType:
    try:
        return compile(text, file, "exec")
    except (SyntaxError, ValueError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        message = f"this is not Python{line}: {getattr(error, 'msg', error)}"
        raise fail("PTO-U281", message) from None


def _traced(request: dict[str, Any], code: types.CodeType) -> dict[str, Any]:
    """Execute a candidate and record its launches for each case."""
    module = _executed(code, request["text"])
    chosen = _chosen(module, request["entry"], request["task"])
    programs: dict[str, Any] = {}
    cases: list[dict[str, Any]] = []
    for case in request["cases"]:
        arrays = {n: np.zeros(s, dtype(k).numpy) for n, (s, k) in case["arrays"].items()}
        recorder = Recorder(arrays)
        call = _HostCall(recorder, request["profile"])
        _replace_launches(call)
        call.made(chosen, arrays, case["numbers"], request["blocks"])
        programs |= recorder.programs
        cases.append({"launches": recorder.launches, "scratch": recorder.scratch})
    return {"programs": programs, "cases": cases}


def _executed(code: types.CodeType, text: str) -> types.ModuleType:
    import linecache

    module, file = types.ModuleType(_MODULE), code.co_filename
    module.__file__ = file
    sys.modules[_MODULE] = module
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(code, vars(module))
    return module


def _chosen(module: types.ModuleType, entry: str | None, task: str) -> Any:
    """The entry of a candidate: by name, by the name of the task, or its only kernel."""
    by_name = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Bound) or getattr(value, "__module__", None) == _MODULE
    }
    by_name |= dict(kernels_of(module))
    if entry is not None:
        if entry not in by_name:
            message = f"the candidate has no {entry}; it has {', '.join(by_name)}"
            raise fail("PTO-U030", message, help=nearest(entry, by_name))
        return by_name[entry]
    if task in by_name:
        return by_name[task]
    kernels: tuple[type, ...] = (Kernel, Autotuned)
    for kinds in ((Bound,), kernels, (types.FunctionType,)):
        candidates = [v for v in by_name.values() if isinstance(v, kinds)]
        if len(candidates) == 1:
            return candidates[0]
    if not by_name:
        raise fail("PTO-U030", "the candidate has no kernel", help="define one with @pto.kernel")
    message = f"which kernel is the candidate? There are {', '.join(by_name)}"
    raise fail("PTO-U031", message, help=f"name it {task}, or write FILE.py:NAME")


class _HostCall:
    """One call of a candidate: its kernels are traced, and no launch is executed."""

    def __init__(self, recorder: Recorder, profile: str) -> None:
        self._recorder = recorder
        self._profile = profile

    def made(
        self, chosen: Any, arrays: Mapping[str, Array], numbers: Mapping[str, Any], blocks: str
    ) -> None:
        """Call the candidate on the arrays of a case."""
        if isinstance(chosen, Autotuned):
            chosen = chosen.kernel
        if isinstance(chosen, Bound):
            names = [p.name for p in chosen.kernel.parameters]
            chosen(**_by_name(chosen.kernel.name, names, _kinds(chosen.kernel), arrays, numbers))
        elif isinstance(chosen, Kernel):
            names = [p.name for p in chosen.parameters]
            arguments = _by_name(chosen.name, names, _kinds(chosen), arrays, numbers)
            chosen[_grid(blocks, arrays, numbers)](**arguments)
        else:
            names = list(inspect.signature(chosen).parameters)
            optional = _optional(chosen)
            chosen(**_by_name(chosen.__name__, names, None, arrays, numbers, optional))

    def launched(self, kernel: Kernel[...], *args: Any, blocks: Blocks = 1, **named: Any) -> Report:
        """In place of `Kernel.run`: trace, and record the launch."""
        for option in ("engine", "progress", "timeout", "coverage"):
            named.pop(option, None)
        kernel = kernel.on(self._profile)
        specialised, _, run_args = kernel.specialise(kernel.values(args, named), blocks)
        if len(self._recorder.launches) >= _MOST_LAUNCHES:
            raise fail("PTO-J009", f"more than {_MOST_LAUNCHES:,} launches")
        self._recorder.add(specialised.module, run_args, blocks)
        target = Target(find_profile(self._profile), None, "the profile of the judge")
        return Report(
            target, "traced", kernel.name, blocks if isinstance(blocks, int) else prod(blocks), ()
        )


def _replace_launches(call: _HostCall) -> None:
    """Make every launch of this process a recorded one."""

    def run(kernel: Kernel[...], *args: Any, **named: Any) -> Report:
        return call.launched(kernel, *args, **named)

    Kernel.run = run  # pyright: ignore[reportAttributeAccessIssue]


def _kinds(kernel: Kernel[...]) -> dict[str, str]:
    return {p.name: p.kind for p in kernel.parameters}


def _optional(function: Callable[..., object]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.default is not inspect.Parameter.empty}


def _by_name(
    callee: str,
    names: Sequence[str],
    kinds: Mapping[str, str] | None,
    arrays: Mapping[str, Array],
    numbers: Mapping[str, Any],
    optional: set[str] | None = None,
) -> dict[str, Any]:
    """Arguments by name; arrays with names of their own get those of the task in their order."""
    values = {**numbers, **arrays}
    is_array = [n for n in names if (kinds[n] == "array" if kinds else n not in numbers)]
    if not set(arrays).issuperset(is_array) and len(is_array) == len(arrays):
        values |= dict(zip(is_array, arrays.values(), strict=True))
    missing = [n for n in names if n not in values and n not in (optional or ())]
    if missing:
        message = f"{callee} takes {', '.join(missing)}, which the task does not have"
        raise fail("PTO-U351", message, help=f"the task has {', '.join([*arrays, *numbers])}")
    return {n: values[n] for n in names if n in values}


def _grid(text: str, arrays: Mapping[str, Array], numbers: Mapping[str, Any]) -> Blocks:
    """The number of blocks from an expression such as `cdiv(m, 16)`."""
    try:
        return cast("Blocks", computed(parsed(text), {**numbers, **arrays}))
    except ValueError as error:
        raise fail("PTO-U351", f"blocks {text}: {error}") from None
