"""The calls host files make: device runtime (acl*), test files, C and C++ library.

They act on blocks of memory and on the files of one case; nothing here touches a device, and no
file outside the case's directory is read or written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from pto.gym.host.syntax import CType
from pto.gym.host.values import (
    CHAR,
    Builtin,
    CPointer,
    CVector,
    MemoryBlock,
    Reference,
    Space,
    Value,
    bytes_of,
    cannot_follow,
    converted,
    described,
    text_of,
)

_MOST_BYTES = 2 << 30
PAGE = 2 << 20  # bytes of a huge page, which ACL_MEM_MALLOC_HUGE_FIRST asks for
_MOST_MESSAGES = 200


class Files(Protocol):
    """Where a case's files are."""

    def read(self, name: str, most: int) -> bytes | None:
        """The content; None where there is no such file or it is larger than `most`."""
        ...

    def write(self, name: str, content: bytes) -> bool: ...

    def make_directory(self, name: str) -> bool: ...


class NoFiles:
    """Where there are none: for looking at a program without a case's data."""

    def read(self, name: str, most: int) -> bytes | None:
        return None

    def write(self, name: str, content: bytes) -> bool:
        return False

    def make_directory(self, name: str) -> bool:
        return False


class Directory:
    """The files below one directory; access to other files is an error."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def _path(self, name: str) -> Path:
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise cannot_follow(f"the file {name!r} is outside the case's directory")
        return path

    def read(self, name: str, most: int) -> bytes | None:
        path = self._path(name)
        if not path.is_file() or path.stat().st_size > most:
            return None
        return path.read_bytes()

    def write(self, name: str, content: bytes) -> bool:
        path = self._path(name)
        if not path.parent.is_dir():
            return False
        path.write_bytes(content)
        return True

    def make_directory(self, name: str) -> bool:
        path = self._path(name)
        existed = path.is_dir()
        path.mkdir(exist_ok=True)
        return not existed


@dataclass(eq=False, slots=True)
class FileStream:
    """An open std::ifstream."""

    content: bytes | None
    at: int = 0
    good: bool = True


@dataclass(eq=False, slots=True)
class Sink:
    """std::cout or std::cerr."""

    is_error: bool


@dataclass(slots=True)
class Runtime:
    """The state behind the calls of one run."""

    files: Files
    messages: list[str] = field(default_factory=list[str])  # what went to standard error
    reads: list[str] = field(default_factory=list[str])
    writes: list[str] = field(default_factory=list[str])
    allocated: int = 0

    def allocate(self, count: int, space: Space) -> MemoryBlock:
        self.allocated += count
        if count < 0 or self.allocated > _MOST_BYTES:
            raise cannot_follow(f"an allocation of {count} bytes is more than a case may have")
        pages = np.zeros(-(-count // PAGE) * PAGE if space == "device" else count, np.uint8)
        return MemoryBlock(pages[:count], pages, space)

    def array(self, type: CType, count: int) -> CPointer:
        return CPointer(self.allocate(count * (type.size or 1), "host"), 0, type)

    # device runtime

    def host_memory(self, target: Value, count: int, *_: Value) -> int:
        return self._allocate_into(target, count, "host")

    def device_memory(self, target: Value, count: int, *_: Value) -> int:
        return self._allocate_into(target, count, "device")

    def _allocate_into(self, target: Value, count: int, space: Space) -> int:
        if not isinstance(target, Reference):
            raise cannot_follow(f"an allocation goes into {described(target)}, no variable")
        target.place.set(CPointer(self.allocate(count, space), 0, target.place.type.target))
        return 0

    def free(self, pointer: Value) -> int:
        if isinstance(pointer, CPointer):
            pointer.block.is_freed = True
        return 0

    def device_copy(
        self, to: Value, room: int, source: Value, count: int, kind: Value, *_: Value
    ) -> int:
        if count > room:
            raise cannot_follow(f"{count} bytes are copied into {room}")
        for end, pointer in zip(_DIRECTIONS.get(kind, (None, None)), (source, to), strict=True):
            space = pointer.block.space if isinstance(pointer, CPointer) else "host"
            if end is not None and end != space:
                raise cannot_follow(f"{kind} takes {end} memory where {space} memory is given")
        self.copy(to, source, count)
        return 0

    def device_set(self, to: Value, room: int, value: int, count: int, *_: Value) -> int:
        if count > room:
            raise cannot_follow(f"{count} bytes are set in {room}")
        self.fill(to, value, count)
        return 0

    def open_stream(self, target: Value, *_: Value) -> int:
        if isinstance(target, Reference):
            target.place.set("stream")
        return 0

    # memory

    def copy(self, to: Value, source: Value, count: int) -> Value:
        store(to, load(source, count))
        return to

    def fill(self, to: Value, value: int, count: int) -> Value:
        store(to, bytes([value & 0xFF]) * count)
        return to

    def fill_elements(self, to: Value, count: int, value: Value) -> Value:
        """std::fill_n: elements of the pointer's own type."""
        if not isinstance(to, CPointer) or to.type is None or to.type.numpy is None:
            raise cannot_follow(f"fill_n fills {described(to)}")
        to.span(count * to.step).view(to.type.numpy)[:] = converted(value, to.type)
        return to.moved(count)

    def host_malloc(self, count: int, size: int = 1) -> CPointer:
        return CPointer(self.allocate(count * size, "host"), 0)

    # files

    def read_file(self, name: Value, size: Reference, to: Value, room: int) -> bool:
        path = text_of(name)
        content = self.files.read(path, room)
        self.reads.append(path)
        if not content:
            return False
        store(to, content)
        size.place.set(len(content))
        return True

    def write_file(self, name: Value, source: Value, count: int) -> bool:
        if source is None:
            return False
        path = text_of(name)
        self.writes.append(path)
        return self.files.write(path, load(source, count))

    def open_file(self, name: Value, *_: Value) -> FileStream:
        path = text_of(name)
        self.reads.append(path)
        content = self.files.read(path, _MOST_BYTES)
        return FileStream(content, good=content is not None)

    def make_directory(self, name: Value, *_: Value) -> int:
        return 0 if self.files.make_directory(text_of(name)) else -1

    # text

    def format_into(self, to: Value, room: int, pattern: Value, *values: Value) -> int:
        text = formatted(text_of(pattern), values).encode()
        store(to, (text[: max(0, room - 1)] + b"\0")[:room])
        return len(text)

    def print_to(self, stream: Value, pattern: Value, *values: Value) -> int:
        if isinstance(stream, Sink):
            self.tell(stream, formatted(text_of(pattern), values))
        return 0

    def tell(self, sink: Sink, text: str) -> None:
        if sink.is_error and len(self.messages) < _MOST_MESSAGES:
            self.messages.append(text)


_DIRECTIONS: dict[Value, tuple[Space, Space]] = {
    "ACL_MEMCPY_HOST_TO_HOST": ("host", "host"),
    "ACL_MEMCPY_HOST_TO_DEVICE": ("host", "device"),
    "ACL_MEMCPY_DEVICE_TO_HOST": ("device", "host"),
    "ACL_MEMCPY_DEVICE_TO_DEVICE": ("device", "device"),
}

_QUIET = (  # calls that only manage the device, the stream or the process
    "aclInit aclFinalize aclrtSetDevice aclrtResetDevice aclrtDestroyStream aclrtGetDevice"
    " aclrtSynchronizeStream aclrtSynchronizeDevice aclrtSetOpWaitTimeout printf puts fflush"
    " aclrtDestroyContext aclrtSetCurrentContext aclrtSynchronizeStreamWithTimeout"
)


def _constants() -> dict[str, Value]:
    plain = {"ACL_SUCCESS": 0, "ACL_ERROR_NONE": 0, "EXIT_SUCCESS": 0, "EXIT_FAILURE": 1}
    policies = ("HUGE_FIRST", "HUGE_ONLY", "NORMAL_ONLY")
    modes = ("binary", "in", "out", "ate", "trunc")
    return {
        **plain,
        **{f"ACL_MEM_MALLOC_{name}": index for index, name in enumerate(policies)},
        **{kind: kind for kind in _DIRECTIONS},
        **{f"{base}::{mode}": 0 for base in ("ios", "ios_base") for mode in modes},
        **{name: Sink(False) for name in ("stdout", "cout")},
        **{name: Sink(True) for name in ("stderr", "cerr")},
        "endl": "\n",
    }


def _calls() -> dict[str, Callable[..., Value]]:
    """Every call by its name; each takes the runtime first."""
    return {
        **{name: lambda _r, *_: 0 for name in _QUIET.split()},
        "aclrtMalloc": Runtime.device_memory,
        "aclrtMallocAlign32": Runtime.device_memory,
        "aclrtMallocHost": Runtime.host_memory,
        "aclrtFree": Runtime.free,
        "aclrtFreeHost": Runtime.free,
        "aclrtMemcpy": Runtime.device_copy,
        "aclrtMemcpyAsync": Runtime.device_copy,
        "aclrtMemset": Runtime.device_set,
        "aclrtMemsetAsync": Runtime.device_set,
        "aclrtCreateStream": Runtime.open_stream,
        "aclrtCreateContext": Runtime.open_stream,
        "aclGetRecentErrMsg": lambda _r, *_: None,
        "malloc": Runtime.host_malloc,
        "calloc": Runtime.host_malloc,
        "free": Runtime.free,
        "memcpy": Runtime.copy,
        "memmove": Runtime.copy,
        "memset": Runtime.fill,
        "fill_n": Runtime.fill_elements,
        "ReadFile": Runtime.read_file,
        "WriteFile": Runtime.write_file,
        "mkdir": Runtime.make_directory,
        "snprintf": Runtime.format_into,
        "fprintf": Runtime.print_to,
        "perror": lambda r, text: r.tell(Sink(True), text_of(text)),
        "strcmp": lambda _r, a, b: _order(text_of(a), text_of(b)),
        "strncmp": lambda _r, a, b, n: _order(text_of(a)[: int(n)], text_of(b)[: int(n)]),
        "strlen": lambda _r, a: len(text_of(a)),
        "getenv": lambda _r, *_: None,  # a case runs the same everywhere
        "atoi": lambda _r, a: _leading_integer(text_of(a)),
        "to_string": lambda _r, a: str(a),
        "min": lambda _r, a, b: min(a, b),
        "max": lambda _r, a, b: max(a, b),
    }


def _leading_integer(text: str) -> int:
    match = re.match(r"\s*[-+]?\d+", text)
    return int(match.group()) if match else 0


_BY_REFERENCE = {"ReadFile": frozenset({1})}


def builtins() -> dict[str, Value]:
    """The names that the emulated runtime defines."""
    calls = {n: Builtin(n, c, _BY_REFERENCE.get(n, frozenset())) for n, c in _calls().items()}
    return {**_constants(), **calls}


def _order(a: str, b: str) -> int:
    return (a > b) - (a < b)


def load(source: Value, count: int) -> bytes:
    """`count` bytes from where a pointer, or the address of a variable, points."""
    if isinstance(source, CPointer):
        return source.span(count).tobytes()
    if isinstance(source, CVector):
        raise cannot_follow("a vector is no address: `.data()` is")
    if isinstance(source, Reference):
        type = source.place.type
        content = bytes_of(source.place.get(), type).tobytes() if type.numpy else b""
        if count <= len(content):
            return content[:count]
    if isinstance(source, str):
        return (source.encode() + b"\0")[:count]
    raise cannot_follow(f"{count} bytes are read from {described(source)}")


def store(to: Value, content: bytes) -> None:
    """Write bytes where a pointer, or the address of a variable, points."""
    if isinstance(to, CPointer):
        to.span(len(content))[:] = np.frombuffer(content, np.uint8)
        return
    if isinstance(to, Reference) and to.place.type.numpy is not None:
        dtype = to.place.type.numpy
        if len(content) <= dtype.itemsize:
            old = bytes_of(to.place.get() or 0, to.place.type).tobytes()
            whole = content + old[len(content) :]
            to.place.set(np.frombuffer(whole, dtype)[0].item())
            return
    raise cannot_follow(f"{len(content)} bytes are written to {described(to)}")


_DIRECTIVE = re.compile(r"%([-+ 0#]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z%])")


def formatted(pattern: str, values: tuple[Value, ...]) -> str:
    """printf, as far as messages and file names need it."""
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        flags, kind = match.groups()
        if kind == "%":
            return "%"
        if not rest:
            raise cannot_follow(f"the format {pattern!r} has more places than values")
        value = rest.pop(0)
        if kind == "s":
            return f"%{flags}s" % text_of(value)
        if kind == "p" or not isinstance(value, int | float):
            return described(value)
        if kind == "c":
            return chr(int(value))
        number = int(value) if kind in "diuxXo" else float(value)
        return f"%{flags}{'d' if kind == 'u' else kind}" % number

    return _DIRECTIVE.sub(one, pattern)


def char_array(runtime: Runtime, text: str, count: int | None) -> CPointer:
    """`char name[count] = "text"`."""
    raw = text.encode() + b"\0"
    made = runtime.array(CHAR, count if count is not None else len(raw))
    store(made, raw[: made.block.data.size])
    return made


def vector(runtime: Runtime, type: CType, count: int, fill: Value = 0) -> CVector:
    """A std::vector of `count` numbers."""
    if type.numpy is None:
        raise cannot_follow(f"a vector of {type}")
    start = runtime.array(type, count)
    start.block.data.view(type.numpy)[:] = converted(fill, type)
    return CVector(start, count)
