"""Finds and runs the user's C++ compiler, and caches its builds on disk.

A build is a shared object for one side of a core. The header is compiled once for each profile.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pto.core import process
from pto.core.disk_cache import make_folder
from pto.core.errors import PtoError, fail
from pto.cxx import header, kept, provided
from pto.cxx.complaints import refusal
from pto.cxx.headers import needed
from pto.cxx.hints import hinted
from pto.cxx.source import forward, prepared, read_included, redefines

_STANDARD = {"cpu": "c++20", "a2a3": "c++17", "a5": "c++17"}  # of kernels, by profile
_FLAGS = [
    "-O0",
    "-g1",
    "-fPIC",
    "-w",
    "-fno-omit-frame-pointer",
    "-fvisibility=hidden",
    "-fpermissive",
]
# Each basic block of a source calls a function of the runtime, which counts C++ operations between
# instructions when a launch is timed.
_COUNTED = "-fsanitize-coverage=trace-pc"
_NEWER = "c++20"
HOST = "main.cpp"  # of a system test
_OLDEST_CLANG = 15  # with _Float16 on x86
CLANGS = ("clang++", *(f"clang++-{n}" for n in range(22, _OLDEST_CLANG - 1, -1)))
_SECONDS = 300  # of one compilation


@dataclass(frozen=True, slots=True)
class CxxCompiler:
    """A C++ compiler, its version text, and the language standard to use."""

    path: str
    version: str
    newer: bool = False  # use C++20 for every profile

    def flags(self, profile: str) -> list[str]:
        """Compiler options. -fno-gnu-unique: two builds in one process keep separate variables."""
        gcc, standard = not self.is_clang, _NEWER if self.newer else _STANDARD[profile]
        standard_flags = [
            f"-std={standard}",
            f"-DPTO_MACHINE_PROFILE={provided.profile_number(profile)}",
        ]
        return [*standard_flags, *_FLAGS, *(["-fno-gnu-unique"] if gcc else ["-Wno-everything"])]

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version.lower()

    @property
    def is_too_old(self) -> bool:
        version = re.search(r"clang version (\d+)", self.version)
        return version is not None and int(version[1]) < _OLDEST_CLANG


@cache
def _named(name: str) -> CxxCompiler | None:
    path = shutil.which(name) if name else None
    if path is None:
        return None
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    compiler = CxxCompiler(path, ran.stdout.partition("\n")[0])
    return None if ran.returncode or compiler.is_too_old else compiler


def clang() -> CxxCompiler | None:
    """The first clang++ on the PATH that is new enough."""
    return next(filter(None, map(_named, CLANGS)), None)


def others() -> Iterator[CxxCompiler]:
    """Further compilers to try if the first one rejects a source.

    Kernels are written for a compiler based on clang, which accepts more than g++: some explicit
    instantiations, and templates found by argument-dependent lookup, as in C++20.
    """
    first = find()
    if not os.environ.get("CXX"):
        second = clang()
        if second is not None and not first.is_clang:
            yield second
    yield replace(first, newer=True)


@cache
def find() -> CxxCompiler:
    """CXX, else g++ or clang++ on the PATH."""
    for name in (os.environ.get("CXX", ""), "g++", *CLANGS):
        compiler = _named(name)
        if compiler is not None:
            return compiler
    raise fail(
        "PTO-U242",
        "C++ sources need a C++17 compiler, and none was found",
        help=f"install g++ 12 or clang++ {_OLDEST_CLANG}, or newer, or set CXX to one",
    )


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


@cache
def _base(profile: str, compiler: CxxCompiler) -> Path:
    """The header tree of a profile with its runtime, compiled once."""
    texts = [p.read_text(encoding="utf-8") for p in sorted(header.INCLUDE.rglob("*.h*"))]
    texts += [header.RUNTIME.read_text(encoding="utf-8"), header.kinds(), header.instructions()]
    texts += [provided.macros_text(), provided.names_text(), *header.register_headers().values()]
    flags = compiler.flags(profile)
    digest = _digest(texts, compiler, flags, _COUNTED)
    folder = kept.folder() / f"{profile}-{digest}"
    kept.require_own(folder)
    is_new = not kept.is_ready(folder / "runtime.o")
    if is_new:
        make_folder(folder.parent)
        folder_made = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            include = header.write(folder_made / "include")
            command = [compiler.path, *flags, f"-I{include}", "-c", str(header.RUNTIME)]
            _run([*command, "-o", str(folder_made / "runtime.o")])
            (folder_made / "runtime.o").chmod(0o600)
            with suppress(OSError):  # another process did it already
                folder_made.rename(folder)
            kept.require_own(folder)
        finally:
            shutil.rmtree(folder_made, ignore_errors=True)
    head = folder / "include" / header.PRELUDE
    ready = head.with_name(f"{head.name}.gch")
    if not kept.is_ready(ready):  # built in place: clang stores the paths of its headers
        command = [compiler.path, *flags, f"-I{folder / 'include'}", "-x", "c++-header", str(head)]
        with tempfile.TemporaryDirectory(dir=head.parent) as scratch:
            folder_made = Path(scratch) / ready.name
            _run([*command, "-o", str(folder_made)])
            kept.publish(folder_made, ready)  # the last of several concurrent builds is kept
    kept.note_use(folder, is_new)
    return folder


def _mentions(command: Sequence[str], file: Path, entry: str) -> bool:
    """True if the preprocessed user files still mention the kernel, `ns::name<..>`."""
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
    """Run a compiler, and remove its temporary files even if it is killed."""
    try:
        with tempfile.TemporaryDirectory(prefix="pto-cxx-", ignore_cleanup_errors=True) as scratch:
            return process.run(command, _SECONDS, env={**os.environ, "TMPDIR": scratch})
    except subprocess.TimeoutExpired:
        raise fail("PTO-U243", f"{command[0]} did not end within {_SECONDS} s") from None


# A compiler that links its own copy of libstdc++ must not share symbols with the copy that Python's
# modules have loaded: the two may have different versions.
_LINKED = ("-Wl,-Bsymbolic", "-Wl,--exclude-libs,libstdc++.a", "-Wl,-z,defs", "-ldl")


def _run(command: Sequence[str], ours: Path | None = None) -> None:
    """Run a compiler; errors are never located in `ours`, the folder of the header tree."""
    ran = _ran(command)
    if ran.returncode:
        raise refusal(Path(command[0]).name, ran.stderr, f"{ours or header.INCLUDE}{os.sep}")


@dataclass(frozen=True, slots=True)
class Build:
    """A shared object of some sources for a side of a core, independent of the compiler."""

    sources: Sequence[Path]
    profile: str
    side: str = "both"
    include: Sequence[Path] = ()
    defines: Sequence[str] = ()
    extra: str = ""  # an additional source text, which calls `entry`
    entry: str = ""
    own: Sequence[tuple[str, str]] = ()  # sources for another side: (file name, side)

    def made(self) -> Path:
        """Compile it, unless it is cached. Raises Absent if this side has no kernel."""
        try:
            return _built(find(), self)
        except PtoError as error:
            for compiler in others() if error.diagnostics[0].code == "PTO-U243" else ():
                with suppress(PtoError):
                    return _built(compiler, self)
            raise


class Absent(Exception):
    """The preprocessor removes the whole kernel on this side of a core."""


def _of_source(
    command: Sequence[str], unit: Path, file: Path, base: Path, error: PtoError
) -> PtoError:
    """The error of a source by itself, if it has one: an open brace of it is an error of the entry
    behind it."""
    if unit == file:
        return error
    try:
        _run([*command, "-fsyntax-only", str(file)], base)
    except PtoError as own:
        return own
    return error


def _built(compiler: CxxCompiler, wanted: Build) -> Path:
    profile = wanted.profile
    sources = wanted.sources
    extra = wanted.extra
    base = _base(profile, compiler)
    with tempfile.TemporaryDirectory(dir=base) as scratch:
        work = Path(scratch)
        if extra:
            (work / "entry.cpp").write_text(extra, encoding="utf-8")
        tree = base / "include"
        folders = [(*wanted.include, *needed(s, tree, wanted.include)) for s in sources]
        searched = list(zip(sources, folders, strict=True))
        ready = [prepared(s, work, tree=tree, include=paths) for s, paths in searched]
        options = (wanted.side, wanted.defines, folders, extra, sorted(wanted.own))
        paths = [str(source) for source in sources]  # for the line table of the build
        read = [read_included(source, tree, *include) for source, include in searched]
        key = _digest(paths, [list(texts.items()) for texts in read], *options)
        target = base / f"{sources[0].stem}-{wanted.side}-{key}.so"
        absent = target.with_suffix(".absent")
        if kept.is_ready(target):
            return target
        if kept.is_ready(absent):
            raise Absent
        counted = f"{_COUNTED},no-prune" if compiler.is_clang else _COUNTED  # each block, not some
        flags = [*compiler.flags(profile), counted, *(f"-D{d}" for d in wanted.defines)]
        objects: list[str] = []
        for n, (file, last, texts) in enumerate(ready):
            unit = file
            if extra and n == 0:  # the entry includes the first source
                unit = work / "whole.cpp"
                unit.write_text(f'#include "{file}"\n{extra}', encoding="utf-8")
            out = work / f"{n}.o"
            more = forward(texts, tree, work / "forward")
            includes = [f"-I{f}" for f in (tree, more, *last)]
            head = [] if redefines(texts) else ["-include", str(base / "include" / header.PRELUDE)]
            if sources[n].name == HOST:
                head += ["-include", str(base / "include" / header.FILES)]
            side = dict(wanted.own).get(sources[n].name, wanted.side)
            alone = provided.side_options(profile, side)
            command = [compiler.path, *flags, *alone, *includes, *head]
            try:
                _run([*command, "-c", str(unit), "-o", str(out)], base)
            except PtoError as error:
                if n == 0 and wanted.entry and not _mentions(command, file, wanted.entry):
                    absent.touch(mode=0o600)
                    raise Absent from None
                refused = _of_source(command, unit, file, base, error)
                raise hinted(refused, sources[n], wanted.entry) from None
            objects.append(str(out))
        library = work / "made.so"
        linked = [*objects, str(base / "runtime.o"), *_LINKED]
        _run([compiler.path, "-shared", "-o", str(library), *linked])
        kept.publish(library, target)
    return target
