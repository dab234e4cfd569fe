"""Many small things: a function of this package for each of many items, on all workers.

An item that ends its worker is tried once more, since a node may have died; then that is its
result. Results come as they are made; whoever wants them in order puts them so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from pto.cluster.crew import Crew, Job, Lost
from pto.cluster.on import RayCluster
from pto.run.launch import place

_TRIES = 2
Answer = tuple[int, Any, str]  # the number of an item, what came of it, on which node


def crew() -> Crew | None:
    """The workers of the place that was chosen; None: work stays here."""
    found = place.current()
    return found.crew if isinstance(found, RayCluster) else None


def each(
    workers: Crew,
    function: str,
    items: Iterable[Any],
    shared: Any = None,
    *,
    streams: bool = False,
    seconds: float | None = None,
) -> Generator[Answer]:
    """`function(shared, item)` of every item, as results come; `Lost` says why there is none.

    With `streams` the function gives any number of results one by one.
    """
    sent, method = workers.ray.put(shared), "tasks" if streams else "task"
    jobs = deque(
        Job(method, (function, sent, item), number, seconds, streams)
        for number, item in enumerate(items)
    )
    for job, result, hand in workers.results(jobs):
        if isinstance(result, Lost) and job.tries < _TRIES and not result.late:
            jobs.append(job)
        else:
            yield job.about, result, hand.host


def in_order(
    workers: Crew, function: str, items: Sequence[Any], shared: Any = None
) -> Iterator[Any]:
    """The same in the order of the items; one that lost its workers is an error."""
    ready: dict[int, Any] = {}
    following = 0
    for number, result, _ in each(workers, function, items, shared):
        if isinstance(result, Lost):
            raise result.error(f"item {number} of {len(items)}")
        ready[number] = result
        while following in ready:
            yield ready.pop(following)
            following += 1
