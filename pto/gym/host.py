"""The host program of a case: built once by the C++ compiler, and run for one case at a time.

`main.cpp` and `launch.cpp` say which file fills which buffer, which kernel is launched with which
arguments on how many blocks, and which buffer becomes which output file. They are compiled
unmodified against the headers in `include/`; the device runtime there calls back into this
process: device
memory is NumPy arrays, and a launch is a `KernelCall`. A host program runs in the worker process of
its case (`pool`), so that a crash or an endless loop costs that case alone.
"""

from __future__ import annotations

import _ctypes
import ctypes as c
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core import process
from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.cxx import compiler, kept
from pto.cxx.complaints import refusal
from pto.cxx.source import Launch, prepared, without_comments

_INCLUDE = Path(__file__).with_name("include")
_FLAGS = ("-std=c++17", "-O0", "-fPIC", "-w", "-fpermissive", "-fno-gnu-unique")
_SECONDS = 120  # of one compilation
_LINE = re.compile(r'^# \d+ "([^"]*)".*$', re.MULTILINE)
_ROW = re.compile(r'\{\s*(?:\.name\s*=\s*)?"([^"\\]+)"\s*,')  # how a row of a table of cases starts
_TABLE = re.compile(r"\bstruct\s+\w+\s*\{[^{}]*\bname\s*;")  # the type of its rows
_MAIN = """
#undef main
extern "C" int pto_host_run(int count, char** words)
{
    int code = -1;
    try { code = pto_host::run(&pto_host_main, count, words); }
    catch (const pto_host::Exit& exit) { code = exit.code; }
    catch (const pto_host::Stopped&) {}
    std::fflush(nullptr);
    return code;
}
extern "C" void pto_host_connect(const pto_host::Calls* calls) { pto_host::calls = *calls; }
"""
_MOST_BYTES = 2 << 30  # of device memory of a case
_MOST_BLOCKS = 1 << 16
_MOST_MESSAGES = 1 << 14  # characters
PAGE = 2 << 20  # bytes of a huge page, as requested by ACL_MEM_MALLOC_HUGE_FIRST
_DIRECTIONS = tuple((a, b) for a in ("host", "device") for b in ("host", "device"))
Argument = npt.NDArray[np.uint8] | np.generic


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel launch: arrays are views of device memory, numbers keep their C++ type."""

    kernel: str
    blocks: int
    arguments: tuple[Argument, ...]
    loc: Loc
    owned: tuple[int, ...] = ()  # bytes of each that the host owns; the rest of its pages is unused


@dataclass(frozen=True, slots=True)
class HostRun:
    """The result of one run: exit code, what it wrote to standard error, and the files written."""

    code: int
    messages: str
    writes: tuple[str, ...]


class HostProgram:
    """The host files of one directory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.file = str(paths[-1])
        self._build = _built(paths)

    def case_names(self) -> list[str]:
        """The names in the tables of the program, in order: rows of structs with a `name`."""
        return json.loads(self._build.with_suffix(".json").read_text(encoding="utf-8"))

    def run(self, folder: Path, launch: Callable[[KernelCall], None], case: str = "") -> HostRun:
        """Run `main` in a folder, filtered to `case` as by its command line."""
        device = _Device(launch)
        words = [word.encode() for word in (["case", case] if case else ["case"])]
        library = c.CDLL(str(self._build))
        try:
            library.pto_host_connect(c.byref(device.calls))
            before = _files(folder, case)
            with _inside(folder), _standard_error() as messages:
                code = library.pto_host_run(len(words), (c.c_char_p * (len(words) + 1))(*words))
        finally:
            _ctypes.dlclose(library._handle)  # its variables start anew in the next run
        if device.error is not None:
            raise device.error
        changed = {
            name for name, stamp in _files(folder, case).items() if before.get(name) != stamp
        }
        return HostRun(code, messages[0], tuple(sorted(changed.union(device.writes))))


def _files(folder: Path, case: str) -> dict[str, int]:
    """The times of change of the files in a folder, and in that of a case."""
    listed = [*folder.glob("*.bin"), *((folder / case).glob("*.bin") if case else ())]
    return {os.path.relpath(path, folder): path.stat().st_mtime_ns for path in listed}


def _built(paths: Sequence[Path]) -> Path:
    """The library of a host program, compiled unless it is cached."""
    chosen = compiler.find()
    flags = [flag for flag in _FLAGS if flag != "-fno-gnu-unique" or not chosen.is_clang]
    headers = [path.read_text(encoding="utf-8") for path in sorted(_INCLUDE.rglob("*.h"))]
    base = kept.folder() / f"hosts-{_digest(headers, _MAIN, flags, chosen)}"
    kept.require_own(base)
    if not base.is_dir():
        (base / "include" / "pto" / "machine").mkdir(parents=True, mode=0o700, exist_ok=True)
        kept.note_use(base, is_new=True)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    target = base / f"{_digest([str(path) for path in paths], texts)}.so"
    if kept.is_ready(target) and kept.is_ready(target.with_suffix(".json")):
        return target
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        ready = [prepared(path, work, _launch) for path in paths]
        sources = [file for file, _, _ in ready]
        main = sources[-1]
        sources[-1] = work / "host_main.cpp"
        sources[-1].write_text(
            f'#include <acl/acl.h>\n#define main pto_host_main\n#include "{main}"\n{_MAIN}',
            encoding="utf-8",
        )
        folders = [_INCLUDE, *dict.fromkeys(f for _, more, _ in ready for f in more)]
        command = [chosen.path, *flags, *(f"-I{folder}" for folder in folders)]
        command += ["-include", str(_INCLUDE / "acl" / "acl.h")]
        expanded = _compiled([*command, "-E", str(sources[-1])])
        names = work / "names.json"
        names.write_text(json.dumps(_names_in(expanded)), encoding="utf-8")
        library = work / "made.so"
        _compiled([*command, "-shared", *map(str, sources), "-o", str(library)])
        _publish(names, target.with_suffix(".json"))
        _publish(library, target)
    return target


def _publish(library: Path, target: Path) -> None:
    """Copy a file into the cache, which may be on another disk, under its final name at the end."""
    with tempfile.TemporaryDirectory(dir=target.parent) as beside:
        kept.publish(Path(shutil.copy(library, beside)), target)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _compiled(command: Sequence[str]) -> str:
    ran = process.run(command, _SECONDS)
    if ran.returncode:
        finding = refusal(Path(command[0]).name, ran.stderr, f"{_INCLUDE}{os.sep}").diagnostics[0]
        raise PtoError(Diagnostic("PTO-U062", finding.message, finding.loc, notes=finding.notes))
    return ran.stdout


def _launch(launch: Launch) -> str:
    """A launch for the header; the operand of sizeof gives the usual errors of a wrong call."""
    kernel, arguments = launch.callee, launch.arguments
    call = f"{kernel}({' '.join(without_comments(arguments).split())})"
    passed = f", {arguments}" if arguments.strip() else ""
    return (
        f"((void)sizeof(({call}, 0)), ::pto_host::Kernel<decltype({kernel})>::launch("
        f'"{kernel}", __FILE__, __LINE__, {launch.blocks}{passed}))'
    )


def _names_in(expanded: str) -> list[str]:
    """The names of cases in a preprocessed program, without those of system headers."""
    parts = _LINE.split(expanded)
    owners = zip(parts[1::2], parts[2::2], strict=True)
    text = "".join(part for file, part in owners if not file.startswith(("/usr/", "<")))
    if _TABLE.search(text) is None:
        return []
    return list(dict.fromkeys(_ROW.findall(text)))


class _PassedArgument(c.Structure):
    """`pto_host::Argument`."""

    _fields_ = [("kind", c.c_int64), ("size", c.c_int64), ("bits", c.c_uint64)]


_Passed = c.POINTER(_PassedArgument)
_SIGNATURES: dict[str, Any] = {
    "allocate": c.CFUNCTYPE(c.c_void_p, c.c_uint64),
    "release": c.CFUNCTYPE(c.c_int, c.c_void_p),
    "copy": c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint64, c.c_void_p, c.c_uint64, c.c_int),
    "fill": c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint64, c.c_int, c.c_uint64),
    "launch": c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_int64, _Passed, c.c_int64),
    "at": c.CFUNCTYPE(None, c.c_char_p, c.c_int),
    "wrote": c.CFUNCTYPE(None, c.c_char_p),
}


class _Calls(c.Structure):
    """`pto_host::Calls`."""

    _fields_ = list(_SIGNATURES.items())


@dataclass(slots=True)
class _Allocation:
    """Device memory: whole pages, of which the host owns the first `size` bytes."""

    pages: npt.NDArray[np.uint8]
    size: int
    is_freed: bool = False

    @property
    def start(self) -> int:
        return self.pages.ctypes.data


@dataclass
class _Device:
    """The device runtime of one run; the first error stops the host program."""

    submit: Callable[[KernelCall], None]
    error: BaseException | None = None
    writes: list[str] = field(default_factory=list[str])
    _loc: Loc | None = None  # of the current call
    _memory: list[_Allocation] = field(default_factory=list[_Allocation])

    def __post_init__(self) -> None:
        functions = {
            "allocate": self._guarded(self._allocate),
            "release": self._guarded(self._release),
            "copy": self._guarded(self._copy),
            "fill": self._guarded(self._fill),
            "launch": self._guarded(self._launch),
            "at": self._at,
            "wrote": self._wrote,
        }
        self.calls = _Calls(*(_SIGNATURES[name](call) for name, call in functions.items()))

    def _guarded(self, call: Callable[..., int]) -> Callable[..., int]:
        """A call that stores its exception for `run`; the host program sees a failure."""

        def guarded(*arguments: Any) -> int:
            try:
                return call(*arguments)
            except BaseException as error:
                self.error = error
                return 0 if call == self._allocate else 1

        return guarded

    def _at(self, file: bytes, line: int) -> None:
        self._loc = Loc(file.decode(errors="replace"), line)

    def _wrote(self, file: bytes) -> None:
        self.writes.append(os.path.normpath(os.fsdecode(file)))

    def _allocate(self, size: int) -> int:
        if sum(allocation.size for allocation in self._memory) + size > _MOST_BYTES:
            raise self._misuse(f"an allocation of {size} bytes is more than a case may have")
        pages = np.zeros(max(1, -(-size // PAGE)) * PAGE, np.uint8)
        self._memory.append(_Allocation(pages, size))
        return self._memory[-1].start

    def _release(self, start: int) -> int:
        self._allocation(start, 0).is_freed = True
        return 0

    def _copy(self, to: int, capacity: int, source: int, size: int, direction: int) -> int:
        if size > capacity:
            raise self._misuse(f"{size} bytes are copied into {capacity}")
        if not 0 <= direction < len(_DIRECTIONS):
            raise self._misuse(f"{direction} is no direction of a copy")
        for side, start, word in zip(
            _DIRECTIONS[direction], (source, to), ("from", "to"), strict=True
        ):
            is_device = self._find(start) is not None
            if is_device != (side == "device"):
                actual = "device" if is_device else "host"
                raise self._misuse(f"the copy is {word} {side} memory, and this is {actual} memory")
            if is_device:
                self._allocation(start, size)
        c.memmove(to, source, size)
        return 0

    def _require_side(self, word: str, side: str, start: int, size: int) -> None:
        actual = "host" if self._find(start) is None else "device"
        if actual != side:
            raise self._misuse(f"the copy is {word} {side} memory, and this is {actual} memory")
        if actual == "device":
            self._allocation(start, size)

    def _fill(self, to: int, capacity: int, value: int, size: int) -> int:
        if size > capacity:
            raise self._misuse(f"{size} bytes are set in {capacity}")
        self._allocation(to, size)
        c.memset(to, value, size)
        return 0

    def _launch(self, kernel: bytes, blocks: int, passed: Any, count: int) -> int:
        name = kernel.decode(errors="replace")
        if not 0 < blocks <= _MOST_BLOCKS:
            raise self._misuse(f"{name} is launched on {blocks} blocks")
        pairs = [self._argument(name, n + 1, passed[n]) for n in range(count)]
        arguments, owned = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        loc = self._loc or Loc("", 0)
        self.submit(KernelCall(name, blocks, tuple(arguments), loc, tuple(owned)))
        return 0

    def _argument(self, kernel: str, number: int, passed: _PassedArgument) -> tuple[Argument, int]:
        kind = chr(passed.kind)
        if kind == "*":
            allocation = self._find(passed.bits)
            if allocation is None:
                raise self._misuse(f"argument {number} of {kernel} is host memory or no memory")
            offset = passed.bits - allocation.start
            self._allocation(passed.bits, 0)
            return allocation.pages[offset:], max(0, allocation.size - offset)
        raw = np.array([passed.bits], np.uint64).view(np.uint8)[: passed.size]
        return raw.view(f"{kind}{passed.size}")[0], 0

    def _find(self, address: int | None) -> _Allocation | None:
        """The device memory that contains an address."""
        for allocation in reversed(self._memory):
            if 0 <= (address or 0) - allocation.start < allocation.pages.size:
                return allocation
        return None

    def _allocation(self, address: int | None, size: int) -> _Allocation:
        """The device memory that contains `size` bytes from an address."""
        allocation = self._find(address)
        if allocation is None:
            raise self._misuse("host memory is used where device memory is needed")
        if allocation.is_freed:
            raise self._misuse("device memory is used after it was freed")
        if (address or 0) - allocation.start + size > allocation.size:
            raise self._misuse(f"{size} bytes go outside a buffer of {allocation.size} bytes")
        return allocation

    def _misuse(self, message: str) -> PtoError:
        return fail("PTO-U063", message, loc=self._loc)


@contextmanager
def _inside(folder: Path) -> Generator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _standard_error() -> Generator[list[str]]:
    """Collect what C++ writes to standard error, and drop what it writes to standard output."""
    messages = [""]
    with tempfile.TemporaryFile() as file, Path(os.devnull).open("wb") as nothing:
        saved = {number: os.dup(number) for number in (1, 2)}
        os.dup2(nothing.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield messages
        finally:
            for number, copy in saved.items():
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            messages[0] = file.read(_MOST_MESSAGES).decode(errors="replace")
