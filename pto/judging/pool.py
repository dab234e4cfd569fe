"""`pto.judge`: verdicts about one candidate or many, each in processes that it cannot outlive."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.process import Peer
from pto.judging.candidate import Candidate, read_candidate
from pto.judging.judge import Options
from pto.judging.judgement import Judgement
from pto.judging.tracer import TraceLimits

_START = 120.0  # seconds for a worker to read its task
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one candidate."""

    seconds: float = 60.0
    megabytes: int = 8192


@dataclass(slots=True)
class _Worker:
    """A process that judges, started when it is needed and again after a crash."""

    task: Path
    options: Options
    limits: Limits
    name: str = ""
    _peer: Peer | None = None

    def judge(self, candidate: Candidate) -> Judgement:
        peer = self._peer or self._start()
        peer.pipe.send(candidate)
        try:
            if peer.pipe.poll(self.limits.seconds):
                answer = peer.pipe.recv()
            else:
                answer = self._lost(
                    candidate, f"judging took longer than {self.limits.seconds:g} s"
                )
        except (EOFError, OSError):
            answer = self._lost(candidate, _why(peer))
        if isinstance(answer, PtoError):
            raise answer
        return answer

    def _start(self) -> Peer:
        paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        self._peer = peer = Peer(
            "pto.judging.worker", "-P", env=environment, stdout=subprocess.DEVNULL, stderr=None
        )
        seconds, megabytes = self.limits.seconds / 3, min(4096, self.limits.megabytes)
        limits = TraceLimits(seconds, megabytes)
        peer.pipe.send({"task": self.task, "options": self.options, "limits": limits})
        try:
            answer = peer.pipe.recv() if peer.pipe.poll(_START) else None
        except (EOFError, OSError):
            answer = None
        if not isinstance(answer, str):
            self.end()
            raise answer or fail("PTO-U350", f"the task {self.task} cannot be read")
        self.name = answer
        return peer

    def _lost(self, candidate: Candidate, why: str) -> Judgement:
        """The verdict about a candidate that the worker did not survive."""
        self.end()
        device = self.options.device or ""
        judgement = Judgement(self.name, candidate.name, device, seconds=self.limits.seconds)
        judgement.add("builds", "", [Diagnostic("PTO-J009", why)])
        judgement.skip_rest()
        return judgement

    def end(self) -> None:
        """End the process and all that it has started."""
        if self._peer is not None:
            self._peer.end()
            self._peer = None


def _why(peer: Peer) -> str:
    """The reason for which a worker ended by itself."""
    with suppress(subprocess.TimeoutExpired):
        peer.process.wait(1.0)
    code = peer.process.returncode
    return f"judging was ended by signal {-code}" if code and code < 0 else "judging ended early"


@dataclass(slots=True)
class Pool:
    """Workers for one task."""

    task: Path
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    count: int = 1

    def judge(
        self, candidates: Sequence[Candidate], done: Callable[[int, Judgement], None]
    ) -> None:
        """Judge all; `done` is called with number and verdict as each ends, one at a time."""
        numbers, lock = iter(range(len(candidates))), threading.Lock()
        errors: list[BaseException] = []
        workers = [_Worker(self.task, self.options, self.limits) for _ in range(self.count)]

        def work(worker: _Worker) -> None:
            try:
                while not errors:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    judgement = worker.judge(candidates[number])
                    with lock:
                        done(number, judgement)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=[w], daemon=True) for w in workers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for worker in workers:
                worker.end()
        if errors:
            raise errors[0]


def judge(
    task: str | Path,
    candidate: str | Path,
    *,
    device: str | None = None,
    blocks: str | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    memory: int = 8192,
) -> Judgement:
    """The verdict about a candidate for a task: right, safe, deterministic, and how fast.

    >>> print(pto.judge("softmax_task.py", "softmax.py", device="910b1"))

    The candidate is untrusted: it is executed in a confined process. `blocks` is an expression of
    the sizes of the task, for a kernel alone: `cdiv(m, 16)`. `seed` repeats a verdict. `timeout`
    is in seconds, `memory` in megabytes.
    """
    return judge_all(
        task,
        [candidate],
        device=device,
        blocks=blocks,
        seed=seed,
        timeout=timeout,
        memory=memory,
    )[0]


def judge_all(
    task: str | Path,
    candidates: Iterable[str | Path],
    *,
    device: str | None = None,
    blocks: str | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    memory: int = 8192,
    processes: int = 1,
    done: Callable[[int, Judgement], None] = lambda number, found: None,
) -> list[Judgement]:
    """The verdicts about many candidates, in their order; `done` sees each when it is known."""
    read = [read_candidate(str(item), blocks) for item in candidates]
    judgements: dict[int, Judgement] = {}

    def keep(number: int, judgement: Judgement) -> None:
        judgements[number] = judgement
        done(number, judgement)

    limits, options = Limits(timeout, memory), Options(device=device, seed=seed)
    Pool(Path(task), options, limits, max(1, min(processes, len(read)))).judge(read, keep)
    return [judgements[number] for number in range(len(read))]
