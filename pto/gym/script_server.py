"""Runs a case's own Python scripts, each in a process of its own, without starting Python anew.

Started as a program of its own with a fixed hash seed; imports NumPy once and forks for each script,
so a script sees a fresh interpreter and costs milliseconds. Requests and answers are lines of JSON.
Imports nothing of this package: the scripts must not see it.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_MOST_OUTPUT = 1 << 16


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    for line in sys.stdin:
        answer = _run(json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as found:
        child = os.fork()
        if child == 0:
            _be_script(request, output, found)
        _, status = os.waitpid(child, 0)
        found.seek(0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "output": _tail(output),
            "difference": json.loads(found.read() or b"null"),
        }


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _MOST_OUTPUT))
    return output.read().decode("utf-8", "replace")


def _be_script(request: dict[str, Any], output: IO[bytes], found: IO[bytes]) -> None:
    """Turn this forked process into the script; never returns."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"])
        _redirect(output)
        os.chdir(request["directory"])
        sys.argv = [request["script"], *request["arguments"]]
        folder = os.path.dirname(request["script"])  # noqa: PTH120
        sys.path[:] = [folder, *sys.path[1:], os.path.dirname(folder)]  # noqa: PTH120
        spy = Spy() if request["spy"] else None
        code = _exit_code_of(request["script"])
        if spy is not None:
            found.write(json.dumps(spy.difference()).encode())
            found.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _redirect(output: IO[bytes]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _exit_code_of(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    return 0


class Spy:
    """Watches what a judge reads and compares, to name the first element it rejects.

    Only used after a judge has said no, in a second run of it: it explains, it never judges.
    """

    def __init__(self) -> None:
        self.read: list[tuple[str, npt.NDArray[Any]]] = []
        self.rejected: dict[str, Any] | None = None
        self._fromfile: Callable[..., Any] = np.fromfile
        self._isclose: Callable[..., Any] = np.isclose
        closest = np.allclose
        exact = np.array_equal
        np.fromfile = self._on_read

        def allclose(a: Any, b: Any, *args: Any, **kw: Any) -> bool:
            verdict = bool(closest(a, b, *args, **kw))
            self._note(a, b, verdict, lambda: self._isclose(a, b, *args, **kw))
            return verdict

        def array_equal(a: Any, b: Any, *args: Any, **kw: Any) -> bool:
            verdict = bool(exact(a, b, *args, **kw))
            self._note(a, b, verdict, lambda: np.asarray(a) == np.asarray(b))
            return verdict

        np.allclose = allclose
        np.array_equal = array_equal

    def _on_read(self, file: Any, *args: Any, **kw: Any) -> npt.NDArray[Any]:
        array = self._fromfile(file, *args, **kw)
        self.read.append((os.path.basename(str(file)), array.copy()))  # noqa: PTH119
        return array

    def _note(self, a: Any, b: Any, verdict: bool, same: Callable[[], Any]) -> None:
        if verdict or self.rejected is not None or np.shape(a) != np.shape(b):
            return
        self.rejected = _first_difference(np.asarray(a), np.asarray(b), np.asarray(same()))
        if self.rejected is not None and self._is_swapped(self.rejected):
            got, expected = self.rejected["expected"], self.rejected["got"]
            self.rejected |= {"got": got, "expected": expected}

    def _is_swapped(self, found: dict[str, Any]) -> bool:
        """Whether the judge put the output first: by which file holds which value."""
        golden = [a for name, a in self.read if "golden" in name]
        others = [a for name, a in self.read if "golden" not in name]

        def score(expected: Any, got: Any) -> int:
            return _holds(golden, expected) + _holds(others, got)

        given = score(found["expected"], found["got"])
        return score(found["got"], found["expected"]) > given

    def difference(self) -> dict[str, Any] | None:
        """The first element the judge rejected, else the first in which its files differ."""
        found = self.rejected or self._in_files()
        if found is not None:
            found |= {"expected": _plain(found["expected"]), "got": _plain(found["got"])}
        return found

    def _in_files(self) -> dict[str, Any] | None:
        for name, golden in self.read:
            wanted = "output.bin" if name == "golden.bin" else name.removeprefix("golden_")
            for other, output in self.read:
                if other == wanted != name and golden.shape == output.shape:
                    found = _first_difference(golden, output, golden == output)
                    if found is not None:
                        return found | {"file": other}
        return None


def _first_difference(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], same: npt.NDArray[Any]
) -> dict[str, Any] | None:
    wrong = np.flatnonzero(~np.broadcast_to(same, expected.shape))
    if not wrong.size:
        return None
    index = np.unravel_index(wrong[0], expected.shape)
    return {
        "index": [int(i) for i in index],
        "expected": expected[index],
        "got": got[index],
        "differing": int(wrong.size),
        "size": int(expected.size),
    }


def _holds(arrays: list[npt.NDArray[Any]], value: Any) -> bool:
    return any(bool((array == value).any()) for array in arrays)


def _plain(value: Any) -> Any:
    """A NumPy scalar as JSON can carry it."""
    number: Any = value.item() if hasattr(value, "item") else value
    return number if isinstance(number, int | str) else repr(float(number))


if __name__ == "__main__":
    main()
