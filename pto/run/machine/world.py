"""Ranks: several devices in one process, each with its own global memory, all addressable.

Their streams run together, so that ranks may wait for each other's signals.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, Note, PtoError, fail
from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.ir.graph import Module
from pto.run.launch.call import Blocks, Callee, Launch, Program, load, prepare
from pto.run.launch.engine import cluster_target
from pto.run.launch.prepared import PreparedKernel
from pto.run.machine.agents import Agent, run_cooperatively
from pto.run.machine.device import Device
from pto.run.machine.stream import Graph, Stream
from pto.run.watch.events import Hook
from pto.target.facts import Profile

_KEPT = 64  # compiled kernels that are cached


class World:
    """`World(4, "a5")`: four ranks.

    >>> world = World(2, "a5")
    >>> near, far = world.symmetric((16, 64), "f32")
    >>> world.launch("exchange.pto", args=[[near, far, 0], [far, near, 1]])
    >>> world.synchronize()
    """

    def __init__(
        self, ranks: int, profile: Profile | str | None = None, *, device: str | None = None
    ) -> None:
        created = (Device(profile, device=device, rank=n, world=self) for n in range(ranks))
        self.devices: tuple[Device, ...] = tuple(created)
        self.meetings: dict[Any, Any] = {}
        # additions to memory (target and values), recorded if other processes need them
        self.added: list[tuple[GlobalTensor, npt.NDArray[Any]]] | None = None
        self.capturing: dict[int, Graph] = {}  # by thread
        self.lock = threading.RLock()  # of everything here and on its devices
        # launches that have ended before a synchronisation of the host
        self.over: frozenset[int] = frozenset()
        self._launches = 0
        self._made = 0
        self._busy: list[Stream] = []  # streams with work, in the order they were made in
        self._kernels: dict[Any, tuple[Module, PreparedKernel]] = {}

    @classmethod
    def around(cls, device: Device) -> World:
        """The world of a single device."""
        world = cls(0)
        world.devices = (device,)
        return world

    def __len__(self) -> int:
        return len(self.devices)

    def __getitem__(self, rank: int) -> Device:
        return self.devices[rank]

    # ---- memory

    def symmetric(self, shape: int | Sequence[int], element: str) -> list[npt.NDArray[Any]]:
        """An array of zeros on every rank, at the same offset of its heap."""
        kind = dtype(element)
        arrays = [np.zeros(shape, kind.storage).view(kind.numpy) for _ in self.devices]
        for device, array in zip(self.devices, arrays, strict=True):
            device.attach(array, heap=True)
        return arrays

    def addresses(self, arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """Their global addresses, as kernels take them out of a table."""
        numbers = [self._address(array) for array in arrays]
        return np.array(numbers, np.int64)

    def _address(self, array: npt.NDArray[Any]) -> int:
        for device in self.devices:
            memory = device.memory_of(array)
            if memory is not None:
                return device.address(Pointer(memory, 0, None))
        raise fail("PTO-M114", "this array is not in global memory: use World.symmetric")

    # ---- work

    def new_stream(self, device: Device, number: int) -> Stream:
        with self.lock:
            self._made += 1
            return Stream(device, number, self._made)

    def takes_up(self, stream: Stream) -> None:
        """Register a stream that has work, until its work is done."""
        if stream not in self._busy:
            stream.after = self.over
            self._busy = sorted((*self._busy, stream), key=lambda each: each.made)

    def next_launch(self) -> int:
        """A number for a launch; they count from 1."""
        self._launches += 1
        return self._launches

    def kernel(self, device: Device, module: Module, entry: str | None) -> PreparedKernel:
        """A compiled kernel; the same program is compiled only once."""
        tap = device.tap
        profile = device.profile
        engine = device.engine
        key = id(module), entry, profile, id(tap), engine
        cached = self._kernels.get(key)
        if cached is None:
            prepared = prepare(module, entry, profile, tap=tap, engine=engine)
            cached = self._kernels[key] = module, prepared
            if len(self._kernels) > _KEPT:
                del self._kernels[next(iter(self._kernels))]
        return cached[1]

    def launch(
        self,
        program: Program | Callee,
        *,
        args: Sequence[Sequence[Any]],
        blocks: Blocks = 1,
        entry: str | None = None,
    ) -> list[Launch]:
        """Submit one launch on each rank, each with its own arguments."""
        if len(args) != len(self.devices):
            raise fail("PTO-U192", f"{len(args)} lists of arguments for {len(self.devices)} ranks")
        loaded = program if isinstance(program, Callee) else load(program)
        streams = [device.stream() for device in self.devices]
        return [
            stream.launch(loaded, *arguments, blocks=blocks, entry=entry)
            for stream, arguments in zip(streams, args, strict=True)
        ]

    @contextmanager
    def capture(self) -> Generator[Graph]:
        """Keep what this thread submits, to be replayed, instead of running it."""
        graph = self.capturing[threading.get_ident()] = Graph()
        try:
            yield graph
        finally:
            del self.capturing[threading.get_ident()]

    def synchronize(self) -> None:
        """Run everything submitted to any rank. Threads may submit and synchronise concurrently:
        the first one runs the work of all; the other threads find it done, or get its error."""
        with self.lock:
            try:
                with np.errstate(all="ignore"):
                    self._work()
                self._require_done()
                self._settle()
            except BaseException as error:
                for stream in self._busy:
                    stream.abandon(error)
                self._leave()
                raise
            self._raise_errors()

    def _work(self) -> None:
        tap = self._tap
        if tap is not None:
            run_cooperatively(self.begin, tap)
            return
        elsewhere = cluster_target() if len(self.devices) > 1 else None
        if elsewhere is None or not elsewhere.run_world(self):
            run_cooperatively(self.begin)

    @property
    def busy(self) -> Sequence[Stream]:
        """Streams with work, in the order they were made in."""
        return self._busy

    @property
    def _tap(self) -> Hook | None:
        """The instrumentation hook that all ranks share, if any."""
        return next((device.tap for device in self.devices if device.tap is not None), None)

    def _settle(self) -> None:
        """Order everything that is submitted from now on after all launches so far."""
        # only an observer needs the set of these launches
        watched = self._tap is not None
        self.over = frozenset(range(1, self._launches + 1)) if watched else frozenset()
        self._leave()
        if self._tap is not None:
            self._tap.observer.end()

    def _leave(self) -> None:
        """No stream has work any more."""
        self._busy = [stream for stream in self._busy if stream.error is not None]
        for device in self.devices:
            device.forget()

    def _raise_errors(self) -> None:
        """Raise the error of work of this thread that another thread ran."""
        thread = threading.get_ident()
        failed = [s for s in self._busy if s.error is not None and s.owner == thread]
        self._busy = [s for s in self._busy if s not in failed]
        for stream in failed:
            error, stream.error = stream.error, None
            if error is not None:
                raise error

    @contextmanager
    def observed(self, tap: Hook) -> Generator[None]:
        """Watch all launches on every rank with this hook inside the `with` block."""
        before = [device.tap for device in self.devices]
        for device in self.devices:
            device.watch(tap)
        try:
            yield
        finally:
            for device, old in zip(self.devices, before, strict=True):
                device.watch(old)

    def begin(self) -> list[Agent]:
        """The agents of the first stream that has some; an event of one may unblock another."""
        left = -1
        while left != (left := sum(stream.tasks for stream in self._busy)):
            for stream in self._busy:
                agents = stream.begin()
                if agents:
                    return agents
        return []

    def _require_done(self) -> None:
        stuck = [(s, event) for s in self._busy if (event := s.waits_for) is not None]
        if not stuck:
            return
        notes = tuple(
            Note(f"{stream.name} waits for an event of {event.stream.name}")
            for stream, event in stuck
        )
        message = f"{stuck[0][0].name} waits for an event that will not happen"
        raise PtoError(Diagnostic("PTO-D195", message, notes=notes))
