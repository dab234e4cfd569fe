"""Ranks: several devices in one process, each with its own global memory, all within reach.

Their streams are worked off together, so that ranks may wait for each other's signals.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, Note, PtoError, fail
from pto.core.pointer import Pointer
from pto.ir.graph import Module
from pto.run.launch.prepared import Kernel
from pto.run.machine.agents import Agent, take_turns
from pto.run.machine.device import Device
from pto.run.machine.stream import Capture, Graph, Launch, Program, Stream, load, prepare
from pto.run.watch.events import Tap
from pto.target.facts import Profile

_KEPT = 64  # kernels prepared and remembered


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
        made = (Device(profile, device=device, rank=n, world=self) for n in range(ranks))
        self.devices: tuple[Device, ...] = tuple(made)
        self.meetings: dict[Any, Any] = {}
        self.capturing: Graph | None = None
        self.over: frozenset[int] = frozenset()  # launches the host has seen the end of
        self._launches = 0
        self._streams: list[Stream] = []
        self._kernels: dict[tuple[int, str | None, Profile, int], tuple[Module, Kernel]] = {}

    @classmethod
    def around(cls, device: Device) -> World:
        """The world of a device that has no others."""
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
        found = [self._address(array) for array in arrays]
        return np.array(found, np.int64)

    def _address(self, array: npt.NDArray[Any]) -> int:
        for device in self.devices:
            memory = device.memory_of(array)
            if memory is not None:
                return device.address(Pointer(memory, 0, None))
        raise fail("PTO-M114", "this array is not in global memory: use World.symmetric")

    # ---- work

    def new_stream(self, device: Device) -> Stream:
        number = sum(stream.device is device for stream in self._streams)
        self._streams.append(Stream(device, number))
        return self._streams[-1]

    def next_launch(self) -> int:
        """A number for a launch; they count from 1."""
        self._launches += 1
        return self._launches

    def kernel(
        self, module: Module, entry: str | None, profile: Profile, tap: Tap | None = None
    ) -> Kernel:
        """A kernel made ready; the same program is not prepared twice."""
        key = id(module), entry, profile, id(tap)
        found = self._kernels.get(key)
        if found is None:
            found = module, prepare(module, entry, profile, tap)
            self._kernels[key] = found
            if len(self._kernels) > _KEPT:
                del self._kernels[next(iter(self._kernels))]
        return found[1]

    def launch(
        self,
        program: Program,
        *,
        args: Sequence[Sequence[Any]],
        blocks: int | tuple[int, ...] = 1,
        entry: str | None = None,
    ) -> list[Launch]:
        """One launch on each rank, with arguments of its own, all at once."""
        if len(args) != len(self.devices):
            raise fail("PTO-U192", f"{len(args)} lists of arguments for {len(self.devices)} ranks")
        module = load(program)
        streams = [self.new_stream(device) for device in self.devices]
        return [
            stream.launch(module, args=own, blocks=blocks, entry=entry)
            for stream, own in zip(streams, args, strict=True)
        ]

    def capture(self) -> Capture:
        return Capture(self)

    def synchronize(self) -> None:
        """Do all that has been submitted to any rank."""
        try:
            with np.errstate(all="ignore"):
                take_turns(self._begin)
            self._require_done()
            self._settle()
        except BaseException:
            for stream in self._streams:
                stream.abandon()
            raise

    def _settle(self) -> None:
        """What the host submits from here on comes after everything so far."""
        self.over = frozenset(range(1, self._launches + 1))
        for stream in self._streams:
            stream.after = self.over
        for device in self.devices:
            device.forget()
        for tap in {id(d.tap): d.tap for d in self.devices if d.tap is not None}.values():
            tap.observer.end()

    @contextmanager
    def observed(self, tap: Tap) -> Generator[None]:
        """Somebody watches what is launched, on every rank, until the end of the block."""
        before = [device.tap for device in self.devices]
        for device in self.devices:
            device.watch(tap)
        try:
            yield
        finally:
            for device, old in zip(self.devices, before, strict=True):
                device.watch(old)

    def _begin(self) -> list[Agent]:
        """Agents of the first stream that has some. What one stream records may free another."""
        left = -1
        while left != (left := sum(stream.tasks for stream in self._streams)):
            for stream in self._streams:
                agents = stream.begin()
                if agents:
                    return agents
        return []

    def _require_done(self) -> None:
        stuck = [(s, event) for s in self._streams if (event := s.waits_for) is not None]
        if not stuck:
            return
        notes = tuple(
            Note(f"{stream.name} waits for an event of {event.stream.name}")
            for stream, event in stuck
        )
        message = f"{stuck[0][0].name} waits for an event that will not happen"
        raise PtoError(Diagnostic("PTO-D195", message, notes=notes))
