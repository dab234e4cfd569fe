"""Workers of a cluster: one a processor, kept while they are needed, replaced when they die.

A job is a method of `Worker` and its arguments. Whoever has jobs hears what came of each, also that
its worker was lost, and decides whether it is to be tried again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pto.cluster.worker import Hello, Worker
from pto.core.errors import PtoError, fail

_SMALL = 1 << 15  # bytes that travel with a job itself
_TICK = 0.1  # seconds between looks at the clock
_CENSUS = 2.0  # seconds between looks at how many processors there are
_PATIENCE = 180.0  # seconds until somebody has to come to work: a busy node starts slowly
_COMING = 3.0  # for the others, once there is one


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker that ended, or was ended, before its job was done."""

    why: str
    late: bool = False  # it took too long, and would again

    def error(self, who: str) -> PtoError:
        return fail("PTO-U306", f"{who}: its worker {self.why}")


@dataclass(slots=True, eq=False)
class Job:
    method: str
    args: tuple[Any, ...]
    about: Any = None  # the caller's
    seconds: float | None = None  # until it has taken too long
    streams: bool = False  # gives results one by one
    tries: int = 0


@dataclass(slots=True, eq=False)
class Hand:
    """One worker, seen from here."""

    actor: Any
    hello: Any  # what it says when it has come
    node: str = ""
    host: str = ""  # as people call it
    pid: int = 0
    job: Job | None = None
    answer: Any = None  # a reference, or a stream of them
    since: float = 0.0


@dataclass(slots=True)
class Crew:
    """The workers of a cluster, and who of them has which job."""

    ray: Any
    hands: list[Hand] = field(default_factory=list[Hand])
    _seen: float = 0.0  # when processors were counted last
    _alone: float = 0.0  # since when nobody has been at work
    _actor: Any = None  # what a worker is started from

    def __post_init__(self) -> None:
        made = self.ray.remote(num_cpus=1, max_restarts=0, max_concurrency=1)(Worker)
        self._actor = made.options(scheduling_strategy="SPREAD")

    # ---- people

    @property
    def size(self) -> int:
        """How many there may be: a processor each."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def ready(self) -> list[Hand]:
        return [hand for hand in self.hands if hand.node]

    def muster(self, count: int | None = None) -> int:
        """Wait until somebody is here, `count` of them if that many can come; how many are."""
        self._hire()
        wanted = min(count or len(self.hands), len(self.hands))
        start = time.monotonic()
        while len(self.ready) < wanted:
            # whoever else comes is welcome, and not waited for long: a processor may be taken
            patience = _COMING if self.ready and count is None else _PATIENCE
            if time.monotonic() - start > patience:
                break
            self._hear_hellos(0.1)
            self._hire()
        self.require_somebody()
        return len(self.ready)

    def _hire(self) -> None:
        """As many as there are processors; those who have not come yet are waited for."""
        if time.monotonic() - self._seen < _CENSUS:
            return
        self._seen = time.monotonic()
        for _ in range(self.size - len(self.hands)):
            actor = self._actor.remote()
            self.hands.append(Hand(actor, actor.hello.remote()))

    def _hear_hellos(self, seconds: float) -> None:
        waiting = {hand.hello: hand for hand in self.hands if not hand.node}
        if waiting:
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=seconds)
            for ref in done:
                self._welcome(waiting[ref])

    def _welcome(self, hand: Hand) -> None:
        try:
            hello: Hello = self.ray.get(hand.hello)
        except self.ray.exceptions.RayError:
            self._dismiss(hand)
            return
        hello.require_alike()
        hand.node, hand.host, hand.pid = hello.node, hello.host, hello.pid

    def require_somebody(self) -> None:
        if not self.ready:
            raise fail(
                "PTO-U304",
                f"no worker of the cluster has come within {_PATIENCE:g} s",
                help="`ray status` tells whether processors are free and nodes alive",
            )

    def _dismiss(self, hand: Hand) -> None:
        if hand in self.hands:
            self.hands.remove(hand)
        self._seen = 0.0  # somebody else may come
        self.ray.kill(hand.actor)

    def abandon(self) -> None:
        """End whoever is at work: nobody wants to know what comes of it."""
        for hand in [hand for hand in self.hands if hand.job is not None]:
            self._dismiss(hand)

    def go_home(self) -> None:
        for hand in list(self.hands):
            self._dismiss(hand)

    # ---- work

    def shared(self, value: Any, nbytes: int) -> Any:
        """As an argument of jobs: once into the object store, unless it is small."""
        return value if nbytes < _SMALL else self.ray.put(value)

    def results(
        self, jobs: deque[Job], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Job, Any, Hand]]:
        """What comes of jobs, as it comes: a result, or that a worker was lost. More may be put
        into `jobs` meanwhile. `look` is called now and then, and may raise."""
        try:
            yield from self._results(jobs, look)
        except BaseException:
            self.abandon()
            raise

    def _results(
        self, jobs: deque[Job], look: Callable[[], None]
    ) -> Generator[tuple[Job, Any, Hand]]:
        self._alone = time.monotonic()
        while jobs or any(hand.job for hand in self.hands):
            self._hire()
            for hand in self.ready:
                if hand.job is None and jobs:
                    self._give(hand, jobs.popleft())
            waiting = {h.answer if h.job else h.hello: h for h in self.hands if h.job or not h.node}
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=_TICK)
            look()
            for ref in done:
                hand = waiting[ref]
                if hand.job is None:
                    self._welcome(hand)
                else:
                    yield from self._heard(hand, hand.job)
            yield from self._late()
            if self.ready:
                self._alone = time.monotonic()
            elif time.monotonic() - self._alone > _PATIENCE:
                self.require_somebody()

    def tell(self, method: str) -> None:
        """All who are here, without waiting for an answer."""
        for hand in self.ready:
            getattr(hand.actor, method).remote()

    def together(
        self, hands: Sequence[Hand], method: str, argses: Sequence[tuple[Any, ...]], returns: int
    ) -> list[Any] | Lost:
        """One call of each of these workers, and all answers; of several results of a call the
        first is fetched, the others stay where they are, to be handed on."""
        answers: list[list[Any]] = []
        try:
            for hand, args in zip(hands, argses, strict=True):
                hand.job = Job(method, args)
                made = getattr(hand.actor, method).options(num_returns=returns).remote(*args)
                answers.append(list(made) if returns > 1 else [made])
            left = [answer[0] for answer in answers]
            while left:
                _, left = self.ray.wait(left, num_returns=len(left), timeout=_TICK)
            found = [self._answer(*pair) for pair in zip(hands, answers, strict=True)]
        except BaseException:
            self.abandon()
            raise
        for hand in hands:
            hand.job = None
        return next((each for each in found if isinstance(each, Lost)), found)

    def _answer(self, hand: Hand, answer: Sequence[Any]) -> Any:
        try:
            first = self.ray.get(answer[0])
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            self._dismiss(hand)
            return Lost(_reason(error))
        return (first, *answer[1:]) if len(answer) > 1 else first

    def _give(self, hand: Hand, job: Job) -> None:
        job.tries += 1
        method = getattr(hand.actor, job.method)
        if job.streams:
            method = method.options(num_returns="streaming")
        hand.job, hand.since, hand.answer = job, time.monotonic(), method.remote(*job.args)

    def _heard(self, hand: Hand, job: Job) -> Iterator[tuple[Job, Any, Hand]]:
        try:
            ref = next(hand.answer) if job.streams else hand.answer
            result = self.ray.get(ref)
        except StopIteration:
            hand.job = None
            return
        except self.ray.exceptions.RayTaskError as error:
            hand.job = None
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            yield from self._lose(hand, job, Lost(_reason(error)))
            return
        hand.since = time.monotonic()
        if not job.streams:
            hand.job = None
        yield job, result, hand

    def _late(self) -> Iterator[tuple[Job, Any, Hand]]:
        for hand in list(self.hands):
            job = hand.job
            if job and job.seconds and time.monotonic() - hand.since > job.seconds:
                late = Lost(f"took longer than {job.seconds:g} seconds", late=True)
                yield from self._lose(hand, job, late)

    def _lose(self, hand: Hand, job: Job, lost: Lost) -> Iterator[tuple[Job, Any, Hand]]:
        hand.job = None
        self._dismiss(hand)
        yield job, lost, hand


def _reason(error: Exception) -> str:
    """Why a worker was lost, in a few words."""
    text = str(error)
    if "OutOfMemory" in type(error).__name__ or "memory" in text.lower():
        return "was ended because its node ran out of memory"
    if "node" in text.lower() and "died" in text.lower():
        return "was lost with its node"
    return f"ended its process ({type(error).__name__})"
