"""The child process in which compiled kernels run, and the parent's interface to it.

Native code can crash, loop forever or use all memory: that ends only a child with limits, and the
parent reports the location. This is no protection from malicious code: it has the user's rights.
"""

from __future__ import annotations

import ctypes as c
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.errors import Diagnostic, Loc, Note, PtoError
from pto.cxx import running

if TYPE_CHECKING:
    from pto.plan.mode import Mode

MEMORY = 16 << 30  # bytes of address space of a child
SECONDS = 600.0  # default time limit of one request
RANKS = (1, 2, 3, 4, 8)  # numbers of ranks to try for a test with several ranks
_GRACE = 3.0  # seconds for a child to report its location
_NOTE = 1 << 12  # bytes at the beginning of a child's standard error: what it is doing
_SIGNALS = {
    signal.SIGSEGV: "touched memory that is not its own",
    signal.SIGBUS: "touched memory that is not its own",
    signal.SIGFPE: "divided by zero",
    signal.SIGILL: "ran into an instruction the processor does not have",
    signal.SIGABRT: "gave up (abort)",
    signal.SIGALRM: "did not end in time",
}

# ---- findings across the pipe


def _loc(loc: Loc | None) -> Any:
    return None if loc is None else [loc.file, loc.line, loc.col, loc.end]


def packed(finding: Diagnostic) -> dict[str, Any]:
    notes = [[note.message, _loc(note.loc)] for note in with_callers(finding).notes]
    return {
        "code": finding.code,
        "message": finding.message,
        "loc": _loc(finding.loc),
        "severity": finding.severity,
        "notes": notes,
        "help": finding.help,
    }


def unpacked(data: Mapping[str, Any]) -> Diagnostic:
    notes = tuple(Note(message, Loc(*loc) if loc else None) for message, loc in data["notes"])
    loc = Loc(*data["loc"]) if data["loc"] else None
    return Diagnostic(data["code"], data["message"], loc, data["severity"], notes, data["help"])


def with_callers(finding: Diagnostic) -> Diagnostic:
    """The finding with a note for each function around its place, innermost first."""
    from dataclasses import replace

    notes = list(finding.notes)
    callers = getattr(finding.loc, "callers", ())
    notes[:0] = [Note("called from here", loc) for loc in callers[:3]]
    out: list[Note] = []
    for note in notes:
        out.append(note)
        inner = getattr(note.loc, "callers", ())
        out += [Note("called from here", loc) for loc in inner[:2] if loc not in callers]
    return replace(finding, notes=tuple(out))


# ---- the parent's side


class Crash(PtoError):
    """The child ended during a request."""


class Child:
    """A child process that runs one program."""

    MODULE = "pto.cxx.child"  # what the process runs

    def __init__(self, builds: Mapping[str, Path], profile: str) -> None:
        self.builds = dict(builds)
        self._profile = profile
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        ours, theirs = os.pipe()
        asked, asking = os.pipe()
        self._errors = os.memfd_create("pto-errors")
        os.lseek(self._errors, _NOTE, os.SEEK_SET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.MODULE, str(asked), str(theirs)],
            pass_fds=(asked, theirs),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(asked)
        self._read, self._write, self._rest = ours, asking, b""
        self.ask(self._load_request())
        return self._process

    def _load_request(self) -> Mapping[str, Any]:
        builds = {side: str(path) for side, path in self.builds.items()}
        return {"do": "load", "builds": builds, "profile": self._profile}

    def ask(self, request: Mapping[str, Any], seconds: float = SECONDS) -> Any:
        """Send a request and return the answer; raises the child's findings, or Crash."""
        process = self._process or self._start()
        with running.tracked(process):
            try:
                os.write(self._write, json.dumps(request).encode() + b"\n")
                answer = self._line(seconds)
            except KeyboardInterrupt:
                self.end()
                raise
        if answer is None:
            raise self._ended(process, seconds)
        found = json.loads(answer)
        if "error" in found:
            raise PtoError(*(unpacked(d) for d in found["error"]))
        return found

    def _line(self, seconds: float) -> bytes | None:
        """One line of the child; None when it ends or is late."""
        end, reported = time.monotonic() + seconds, False
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._read, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not waiting.select(max(0.0, end - time.monotonic())):
                    if reported or self._process is None:
                        return None
                    self._process.send_signal(signal.SIGALRM)  # it reports its location
                    end, reported = time.monotonic() + _GRACE, True
                    continue
                more = os.read(self._read, 1 << 16)
                if not more:
                    return None
                self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _ended(self, process: subprocess.Popen[bytes], seconds: float) -> Crash:
        """The reason for the end of the child, with its source line."""
        process.kill()
        code = process.wait()
        os.lseek(self._errors, 0, os.SEEK_SET)
        note = os.read(self._errors, _NOTE).rstrip(b"\0").decode(errors="replace")
        text = os.read(self._errors, 1 << 20).decode(errors="replace")
        self._close()
        subject, notes = self._doing(note)
        found = re.findall(r"^pto-crash (\d+) ([0-9a-f]+)$", text, re.MULTILINE)
        if not found:
            late = code == -signal.SIGKILL
            what = f"did not end within {seconds:g} s" if late else f"ended with status {code}"
            tail = "\n".join(text.strip().splitlines()[-3:])
            return Crash(
                Diagnostic("PTO-U245", f"{subject} {what}", notes=notes, help=tail or None)
            )
        number, address = int(found[-1][0]), int(found[-1][1], 16)
        what = _SIGNALS.get(signal.Signals(number), f"ended by signal {number}")
        if number == signal.SIGALRM:
            what = f"did not end within {seconds:g} s"
        calls = re.findall(r"^pto-call ([0-9a-f]+) (.+)$", text, re.MULTILINE)
        place = self._place(address, calls)
        return Crash(Diagnostic("PTO-U245", f"{subject} {what}", place, notes=notes))

    def _doing(self, note: str) -> tuple[str, tuple[Note, ...]]:
        """The code that ran when the child ended, by its last `tell`, and notes about it."""
        return "the kernel", ()

    def _place(self, last: int, calls: Sequence[tuple[str, str]]) -> Loc | None:
        """The line that crashed, by its calls (offset, file); else that of the last instruction."""
        from pto.cxx.native import lines_of

        builds = {str(path): path for path in self.builds.values()}
        places = [(builds[file], int(at, 16)) for at, file in calls if file in builds]
        places += [(path, last) for path in builds.values() if last]
        found = (lines_of(path, (address,))[0] for path, address in places)
        return next((loc for loc in found if loc.line), None)

    def _close(self) -> None:
        for fd in (self._read, self._write, self._errors):
            os.close(fd)
        self._process = None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close()


# ---- the child's side


class ChildServer:
    """Answers requests about one program."""

    def __init__(self) -> None:
        from pto.target.library import library
        from pto.target.profile import profile

        self._find = lambda name: library(profile(name))

    def load(self, builds: Mapping[str, str], profile: str) -> dict[str, Any]:
        from pto.cxx.native import NativeBuild

        self.profile = self._find(profile)
        self.builds = {side: NativeBuild(Path(path)) for side, path in builds.items()}
        os.environ["MPI_LIB_PATH"] = str(_as_mpi(Path(next(iter(builds.values())))))
        return {}

    def names(self) -> dict[str, Any]:
        """The tests of a host program."""
        return {"tests": next(iter(self.builds.values())).tests()}

    def test(self, number: int, folder: str, ranks: Sequence[int] = RANKS) -> dict[str, Any]:
        """Run one test of a host program in a folder, with the first number of ranks that fits."""
        from pto.cxx.program import NativeProgram

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

    def signature(self) -> dict[str, Any]:
        """The parameters of the kernel: pairs of "*" or "", and the type."""
        room = (c.c_char_p * 256)()
        next(iter(self.builds.values())).lib.pto_signature(room)
        words = [w.decode() for w in room[: list(room).index(None)] if w is not None]
        return {"found": list(zip(words[::2], words[1::2], strict=True))}

    def call(
        self, blocks: int, given: Sequence[Mapping[str, int]], file: str, watch: Mode | None
    ) -> dict[str, Any]:
        """Launch the kernel on the arrays in a file; results are written back to the file."""
        from pto.cxx.program import Launcher

        raw = np.fromfile(file, np.uint8)
        launcher = Launcher(self.builds, self.profile, blocks, given, raw)
        try:
            found = launcher.watched(watch) if watch else launcher.plain()
            raw.tofile(file)
            return {"findings": [packed(d) for d in found], "printed": launcher.printed}
        finally:
            launcher.release()

    def time(
        self,
        blocks: int,
        given: Sequence[Mapping[str, int]],
        device: str | None,
        file: str,
        automatic: bool,
    ) -> dict[str, Any]:
        """Time a launch on a chip and write the result to a file."""
        from pto.cxx.program import Launcher
        from pto.cxx.timing import written

        launcher = Launcher(self.builds, self.profile, blocks, given, np.fromfile(file, np.uint8))
        launcher.fill()
        try:
            written(launcher, self.profile, blocks, device, Path(file), automatic)
            return {}
        finally:
            launcher.release()


def _as_mpi(build: Path) -> Path:
    """A folder in which the host finds an MPI library by name: a link to the build itself."""
    link = build.with_name(f"libmpi-{build.name}")
    with suppress(FileExistsError):
        link.symlink_to(build.name)
    return link


def _least(*limits: int) -> int:
    """The strictest of some limits of this process."""
    return min((n for n in limits if n != resource.RLIM_INFINITY), default=resource.RLIM_INFINITY)


def tell(note: str) -> None:
    """Tell the parent what runs now, in case that this process ends."""
    os.pwrite(2, note.encode()[:_NOTE].ljust(_NOTE, b"\0"), 0)


def serve(server: object) -> None:
    """Answer the requests of the parent; its pipes are the arguments of this process."""
    asked, answers = map(int, sys.argv[1:])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_least(MEMORY, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(asked, encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            try:
                answer = getattr(server, request.pop("do"))(**request)
            except PtoError as error:
                answer = {"error": [packed(d) for d in error.diagnostics]}
            except MemoryError:
                message = f"the kernel needs more than {MEMORY >> 30} GiB of memory"
                answer = {"error": [packed(Diagnostic("PTO-U245", message))]}
            os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    serve(ChildServer())
