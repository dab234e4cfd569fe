"""A fast path for repeated calls: compiled code gets new addresses and numbers, and nothing else.

A launch has a device, memories, a grid and agents, for host fallbacks and for the errors they find.
Most calls need neither. So an agent that was set up for one call is reused for the next call of the
same signature, and the machine around it is made on demand.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from ctypes import addressof, c_char
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pto.core.memory import Memory
from pto.isa.row import types as t
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.independent import Given, given_of
from pto.run.jit.runtime.threads import BlockWorker, ThreadPool
from pto.run.jit.runtime.values import Lowered
from pto.run.launch.arrays import Borrowed, are_tensors
from pto.run.launch.call import Launch
from pto.run.machine.core import Cluster
from pto.run.machine.device import Device, scalar
from pto.run.machine.limit import Limit

if TYPE_CHECKING:
    from pto.run.launch.host import Report
    from pto.run.launch.prepared import LaunchGrid, PreparedKernel
    from pto.run.launch.progress import Progress

Number = tuple[int, str, t.Scalar, list[tuple[Lowered, int]]]  # index, name, type, slots

_LENT, _HIDDEN, _TENSOR = range(3)  # NumPy exposes the bytes of an array, or not; a tensor does
_BYTE: Final = np.dtype(np.uint8)
# State shared with other agents of a launch.
_OF_A_LAUNCH: Final = {Word.SIGNALS, Word.ARRIVALS, Word.OWNED}
_first = c_char.from_buffer


class _CallState(NamedTuple):
    """The state of an agent that is set up for a call signature."""

    frame: bytes
    arrays: list[int]  # memory numbers in its context
    sizes: list[int]
    numbers: list[Any]  # in the argument buffer


class FastPath:
    """All calls of a kernel with the grid and the array types, shapes and flags of the first call.

    The first call has been launched, and `report` is its report.
    """

    def __init__(
        self,
        kernel: PreparedKernel,
        pool: ThreadPool,
        done: Launch,
        passed: Sequence[int],
        report: Report,
    ) -> None:
        """`passed`: the index in a call of each argument; further arguments are constant."""
        self.kernel = kernel
        self.pool = pool
        self.blocks = done.blocks
        self.names: list[str] = []  # of arrays
        self.arrays: list[tuple[int, int]] = []  # index in a call, kind of its address
        self.numbers: list[Number] = []
        self.state: _CallState | None = None
        self._report = report
        self._passed = passed
        self._fixed = done.args[len(passed) :]
        names = list(kernel.parameters)[len(passed) :]
        self.fixed = dict(zip(names, map(int, self._fixed), strict=True))  # for formulas
        places = kernel.places(pool.region)
        for at, arg, name in zip(passed, done.args, kernel.parameters, strict=False):
            type = kernel.parameters[name]
            if isinstance(type, t.Scalar):
                self.numbers.append((at, name, type, places.get(name, [])))
            else:
                self.names.append(name)
                self.arrays.append((at, _way(arg)))

    @classmethod
    def of(
        cls,
        kernel: PreparedKernel,
        pool: ThreadPool,
        done: Launch,
        passed: Sequence[int],
        report: Report,
    ) -> FastPath | None:
        """The fast path of calls like a finished launch; None if each has to be launched."""
        if _OF_A_LAUNCH & pool.needs.words or not all(map(_is_plain, done.args)):
            return None
        return cls(kernel, pool, done, passed, replace(report, printed=(), fallbacks={}))

    def run(self, values: Sequence[Any], timeout: float | None = None) -> Report:
        """Run one call."""
        call = _FastCall(self, values, None if timeout is None else Limit.of(timeout))
        try:
            done = self.pool.do(call)
        finally:
            if call.launch is not None:
                call.launch.release()
        if not done:
            return self._launched(values, timeout)
        if call.grid is None:  # no host fallback ran
            return self._report
        more: Any = {"printed": tuple(call.grid.printed()), "fallbacks": call.grid.fallbacks}
        return replace(self._report, **more)

    def _launched(self, values: Sequence[Any], timeout: float | None) -> Report:
        """Launch a call with an argument that has no representation in compiled code."""
        launch = self.launch(values)
        launch.timeout = timeout
        done = launch.device.run(launch)
        return replace(self._report, printed=done.printed, fallbacks=done.fallbacks)

    def recall(self, worker: BlockWorker) -> bool:
        """Set up an agent that ran other calls of the kernel as before for these."""
        if self.state is None or worker.signature is None:
            return False
        context, worker.signature = worker.context, None  # an interrupt may come at any time
        worker.arrays, worker.numbers = self.state.arrays, list(self.state.numbers)
        context.words[Word.BLOCKS] = self.blocks
        context.frame[:] = self.state.frame
        for row, size in zip(worker.arrays, self.state.sizes, strict=True):
            context.rows[row, 1] = size
        worker.signature = self
        return True

    def launch(self, values: Sequence[Any]) -> Launch:
        """A call as a launch."""
        kernel = self.kernel
        chip = Device(kernel.profile, engine=kernel.engine)
        args = [*(values[at] for at in self._passed), *self._fixed]
        return Launch.of(kernel, chip, args, self.blocks)


class _FastCall:
    """One call, as a task of the thread pool."""

    progress: Progress | None = None

    def __init__(self, direct: FastPath, values: Sequence[Any], limit: Limit | None) -> None:
        self._direct = direct
        self._values = values
        self.here: tuple[int, int] = (0, direct.blocks)
        self.blocks = direct.blocks
        self.limit = limit
        self.launch: Launch | None = None
        self.grid: LaunchGrid | None = None
        self._making = threading.Lock()  # its threads share one machine

    def begin(self, worker: BlockWorker) -> bool:
        if not self._repeats(worker) and not self._set_up(worker):
            return False
        worker.core.cluster.limit = self.limit
        worker.context.prepare = partial(self._make, worker)
        return True

    def given(self, worker: BlockWorker) -> Given:
        direct, rows = self._direct, worker.context.rows
        if worker.signature is not direct:
            return given_of(self._made().values, worker.context)
        found: dict[str, int | tuple[int, int] | None] = {}
        for name, row in zip(direct.names, worker.arrays, strict=True):
            found[name] = int(rows[row, 0]), int(rows[row, 1])
        for at, name, type, _ in direct.numbers:
            found[name] = 0 if type.is_float else int(self._values[at])
        return {**direct.fixed, **found}

    def _repeats(self, worker: BlockWorker) -> bool:
        """Pass addresses and numbers to an agent that is set up; False if it is not."""
        direct = self._direct
        values = self._values
        context = worker.context
        if worker.signature is not direct and not direct.recall(worker):
            return False
        rows, places = context.rows, dict[int, int]()
        for row, (at, way) in zip(worker.arrays, direct.arrays, strict=True):
            array = values[at]
            if way is _TENSOR:
                place = array.data_ptr()
            else:
                place = addressof(_first(array if way is _LENT else array.view(_BYTE)))
            rows[row, 0] = place
            if places.setdefault(row, place) != place:
                return False
        if len(set(places.values())) < len(places):  # one array for several parameters
            return False
        for n, (at, name, type, frame) in enumerate(direct.numbers):
            if values[at] is not worker.numbers[n]:
                number, worker.numbers[n] = scalar(name, type, values[at]), None
                for form, where in frame:
                    form.encode(context.frame, where, number, context)
                worker.numbers[n] = values[at]
        return True

    def _set_up(self, worker: BlockWorker) -> bool:
        """Set up an agent as for every launch, and keep the state that later calls share."""
        direct, grid = self._direct, self._made()
        if not worker.begin(grid.cluster(), direct.kernel.frame(grid)):
            return False
        context, memories = worker.context, self._memories(grid)
        arrays = [n for m in memories if (n := context.number(m)) is not None]
        if len(arrays) == len(memories) and not context.objects:  # objects are dropped
            numbers = [self._values[at] for at, *_ in direct.numbers]
            sizes = [memory.size for memory in memories]
            direct.state = _CallState(bytes(context.frame), arrays, sizes, numbers)
            worker.arrays, worker.numbers = arrays, list(numbers)
            worker.signature = direct
        return True

    def _memories(self, grid: LaunchGrid) -> list[Memory]:
        return [grid.values[name].memory for name in self._direct.names]

    def _made(self) -> LaunchGrid:
        """The machine of this call, made on demand."""
        with self._making:
            if self.grid is None:
                self.launch = self._direct.launch(self._values)
                self.grid = self.launch.begin()
                self.grid.limit = self.limit
            return self.grid

    def _make(self, worker: BlockWorker) -> None:
        """Make the machine for an agent that needs it."""
        grid, core = self._made(), worker.core
        if core.device is grid.device:
            return
        core.reuse_for(grid.cluster(core.block))
        core.cluster.limit = self.limit
        for row, memory in zip(worker.arrays, self._memories(grid), strict=True):
            worker.context.adopt(row, memory)

    def cluster(self) -> Cluster:
        return self._made().cluster()

    def end(self, worker: BlockWorker) -> None:
        worker.context.on_progress = worker.context.prepare = None
        if self.grid is not None and worker.core.device is self.grid.device:
            self.grid.collect(worker.core)
            worker.context.release_arrays()


def _is_plain(arg: Any) -> bool:
    """True for an array that is used in place, or a number that needs no conversion."""
    if not isinstance(arg, Borrowed):
        return isinstance(arg, int | float | np.generic)
    own = type(arg.source) is np.ndarray and arg.array is arg.source
    return arg.give_back is None and (own or are_tensors(type(arg.source)))


def _way(arg: Any) -> int:
    """How the address of an array is found: NumPy exposes the bytes of its own types only."""
    if type(arg.source) is not np.ndarray and are_tensors(type(arg.source)):
        return _TENSOR
    try:
        _first(arg.array)
    except (TypeError, ValueError):
        return _HIDDEN
    return _LENT
