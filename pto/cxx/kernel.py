"""C++ kernels from Python: `pto.cpp("k.cpp")["Kernel<float, 64>"][blocks](x, y)`.

NumPy in, NumPy out. The source is compiled with the user's compiler and runs in a child process.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.findings import Findings
from pto.core.intervals import stretches
from pto.cxx import compiler
from pto.cxx.branches import conditions_around, unknown
from pto.cxx.causes import grouped, summary
from pto.cxx.child import SECONDS, Called, Child, Given
from pto.cxx.header import INCLUDE
from pto.cxx.headers import needed
from pto.cxx.reach import used
from pto.cxx.source import read_included
from pto.observe.timing.result import Timing
from pto.plan.mode import Mode
from pto.run.launch.arrays import Array, Borrowed, borrow, over
from pto.run.launch.host import Report
from pto.run.launch.overlap import joined, written_back
from pto.target.defaults import DEFAULTS
from pto.target.profile import Target
from pto.target.profile import device as find_device
from pto.target.profile import profile as find_profile

if TYPE_CHECKING:
    from pto.observe import Verdict

Blocks = int | tuple[int, ...]
_Given = Borrowed | tuple[int] | int  # memory, the size of an array without values, or a word
_WORDS = {  # words by which a source distinguishes the sides of a core
    "vector": re.compile(r"__DAV_(?:C\d+_)?VEC__|\bDAV_VEC\b"),
    "cube": re.compile(r"__DAV_(?:C\d+_)?CUBE__|\bDAV_CUBE\b"),
}
_AUTO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+__PTO_AUTO__\b", re.MULTILINE)
AUTOMATIC = "built with __PTO_AUTO__: a compiler orders the pipes, and their order is not checked"
_BESIDE_A_CUBE = re.compile(  # cube work, sub-blocks, signals and queues to a cube
    r"TMATMUL|TGEMV|Tile(?:Type::)?(?:Left|Right|Acc)\b|TPUSH|TPOP|ffts|cross_core|intra_block"
    r"|sub_?block(?:id|_?idx|dim|_?num)",
    re.IGNORECASE,
)
_ENTRY = """
extern "C" __attribute__((visibility("default"))) void pto_main(const void* given)
{{
    const int64_t* words = static_cast<const int64_t*>(given);
    auto call = [=]() mutable {{ ::pto::machine::enter(&{0}, words + 1); }};
    ::pto::machine::launch<1 << 20>(words[0], call);
}}
extern "C" __attribute__((visibility("default"))) void pto_signature(const char** out)
{{
    ::pto::machine::signature(&{0}, out);
}}
"""


@dataclass(frozen=True, slots=True)
class CxxSource:
    """A C++ file; `source["Kernel<float, 64>"]` is one kernel of it."""

    path: Path
    profile: str
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()  # cube, vector; empty: decided by the code of the entry

    def __getitem__(self, entry: str) -> CppKernel:
        return CppKernel(self, entry)

    @property
    def is_automatic(self) -> bool:
        """True if synchronisation of the pipes is left to a compiler."""
        words = [d.partition("=")[0] for d in self.defines]
        return "__PTO_AUTO__" in words or any(map(_AUTO.search, read_included(self.path).values()))

    @property
    def warnings(self) -> list[Diagnostic]:
        """Warnings about branches of the source selected by an unknown macro."""
        return list(unknown(read_included(self.path), self.defines, self.profile))

    def _texts(self) -> dict[Path, str]:
        """The texts of the source and of the headers of its repository that it includes."""
        include = [*self.include, *needed(self.path, INCLUDE, self.include)]
        return read_included(self.path, INCLUDE, *include)

    def sides_of(self, entry: str) -> tuple[str, ...]:
        """The sides of a core that a kernel runs on, decided by the code that its entry uses.

        Both if that code distinguishes the sides. A kernel that mentions only vector cores and
        uses nothing of a cube runs on vector cores. `sides` of the source overrides it.
        """
        if self.sides:
            return self.sides
        if self.profile == "cpu":
            return ("both",)
        text = used(entry, self._texts().values())
        named = tuple(side for side, words in _WORDS.items() if words.search(text))
        if not named:
            return ("both",)
        if named == ("vector",) and not _BESIDE_A_CUBE.search(text):
            return named
        return tuple(_WORDS)

    def builds(self, entry: str) -> dict[str, Path]:
        """A shared object for each side."""
        find_profile(self.profile)
        if not self.path.is_file():
            raise fail("PTO-U248", f"there is no file {self.path}")
        sides, extra = self.sides_of(entry), _ENTRY.format(entry)
        built: dict[str, Path] = {}
        for side in sides:
            arguments = ([self.path], self.profile, side, self.include, self.defines)
            with suppress(compiler.Absent):  # `#ifdef __DAV_C220_VEC__` around the whole kernel
                built[side] = compiler.Build(*arguments, extra, entry).made()
        if not built:
            where = f"{self.path.name} has no {entry} on {self.profile}, {' or '.join(sides)}"
            notes = conditions_around(entry, read_included(self.path))
            why = f"{where}: the preprocessed source does not mention it"
            raise PtoError(Diagnostic("PTO-U243", why, notes=notes))
        return built


def cpp(
    path: str | Path,
    *,
    profile: str | None = None,
    include: Sequence[str | Path] = (),
    defines: Sequence[str] = (),
    sides: Sequence[str] = (),
) -> CxxSource:
    """A C++ PTO source. It is compiled and executed as native code, with your rights."""
    folders = tuple(Path(p).resolve() for p in include)
    chosen = profile or DEFAULTS.text
    return CxxSource(Path(path).resolve(), chosen, folders, tuple(defines), tuple(sides))


@dataclass(frozen=True, slots=True)
class BoundCppKernel:
    """`kernel[blocks]`: a kernel and the grid it runs on."""

    kernel: CppKernel
    blocks: Blocks

    def __call__(self, *args: Any, **options: Any) -> Report:
        return self.kernel.run(*args, blocks=self.blocks, **options)

    def sanitize(self, *args: Any, **options: Any) -> Verdict:
        return self.kernel.sanitize(*args, blocks=self.blocks, **options)

    def time(self, *args: Any, **options: Any) -> Timing:
        return self.kernel.time(*args, blocks=self.blocks, **options)


class CppKernel:
    """One `__global__` function of a C++ source."""

    def __init__(self, source: CxxSource, entry: str) -> None:
        self.source = source
        self.entry = entry
        self._child: Child | None = None
        self._signature: list[tuple[bool, str]] | None = None

    def __getitem__(self, blocks: Blocks) -> BoundCppKernel:
        return BoundCppKernel(self, blocks)

    def __call__(self, *args: Any) -> Report:
        return self.run(*args)

    def __repr__(self) -> str:
        return f"<C++ kernel {self.entry} of {self.source.path.name}, {self.source.profile}>"

    def on(self, profile: str) -> CppKernel:
        """The same kernel for another profile."""
        source = self.source
        return CppKernel(
            CxxSource(source.path, profile, source.include, source.defines, source.sides),
            self.entry,
        )

    def signature(self, timeout: float = SECONDS) -> list[tuple[bool, str]]:
        """(is a pointer, element type) of each parameter; the first call starts the child."""
        known = self._signature
        if known is None:
            self._signature = known = self._ask("signature", timeout)
        return known

    def run(self, *args: Any, blocks: Blocks = 1, timeout: float = SECONDS) -> Report:
        """Run on arrays, which are changed in place; `timeout` ends a longer run, in seconds."""
        called = self._call(args, blocks, timeout)
        for finding in self.source.warnings:
            warnings.warn(str(finding), stacklevel=3)
        return self._report(called, blocks)

    def _report(self, called: Called, blocks: Blocks) -> Report:
        target = Target(find_profile(self.source.profile), None, "the profile of the kernel")
        return Report(target, "reference", self.entry, _count(blocks), tuple(called.printed))

    def sanitize(self, *args: Any, blocks: Blocks = 1, timeout: float = SECONDS) -> Verdict:
        """Run under the sanitizer: races, flags that do not match, reads of undefined data.

        There is one finding per cause, with all its locations. In a source built with
        `__PTO_AUTO__` a compiler synchronises the pipes.
        """
        from pto.observe import Verdict  # only here: a plain run needs no observer

        mode: Mode = "automatic" if self.source.is_automatic else "flags"
        called = self._call(args, blocks, timeout, watch=mode)
        about = AUTOMATIC if self.source.is_automatic else ""
        findings = [*self.source.warnings, *called.findings]
        causes = grouped(findings)
        report = self._report(called, blocks)
        return Verdict(causes, mode, report, about, summary(causes, len(findings)))

    def time(
        self,
        *args: Any,
        blocks: Blocks = 1,
        device: str | None = None,
        timeout: float = SECONDS,
        cache: str = "cold",
        costs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Timing:
        """The estimated time of a launch on a chip, by lines of the source.

        Arrays are needed if the kernel reads their values, such as lengths or offsets; otherwise
        shapes are enough. Nothing is computed or written. `cache`, `costs`: as of `kernel.time`.
        """
        wanted = self.source.profile if device is None else find_device(device).profile
        if wanted != self.source.profile:
            how: dict[str, Any] = {"device": device, "cache": cache, "costs": costs}
            return self.on(wanted).time(*args, blocks=blocks, timeout=timeout, **how)
        with _sent(self._given(args, timeout, shapes=True), blocks) as sent:
            how = {"device": device, "automatic": self.source.is_automatic}
            how |= {"cache": cache, "costs": costs}
            timing: Timing = self._ask("time", timeout, **sent, **how)
        timing.kernel = self.entry
        return timing

    def check(self, *args: Any, blocks: Blocks = 1, timeout: float = SECONDS) -> Findings:
        """Findings of a run with these arguments, on copies: a C++ kernel is checked by running."""
        copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        try:
            findings = self._call(copies, blocks, timeout).findings
        except PtoError as error:
            findings = error.diagnostics
        return Findings([*self.source.warnings, *findings])

    def close(self) -> None:
        """End the child process; the next call starts a new one."""
        if self._child is not None:
            self._child.end()
            self._child = None

    # ---- the child

    def _ask(self, request: str, seconds: float = SECONDS, **arguments: Any) -> Any:
        if self._child is None:
            self._child = Child(self.source.builds(self.entry), self.source.profile)
        return self._child.ask(request, seconds, **arguments)

    def _call(
        self, args: Sequence[Any], blocks: Blocks, timeout: float, watch: Mode | None = None
    ) -> Called:
        """Call the kernel in the child; a file passes the arrays in both directions."""
        passed = _apart(self._given(args, timeout))
        with _sent(passed, blocks) as sent:
            called: Called = self._ask("call", timeout, **sent, watch=watch)
            raw = np.fromfile(sent["file"], np.uint8)
        for argument, where in zip(passed, sent["arguments"], strict=True):
            if isinstance(argument, Borrowed):
                argument.array.reshape(-1).view(np.uint8)[:] = raw[where]
                if argument.give_back is not None:
                    argument.give_back()
        return called

    def _given(self, args: Sequence[Any], timeout: float, shapes: bool = False) -> list[_Given]:
        """An array for a pointer (None: null; a shape: its bytes), the bits of other arguments."""
        parameters = self.signature(timeout)
        wanted = len(parameters)
        if wanted != len(args):
            raise fail("PTO-U032", f"{self.entry} takes {wanted} arguments, got {len(args)}")
        passed: list[_Given] = []
        for n, ((pointer, element), value) in enumerate(zip(parameters, args, strict=True)):
            if not pointer:
                passed.append(_bits(self.entry, n, element, value))
            elif shapes and isinstance(value, tuple):
                kind = dtype("i8" if element in ("none", "?") else element)
                passed.append((prod(value) * kind.itemsize,))
            else:
                passed.append(0 if value is None else self._array(n, element, value))
        return passed

    def _array(self, n: int, element: str, value: Any) -> Borrowed:
        borrowed = borrow(value)
        if borrowed is None:
            raise fail("PTO-U212", f"{self.entry}: parameter {n} is a pointer, got {value!r}")
        kind = None if element in ("none", "?") else dtype(element)
        # GM_ADDR, a pointer to bytes, accepts any element type.
        if kind is not None and kind.name != "u8" and borrowed.array.itemsize != kind.itemsize:
            raise fail(
                "PTO-U213",
                f"{self.entry}: parameter {n} points to {element}, the array is"
                f" {borrowed.array.dtype}",
            )
        return borrowed


def _apart(passed: list[_Given]) -> list[_Given]:
    """The arguments with one copy for each array that is copied; all of them may be written."""
    places = [n for n, value in enumerate(passed) if isinstance(value, Borrowed)]
    arrays = joined([value for value in passed if isinstance(value, Borrowed)])
    names = [f"parameter {n}" for n in places]
    separate = dict(
        zip(places, written_back(dict(zip(names, arrays, strict=True)), names), strict=True)
    )
    return [separate.get(n, value) for n, value in enumerate(passed)]


def _count(blocks: Blocks) -> int:
    return blocks if isinstance(blocks, int) else prod(blocks)


@contextmanager
def _sent(passed: Sequence[_Given], blocks: Blocks) -> Generator[dict[str, Any]]:
    """The arguments of a request, with the bytes of arrays in a file; arrays that overlap do so
    there too."""
    spans = {
        id(argument): _span(argument.array) for argument in passed if isinstance(argument, Borrowed)
    }
    with tempfile.NamedTemporaryFile(prefix="pto-") as file:
        starts: dict[int, int] = {}  # places in the file, by address
        for low, high in stretches(spans.values()):
            starts[low] = file.tell()
            file.write(over(low, high - low, np.dtype(np.uint8)).data)
        listed: list[Given] = []
        for argument in passed:
            if isinstance(argument, Borrowed):
                low, high = spans[id(argument)]
                first = max((start for start in starts if start <= low < high), default=low)
                at = starts.get(first, low) + low - first
                argument = slice(at, at + high - low)
            listed.append(argument)
        file.flush()
        yield {"blocks": _count(blocks), "arguments": listed, "file": file.name}


def _span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of a contiguous array and behind the last."""
    return array.ctypes.data, array.ctypes.data + array.nbytes


def _bits(entry: str, n: int, element: str, value: Any) -> int:
    if not isinstance(value, int | float | np.generic):
        raise fail("PTO-U033", f"{entry}: parameter {n} is {element}, got {type(value).__name__}")
    if element == "f64":
        return int(np.float64(value).view(np.int64))
    kind = dtype(element) if element not in ("none", "?") else dtype("i64")
    if kind.is_float:
        return int.from_bytes(np.asarray(value, kind.numpy).tobytes(), "little")
    return int(value)
