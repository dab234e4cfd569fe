"""Child processes in which compiled code runs: the parent's interface, and the loop of a child.

Native code can crash, loop forever or use all memory: that ends only a child with limits, and the
parent reports the location. This is no protection from malicious code: it has the user's rights,
and the parent trusts its answers.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from pto.core.errors import Diagnostic, Loc, Note, PtoError, fail
from pto.cxx import running

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


def packed(finding: Diagnostic) -> Diagnostic:
    """The finding for another process: functions around its places are notes, innermost first."""
    callers = getattr(finding.loc, "callers", ())
    notes = [Note("called from here", loc) for loc in callers[:3]]
    for note in finding.notes:
        inner = [loc for loc in getattr(note.loc, "callers", ())[:2] if loc not in callers]
        notes += [note, *(Note("called from here", loc) for loc in inner)]
    plain = tuple(Note(note.message, _plain(note.loc)) for note in notes)
    return replace(finding, loc=_plain(finding.loc), notes=plain)


def _plain(loc: Loc | None) -> Loc | None:
    return None if loc is None else Loc(loc.file, loc.line, loc.col, loc.end)


# ---- the parent's side


Given = slice | tuple[int] | int  # bytes of a file, a number of bytes without values, or a word


class Called(NamedTuple):
    """A launch that has ended."""

    findings: list[Diagnostic]
    printed: list[str]


class Crash(PtoError):
    """The child ended during a request."""


class Child:
    """A child process that runs one program."""

    MODULE = "pto.cxx.worker"  # what the process runs

    def __init__(self, builds: Mapping[str, Path], profile: str) -> None:
        self.builds = dict(builds)
        self._profile = profile
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, seconds: float = SECONDS) -> subprocess.Popen[bytes]:
        """Start the process and load the program, whose static initialisers run then."""
        self._pipe, theirs = Pipe()
        self._errors = os.memfd_create("pto-errors")
        os.lseek(self._errors, _NOTE, os.SEEK_SET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.MODULE, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        self.ask("load", seconds, **self._loaded())
        return self._process

    def _loaded(self) -> Mapping[str, Any]:
        """The arguments of the first request."""
        return {"builds": self.builds, "profile": self._profile}

    def ask(self, what: str, seconds: float = SECONDS, **given: Any) -> Any:
        """Call a method of the server in the child; raises the child's findings, or Crash."""
        process = self._process or self._start(seconds)
        late = False
        with running.tracked(process):
            try:
                self._pipe.send((what, given))
                if late := not self._pipe.poll(seconds):
                    process.send_signal(signal.SIGALRM)  # it reports its location
                    if not self._pipe.poll(_GRACE):
                        raise EOFError
                answer = self._pipe.recv()
            except KeyboardInterrupt:
                self.end()
                raise
            except (EOFError, OSError):
                raise self._ended(process, seconds if late else None) from None
        if isinstance(answer, PtoError):
            raise answer
        return answer

    def _ended(self, process: subprocess.Popen[bytes], seconds: float | None) -> Crash:
        """The reason for the end of the child, with its source line; `seconds` is the limit of a
        child that ran longer."""
        if seconds is None:  # it ends by itself: its status is not to become that of `kill`
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        process.kill()
        code = process.wait()
        os.lseek(self._errors, 0, os.SEEK_SET)
        note = os.read(self._errors, _NOTE).rstrip(b"\0").decode(errors="replace")
        text = os.read(self._errors, 1 << 20).decode(errors="replace")
        self._close()
        subject, notes = self._doing(note)
        found = re.findall(r"^pto-crash (\d+) ([0-9a-f]+)$", text, re.MULTILINE)
        if not found:
            what = f"ended with status {code}" if seconds is None else _late(seconds)
            tail = "\n".join(text.strip().splitlines()[-3:])
            return Crash(
                Diagnostic("PTO-U245", f"{subject} {what}", notes=notes, help=tail or None)
            )
        number, address = int(found[-1][0]), int(found[-1][1], 16)
        what = _SIGNALS.get(signal.Signals(number), f"ended by signal {number}")
        if number == signal.SIGALRM and seconds is not None:
            what = _late(seconds)
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
        self._pipe.close()
        os.close(self._errors)
        self._process = None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close()


def _late(seconds: float) -> str:
    return f"did not end within {seconds:g} s"


# ---- the child's side


def _least(*limits: int) -> int:
    """The strictest of some limits of this process."""
    return min((n for n in limits if n != resource.RLIM_INFINITY), default=resource.RLIM_INFINITY)


def tell(note: str) -> None:
    """Tell the parent what runs now, in case that this process ends."""
    os.pwrite(2, note.encode()[:_NOTE].ljust(_NOTE, b"\0"), 0)


def serve(server: object) -> None:
    """Answer the requests of the parent; its pipe is the argument of this process."""
    pipe: Connection[Any, Any] = Connection(int(sys.argv[1]))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_least(MEMORY, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError):
        while True:
            what, given = pipe.recv()
            try:
                answer = getattr(server, what)(**given)
            except PtoError as error:
                answer = PtoError(*map(packed, error.diagnostics))
            except MemoryError:
                answer = fail(
                    "PTO-U245", f"the kernel needs more than {MEMORY >> 30} GiB of memory"
                )
            pipe.send(answer)
