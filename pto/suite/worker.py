"""A worker process of the pool: cases in, results out, until the pool closes the pipe."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.core import process
from pto.core.errors import PtoError
from pto.run.launch.call import PtoWarning
from pto.suite.case import Workspace
from pto.suite.result import Result

if TYPE_CHECKING:
    from pto.suite.pool import CaseJob

RunCase = Callable[[Any, Any, Workspace], Iterator[Result]]


def main() -> None:
    """Run the cases that the pool sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the pool, which ends this
    signal.signal(signal.SIGTERM, _terminated)
    pipe = process.parent_pipe()
    function, settings, root, keep = pipe.recv()
    cache = Path(root) / ".cache"
    cache.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(cache)  # removed, also if a compiler is killed
    warnings.simplefilter("ignore", PtoWarning)  # cases are judged by their results
    run = named(function)
    try:
        while True:
            _run_job(pipe, run, settings, pipe.recv(), Path(root), cache, keep is not None)
    except (EOFError, ConnectionError):
        return
    finally:
        process.end_all()


def _run_job(
    pipe: Any,
    run: RunCase,
    settings: Any,
    job: CaseJob,
    root: Path,
    cache: Path,
    stays: bool,
) -> None:
    folder = root / job.case.name.replace("/", "__")
    if not job.skip:
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier run
    folder.mkdir(parents=True, exist_ok=True)

    def started(name: str) -> None:
        pipe.send(("started", name))

    try:
        for result in run(settings, job.case.body, Workspace(folder, cache, job.skip, started)):
            pipe.send(("result", result))
    except PtoError as error:
        pipe.send(("error", error))
        return
    if not stays:
        shutil.rmtree(folder, ignore_errors=True)
    pipe.send(("idle", None))


def _terminated(number: int, frame: object) -> None:
    process.end_all()
    os._exit(-number & 0xFF)


def named(path: str) -> Any:
    """The object that "module:name" names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


if __name__ == "__main__":
    main()
