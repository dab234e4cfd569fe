"""Many small tasks: a function of this package applied to each of many items, on all workers.

If its worker dies, an item is tried once more, since a node may have failed; a second loss is its
result. Results are yielded as they arrive; `in_order` sorts them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from pto.cluster.on import RayCluster
from pto.cluster.worker_pool import Job, LostWorker, WorkerPool
from pto.run.launch.engine import cluster_target

_TRIES = 2
Answer = tuple[int, Any, str]  # number of the item, result, node


def pool() -> WorkerPool | None:
    """The workers of the selected cluster; None if work stays local."""
    target = cluster_target()
    return target.pool if isinstance(target, RayCluster) else None


def each(
    workers: WorkerPool,
    function: str,
    items: Iterable[Any],
    shared: Any = None,
    *,
    streams: bool = False,
    seconds: float | None = None,
) -> Generator[Answer]:
    """Yield `function(shared, item)` of every item as it arrives; a `LostWorker` has the reason.

    With `streams` the function yields any number of results.
    """
    sent, method = workers.ray.put(shared), "tasks" if streams else "task"
    jobs = deque(
        Job(method, (function, sent, item), number, seconds, streams)
        for number, item in enumerate(items)
    )
    for job, result, worker in workers.results(jobs):
        if isinstance(result, LostWorker) and job.tries < _TRIES and not result.late:
            jobs.append(job)
        else:
            yield job.about, result, worker.host


def cases(
    function: str,
    items: Sequence[Any],
    shared: Any,
    lost: Callable[[Any, str], Any],
    *,
    streams: bool = False,
    seconds: float | None = None,
) -> Generator[tuple[int, Any]] | None:
    """The results of test cases, each with the number of its item; None without a cluster.

    A result has a name and a node. `lost` makes the result of an item that lost its workers. The
    results of an item that ran again after the loss of a node are yielded once.
    """
    workers = pool()
    if workers is None:
        return None
    answers = each(workers, function, items, shared, streams=streams, seconds=seconds)
    return _named_once(answers, items, lost)


def _named_once(
    answers: Generator[Answer], items: Sequence[Any], lost: Callable[[Any, str], Any]
) -> Generator[tuple[int, Any]]:
    reported: set[tuple[int, str]] = set()
    with closing(answers):
        for n, result, node in answers:
            if isinstance(result, LostWorker):
                result = lost(items[n], f"its worker {result.why}")
            if (n, result.name) not in reported:
                reported.add((n, result.name))
                yield n, replace(result, node=node)


def in_order(
    workers: WorkerPool, function: str, items: Sequence[Any], shared: Any = None
) -> Iterator[Any]:
    """The same in the order of the items; an item that lost its workers is an error."""
    ready: dict[int, Any] = {}
    following = 0
    for number, result, _ in each(workers, function, items, shared):
        if isinstance(result, LostWorker):
            raise result.error(f"item {number} of {len(items)}")
        ready[number] = result
        while following in ready:
            yield ready.pop(following)
            following += 1
