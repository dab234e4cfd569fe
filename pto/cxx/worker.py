"""The child process of C++ kernels and system tests: native code, and the answers to requests."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.cxx.child import RANKS, Called, Given, packed, serve
from pto.cxx.native import NativeBuild
from pto.cxx.program import Launcher, NativeProgram
from pto.target.library import library
from pto.target.profile import profile as find_profile

if TYPE_CHECKING:
    from pto.observe.timing.result import Timing
    from pto.plan.mode import Mode


class ChildServer:
    """Answers requests about one program."""

    def load(self, builds: Mapping[str, Path], profile: str) -> None:
        self.profile = library(find_profile(profile))
        self.builds = {side: NativeBuild(path) for side, path in builds.items()}
        os.environ["MPI_LIB_PATH"] = str(_as_mpi(next(iter(builds.values()))))

    def names(self) -> list[str]:
        """The tests of a host program."""
        return next(iter(self.builds.values())).tests()

    def test(self, number: int, folder: str, ranks: Sequence[int] = RANKS) -> dict[str, Any]:
        """Run one test of a host program in a folder, with the first number of ranks that fits."""
        os.chdir(folder)
        program, index = NativeProgram(self.builds, self.profile), c.c_int64(number)
        lib = program.main.lib
        run = c.cast(lib.pto_run_test, c.c_void_p).value or 0
        for many in ranks:
            program.host(run, c.addressof(index), many)
            if not lib.pto_failures() or not lib.pto_asked_for_ranks():
                break
        missing = lib.pto_missing().decode(errors="replace")
        return {"failures": lib.pto_failures(), "launches": program.launches, "missing": missing}

    def signature(self) -> list[tuple[bool, str]]:
        """Whether each parameter of the kernel is a pointer, and its type."""
        buffer = (c.c_char_p * 256)()
        next(iter(self.builds.values())).lib.pto_signature(buffer)
        words = [w.decode() for w in buffer[: list(buffer).index(None)] if w is not None]
        return [(bool(star), type) for star, type in zip(words[::2], words[1::2], strict=True)]

    def call(
        self, blocks: int, arguments: Sequence[Given], file: str, watch: Mode | None
    ) -> Called:
        """Launch the kernel on the arrays in a file; results are written back to the file."""
        raw = np.fromfile(file, np.uint8)
        launcher = Launcher(self.builds, self.profile, blocks, arguments, raw)
        try:
            findings = launcher.watched(watch) if watch else launcher.plain()
            raw.tofile(file)
            return Called([packed(d) for d in findings], launcher.printed)
        finally:
            launcher.release()

    def time(
        self,
        blocks: int,
        arguments: Sequence[Given],
        file: str,
        device: str | None,
        automatic: bool,
        cache: Any = "cold",
        costs: Any = None,
    ) -> Timing:
        """Time a launch on a chip."""
        from pto.cxx.timing import timed  # only here: a plain run needs no observer

        raw = np.fromfile(file, np.uint8)
        launcher = Launcher(self.builds, self.profile, blocks, arguments, raw)
        launcher.fill()
        try:
            return timed(launcher, self.profile, blocks, device, automatic, cache, costs)
        finally:
            launcher.release()


def _as_mpi(build: Path) -> Path:
    """A folder in which the host finds an MPI library by name: a link to the build itself."""
    link = build.with_name(f"libmpi-{build.name}")
    with suppress(FileExistsError):
        link.symlink_to(build.name)
    return link


if __name__ == "__main__":
    serve(ChildServer())
