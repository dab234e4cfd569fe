"""Child processes in which compiled code runs: the parent's interface, and the loop of a child.

Native code can crash, loop forever or use all memory: that ends only a child with limits, and the
parent reports the location. This is no protection from malicious code: it has the user's rights,
and the parent trusts its answers.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pto.core import process
from pto.core.errors import Diagnostic, Loc, Note, PtoError, fail
from pto.core.process import Peer

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
        self._peer: Peer | None = None

    def _start(self, seconds: float = SECONDS) -> Peer:
        """Start the process and load the program, which runs its static initialisers."""
        self._errors = os.memfd_create("pto-errors")
        os.lseek(self._errors, _NOTE, os.SEEK_SET)
        self._peer = Peer(
            self.MODULE, env=process.python_path(), stdout=subprocess.DEVNULL, stderr=self._errors
        )
        self.ask("load", seconds, **self._loaded())
        return self._peer

    def _loaded(self) -> Mapping[str, Any]:
        """The arguments of the first request."""
        return {"builds": self.builds, "profile": self._profile}

    def ask(self, request: str, seconds: float = SECONDS, **arguments: Any) -> Any:
        """Call a method of the server in the child; raises the child's findings, or Crash."""
        peer = self._peer or self._start(seconds)
        late = False
        try:
            peer.pipe.send((request, arguments))
            if late := not peer.pipe.poll(seconds):
                peer.process.send_signal(signal.SIGALRM)  # it reports its location
                if not peer.pipe.poll(_GRACE):
                    raise EOFError
            answer = peer.pipe.recv()
        except KeyboardInterrupt:
            self.end()
            raise
        except (EOFError, OSError):
            raise self._ended(peer, seconds if late else None) from None
        if isinstance(answer, PtoError):
            raise answer
        return answer

    def _ended(self, peer: Peer, seconds: float | None) -> Crash:
        """The reason for the end of the child, with its source line; `seconds` is the limit of a
        child that ran longer."""
        if seconds is None:  # it ends by itself: its status is not to become that of `kill`
            with suppress(subprocess.TimeoutExpired):
                peer.process.wait(_GRACE)
        code = process.end(peer.process)
        os.lseek(self._errors, 0, os.SEEK_SET)
        note = os.read(self._errors, _NOTE).rstrip(b"\0").decode(errors="replace")
        text = os.read(self._errors, 1 << 20).decode(errors="replace")
        self._close()
        subject, notes = self._doing(note)
        crashes = re.findall(r"^pto-crash (\d+) ([0-9a-f]+)$", text, re.MULTILINE)
        if not crashes:
            reason = f"ended with status {code}" if seconds is None else _late(seconds)
            tail = "\n".join(text.strip().splitlines()[-3:])
            return Crash(
                Diagnostic("PTO-U245", f"{subject} {reason}", notes=notes, help=tail or None)
            )
        number, address = int(crashes[-1][0]), int(crashes[-1][1], 16)
        reason = _SIGNALS.get(signal.Signals(number), f"ended by signal {number}")
        if number == signal.SIGALRM and seconds is not None:
            reason = _late(seconds)
        calls = re.findall(r"^pto-call ([0-9a-f]+) (.+)$", text, re.MULTILINE)
        location = self._place(address, calls)
        return Crash(Diagnostic("PTO-U245", f"{subject} {reason}", location, notes=notes))

    def _doing(self, note: str) -> tuple[str, tuple[Note, ...]]:
        """The code that ran when the child ended, by its last `tell`, and notes about it."""
        return "the kernel", ()

    def _place(self, last: int, calls: Sequence[tuple[str, str]]) -> Loc | None:
        """The line that crashed, by its calls (offset, file); else that of the last instruction."""
        from pto.cxx.native import lines_of

        builds = {str(path): path for path in self.builds.values()}
        places = [(builds[file], int(at, 16)) for at, file in calls if file in builds]
        places += [(path, last) for path in builds.values() if last]
        locations = (lines_of(path, (address,))[0] for path, address in places)
        return next((loc for loc in locations if loc.line), None)

    def _close(self) -> None:
        if self._peer is not None:
            self._peer.end()
            os.close(self._errors)
            self._peer = None

    def end(self) -> None:
        """End the process; the next request starts another."""
        self._close()


def _late(seconds: float) -> str:
    return f"did not end within {seconds:g} s"


# ---- the child's side


def tell(note: str) -> None:
    """Send the parent the current instruction, in case this process ends."""
    os.pwrite(2, note.encode()[:_NOTE].ljust(_NOTE, b"\0"), 0)


def serve(server: object) -> None:
    """Answer the requests of the parent; its pipe is the argument of this process."""
    pipe = process.parent_pipe()
    process.limit(AS=MEMORY, CORE=0)
    with suppress(EOFError):
        while True:
            request, arguments = pipe.recv()
            try:
                answer = getattr(server, request)(**arguments)
            except PtoError as error:
                answer = PtoError(*map(packed, error.diagnostics))
            except MemoryError:
                answer = fail(
                    "PTO-U245", f"the kernel needs more than {MEMORY >> 30} GiB of memory"
                )
            pipe.send(answer)
