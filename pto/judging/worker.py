"""A process that judges candidates for one task, and answers with `Judgement`s.

It forks the process that traces before it reads the task, so that no candidate can find the
reference in its memory.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from pto.core import process
from pto.core.errors import PtoError
from pto.judging import tracer


def main() -> None:
    """Read the settings of the worker, then candidates, until the other end closes."""
    os.dup2(2, 1)  # whatever a reference prints
    pipe = process.parent_pipe()
    settings: dict[str, Any] = pipe.recv()
    ours, theirs = socket.socketpair()
    if not os.fork():
        ours.close()
        pipe.close()
        tracer.serve(theirs, settings["limits"])
        os._exit(0)
    theirs.close()
    _serve(settings, ours, pipe)


def _serve(settings: dict[str, Any], link: socket.socket, pipe: Any) -> None:
    from pto.judging.folder import read_folder
    from pto.judging.judge import Judge
    from pto.judging.task import read_file

    try:
        path = Path(settings["task"])
        task = read_folder(path) if path.is_dir() else read_file(path)
        judge = Judge(task, link, settings["options"])
    except PtoError as error:
        pipe.send(error)
        return
    pipe.send(judge.task.name)
    while True:
        try:
            candidate = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(judge.judge(candidate))
        except PtoError as error:
            pipe.send(error)


if __name__ == "__main__":
    main()
