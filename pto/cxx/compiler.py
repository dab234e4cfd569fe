"""The user's C++ compiler: found, asked, and what it made kept on disk.

A build is a shared object for one side of a core. The header is compiled once for each profile.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pto.core.errors import PtoError, fail
from pto.cxx import header, kept, provided, running
from pto.cxx.complaints import refusal
from pto.cxx.source import forward, prepared, redefines

_STANDARD = {"cpu": "c++20", "a2a3": "c++17", "a5": "c++17"}  # what kernels of each are written in
_FLAGS = [
    "-O0",
    "-g1",
    "-fPIC",
    "-w",
    "-fno-omit-frame-pointer",
    "-fvisibility=hidden",
    "-fpermissive",
]
# Each block of a source calls a function of the runtime, which counts what C++ does between
# instructions where a launch is timed.
_COUNTED = "-fsanitize-coverage=trace-pc"
_NEWER = "c++20"
HOST = "main.cpp"  # of a system test
CLANGS = ("clang++", *(f"clang++-{n}" for n in range(22, 13, -1)))
_SECONDS = 300  # of one compilation


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler, what it calls itself, and the language it is to take."""

    path: str
    version: str
    newer: bool = False  # C++20, whatever kernels of a profile are written in

    def flags(self, profile: str) -> list[str]:
        """-fno-gnu-unique: two builds of one kernel in a process keep their own variables."""
        gcc, standard = not self.is_clang, _NEWER if self.newer else _STANDARD[profile]
        own = [f"-std={standard}", f"-DPTO_MACHINE_PROFILE={provided.profile_number(profile)}"]
        return [*own, *_FLAGS, *(["-fno-gnu-unique"] if gcc else ["-Wno-everything"])]

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version.lower()


@cache
def _named(name: str) -> Compiler | None:
    path = shutil.which(name) if name else None
    if path is None:
        return None
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    return Compiler(path, ran.stdout.splitlines()[0]) if ran.returncode == 0 else None


def others() -> Iterator[Compiler]:
    """What else to try with a source that the first compiler does not take.

    Kernels are written for a compiler made of clang, which takes what g++ does not: some explicit
    instantiations, and templates that arguments alone make visible, as C++20 has them.
    """
    first = find()
    if not os.environ.get("CXX"):
        clang = next(filter(None, map(_named, CLANGS)), None)
        if clang is not None and not first.is_clang:
            yield clang
    yield replace(first, newer=True)


@cache
def find() -> Compiler:
    """CXX, else g++ or clang++ on the PATH."""
    for name in (os.environ.get("CXX", ""), "g++", *CLANGS):
        found = _named(name)
        if found is not None:
            return found
    raise fail(
        "PTO-U242",
        "running C++ kernels needs a C++17 compiler, and there is none",
        help="install g++ 12 or newer, or clang++, or set CXX to one",
    )


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


@cache
def _base(profile: str, compiler: Compiler) -> Path:
    """The header tree of a profile with its runtime, compiled once."""
    texts = [p.read_text(encoding="utf-8") for p in sorted(header.INCLUDE.rglob("*.h*"))]
    texts += [header.RUNTIME.read_text(encoding="utf-8"), header.kinds(), header.instructions()]
    texts += [provided.macros_text(), provided.names_text()]
    flags = compiler.flags(profile)
    digest = _digest(texts, compiler, flags, _COUNTED)
    folder = kept.folder() / f"{profile}-{digest}"
    kept.require_own(folder)
    is_new = not kept.is_ready(folder / "runtime.o")
    if is_new:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            include = header.write(made / "include")
            command = [compiler.path, *flags, f"-I{include}", "-c", str(header.RUNTIME)]
            _run([*command, "-o", str(made / "runtime.o")])
            (made / "runtime.o").chmod(0o600)
            with suppress(OSError):  # another process was first
                made.rename(folder)
            kept.require_own(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    head = folder / "include" / header.PRELUDE
    ready = head.with_name(f"{head.name}.gch")
    if not kept.is_ready(ready):  # made where it stays: clang writes down where its headers lie
        command = [compiler.path, *flags, f"-I{folder / 'include'}", "-x", "c++-header", str(head)]
        with tempfile.TemporaryDirectory(dir=head.parent) as scratch:
            made = Path(scratch) / ready.name
            _run([*command, "-o", str(made)])
            kept.publish(made, ready)  # of several that make it at a time the last one stays
    kept.note_use(folder, is_new)
    return folder


def _mentions(command: Sequence[str], file: Path, entry: str) -> bool:
    """Is the kernel, `ns::name<..>`, named in what the preprocessor leaves of the user's files?"""
    name = re.escape(entry.partition("<")[0].rpartition("::")[2].strip())
    ran = _ran([*command, "-E", str(file)])
    pieces = re.split(r'^# \d+ "([^"]*)".*$', ran.stdout, flags=re.MULTILINE)[1:]
    folders = ("/usr/", "<", f"{kept.folder()}{os.sep}")
    theirs = (
        text
        for origin, text in zip(pieces[::2], pieces[1::2], strict=True)
        if origin == str(file) or not origin.startswith(folders)
    )
    return ran.returncode != 0 or any(re.search(rf"\b{name}\b", text) for text in theirs)


def _ran(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return running.run(command, _SECONDS)
    except subprocess.TimeoutExpired:
        raise fail("PTO-U243", f"{command[0]} did not end within {_SECONDS} s") from None


# A compiler that links its own copy of libstdc++ must not share symbols with the copy that Python's
# modules have loaded: the two may have different versions.
_LINKED = ("-Wl,-Bsymbolic", "-Wl,--exclude-libs,libstdc++.a", "-Wl,-z,defs", "-ldl")


def _run(command: Sequence[str], ours: Path | None = None) -> None:
    """`ours`: the folder of the header tree, in which no error is placed."""
    ran = _ran(command)
    if ran.returncode:
        raise refusal(Path(command[0]).name, ran.stderr, f"{ours or header.INCLUDE}{os.sep}")


def build(
    sources: Sequence[Path],
    profile: str,
    side: str = "both",
    *,
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    extra: str = "",
    entry: str = "",
    own: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """A shared object of these sources for a side, or for their `own` one, by name of the file;
    `extra` is text of one more source, which calls `entry`: Absent where this side has no such."""
    wanted = Wanted(sources, side, include, defines, extra, entry, own)
    try:
        return _built(profile, find(), wanted)
    except PtoError as error:
        for compiler in others() if error.diagnostics[0].code == "PTO-U243" else ():
            with suppress(PtoError):
                return _built(profile, compiler, wanted)
        raise


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `build` makes, whoever compiles it."""

    sources: Sequence[Path]
    side: str
    include: Sequence[Path]
    defines: Sequence[str]
    extra: str
    entry: str
    own: Mapping[str, str]


class Absent(Exception):
    """The preprocessor leaves nothing of the kernel on this side of a core."""


def _built(profile: str, compiler: Compiler, wanted: Wanted) -> Path:
    base, sources, extra = _base(profile, compiler), wanted.sources, wanted.extra
    with tempfile.TemporaryDirectory(dir=base) as scratch:
        work = Path(scratch)
        if extra:
            (work / "entry.cpp").write_text(extra, encoding="utf-8")
        ready = [prepared(source, work) for source in sources]
        given = (wanted.side, wanted.defines, wanted.include, extra, sorted(wanted.own.items()))
        paths = [str(source) for source in sources]  # which the line table of a build names
        key = _digest(paths, [texts for _, _, texts in ready], *given)
        target = base / f"{sources[0].stem}-{wanted.side}-{key}.so"
        absent = target.with_suffix(".absent")
        if kept.is_ready(target):
            return target
        if kept.is_ready(absent):
            raise Absent
        counted = f"{_COUNTED},no-prune" if compiler.is_clang else _COUNTED  # each block, not some
        flags = [*compiler.flags(profile), counted, *(f"-D{d}" for d in wanted.defines)]
        objects: list[str] = []
        for n, (file, folders, texts) in enumerate(ready):
            whole = file
            if extra and n == 0:  # the entry is compiled with the first source, which it names
                whole = work / "whole.cpp"
                whole.write_text(f'#include "{file}"\n{extra}', encoding="utf-8")
            out = work / f"{n}.o"
            more = forward(texts, base / "include", work / "forward")
            seen = [f"-I{f}" for f in (base / "include", more, *folders, *wanted.include)]
            head = [] if redefines(texts) else ["-include", str(base / "include" / header.PRELUDE)]
            if sources[n].name == HOST:
                head += ["-include", str(base / "include" / header.FILES)]
            side = wanted.own.get(sources[n].name, wanted.side)
            alone = provided.side_options(profile, side)
            command = [compiler.path, *flags, *alone, *seen, *head]
            try:
                _run([*command, "-c", str(whole), "-o", str(out)], base)
            except PtoError:
                if n == 0 and wanted.entry and not _mentions(command, file, wanted.entry):
                    absent.touch(mode=0o600)
                    raise Absent from None
                raise
            objects.append(str(out))
        made = work / "made.so"
        linked = [*objects, str(base / "runtime.o"), *_LINKED]
        _run([compiler.path, "-shared", "-o", str(made), *linked])
        kept.publish(made, target)
    return target
