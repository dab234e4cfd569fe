"""The device: owns global memory and converts launch arguments to parameter values.

Its work is queued in `stream.py`; agents are scheduled in `agents.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space, address_of
from pto.core.pointer import Pointer
from pto.isa.meaning.handle.memref import argument_view
from pto.isa.meaning.scalar.arith import wrapper
from pto.isa.row import types as t
from pto.run.launch.arrays import Borrowed, of_elements
from pto.run.launch.engine import chosen_engine
from pto.run.launch.prepared import PreparedKernel
from pto.target.facts import Profile
from pto.target.profile import choose

if TYPE_CHECKING:
    from pto.ir.graph import Module
    from pto.run.launch.call import Launch
    from pto.run.machine.stream import Graph, Stream
    from pto.run.machine.world import World
    from pto.run.watch.events import Hook, Observer

# Where a rank's memory lies: no valid address is small by accident. The symmetric heap comes first,
# so that the same offset is the same allocation on every rank; arrays of launches come behind it.
_WINDOW = 1 << 40
_ARRAYS = _WINDOW >> 1
_PAGE = 1 << 12


@dataclass(slots=True)
class _Attached:
    """An array in global memory. `users` counts the launches that need it; heap stays."""

    base: int
    memory: Memory
    pointer: int  # its machine address
    users: int = 0
    stays: bool = False


class Device:
    """Global memory and the cores of one chip; one of the ranks of a world.

    >>> device = Device("a5", device="950pr")
    >>> stream = device.stream()
    >>> stream.launch("add.pto", blocks=8, args=[a, b, c])
    >>> device.synchronize()
    """

    def __init__(
        self,
        profile: Profile | str | None = None,
        *,
        device: str | None = None,
        rank: int = 0,
        world: World | None = None,
        observer: Observer | None = None,
        engine: str | None = None,
    ) -> None:
        if not isinstance(profile, Profile):
            profile = choose(profile_name=profile, device_name=device).profile
        self.profile = profile
        self.engine = chosen_engine(engine)
        self.rank = rank
        self.tap = None if observer is None else _tap(observer)
        self._world = world
        self._heap = (rank + 1) * _WINDOW
        self._next = self._heap + _ARRAYS
        self._arrays: list[_Attached] = []
        self._streams = 0  # made so far
        self._meetings: dict[Any, Any] = {}

    # ---- host interface

    @property
    def world(self) -> World:
        """The ranks this device is one of; a device of its own is a world of one."""
        if self._world is None:
            from pto.run.machine.world import World

            self._world = World.around(self)
        return self._world

    def stream(self) -> Stream:
        """A new queue of work for this device."""
        number, self._streams = self._streams, self._streams + 1
        return self.world.new_stream(self, number)

    def kernel(self, module: Module, entry: str | None = None) -> PreparedKernel:
        """A program, checked and compiled for this device; compiled once."""
        return self.world.kernel(self, module, entry)

    def synchronize(self) -> None:
        """Run everything that has been submitted."""
        self.world.synchronize()

    def capture(self) -> AbstractContextManager[Graph]:
        """`with device.capture() as graph:` keeps what is submitted there, to be replayed."""
        return self.world.capture()

    # ---- global memory

    def attach(self, array: npt.NDArray[Any], *, heap: bool = False) -> Memory:
        """Make a host array global memory; nothing is copied."""
        flags = array.flags
        if not flags.c_contiguous or not flags.writeable:
            raise fail("PTO-M113", "an argument array must be contiguous and writeable")
        bytes = array.reshape(-1).view(np.uint8)
        memory = Memory.over(Space.GM, bytes)
        if self.tap is not None:
            memory = self.tap.adopt(memory)
        taken = -(-max(memory.size, 1) // _PAGE) * _PAGE + _PAGE
        base = self._heap if heap else self._next
        self._arrays.append(_Attached(base, memory, address_of(bytes), stays=heap))
        self._heap, self._next = (
            (self._heap + taken, self._next) if heap else (self._heap, self._next + taken)
        )
        return memory

    def windows(self) -> list[tuple[int, Memory, bool]]:
        """All global memory: address, memory, and whether it belongs to the heap."""
        return [(a.base, a.memory, a.stays) for a in self._arrays]

    def open_window(self, base: int, array: npt.NDArray[np.uint8], heap: bool) -> None:
        """Map global memory at an address that another process has chosen; it is never unmapped."""
        memory = Memory.over(Space.GM, array)
        pointer = address_of(array)
        self._arrays.append(_Attached(base, memory, pointer, int(not heap), heap))

    def watch(self, tap: Hook | None) -> None:
        """Replace the instrumentation hook (None: remove it); attached arrays stay attached."""
        from pto.run.watch.memory import WatchedMemory

        self.tap = tap
        for attached in self._arrays:
            memory = attached.memory
            data = memory.raw if isinstance(memory, WatchedMemory) else memory.data
            plain = Memory.over(Space.GM, data)
            attached.memory = plain if tap is None else tap.adopt(plain)

    def hold(self, memories: Iterable[Memory]) -> None:
        """Count one more launch that uses these memories."""
        self._count(memories, 1)

    def release(self, memories: Iterable[Memory]) -> None:
        """Count one launch less; arrays without a launch lose their address."""
        self._count(memories, -1)
        for device in self._devices:
            # an observer may still see a launch that is not ordered after this one
            if device.tap is None:
                device.forget()

    def forget(self) -> None:
        """Remove arrays that no launch uses from global memory."""
        self._arrays = [a for a in self._arrays if a.users > 0 or a.stays]

    def _count(self, memories: Iterable[Memory], step: int) -> None:
        ids = list(map(id, memories))
        for attached in self._everywhere():
            if id(attached.memory) in ids:
                attached.users += step

    def address(self, pointer: Pointer) -> int:
        """The number of a global address, as ptr-to-integer casts give it."""
        for attached in self._everywhere():
            if attached.memory is pointer.memory:
                return attached.base + pointer.address
        raise fail("PTO-M114", "this pointer is not into global memory")

    def pointer(self, address: int, elem: Any) -> Pointer:
        """The global memory at a number, on this rank or another."""
        for attached in self._everywhere():
            if attached.base <= address <= attached.base + attached.memory.size:
                return Pointer(attached.memory, address - attached.base, elem)
        raise fail("PTO-M114", f"{address:#x} is not a global address of this launch")

    def memory_of(self, array: npt.NDArray[Any]) -> Memory | None:
        """The global memory that an array already is, on this rank or another."""
        everywhere = self._everywhere()
        size, pointer = array.nbytes, address_of(array) if everywhere else 0
        for attached in everywhere:
            if attached.pointer == pointer and attached.memory.size == size:
                return attached.memory
        return None

    def _everywhere(self) -> list[_Attached]:
        if self._world is None:
            return self._arrays
        return [attached for device in self._world.devices for attached in device._arrays]

    @property
    def _devices(self) -> tuple[Device, ...]:
        return (self,) if self._world is None else self._world.devices

    # ---- ranks

    @property
    def ranks(self) -> int:
        return 1 if self._world is None else len(self._world.devices)

    @property
    def meetings(self) -> dict[Any, Any]:
        """Calls of collective operations by rank: one mapping for the whole world."""
        return self._meetings if self._world is None else self._world.meetings

    def combined(self, target: GlobalTensor, values: npt.NDArray[Any]) -> None:
        """Record values that were added to shared memory, for ranks in other processes."""
        if self._world is not None and self._world.added is not None:
            self._world.added.append((target, np.array(values)))

    @property
    def records_sums(self) -> bool:
        """True if additions must be recorded by `combined`."""
        return self._world is not None and self._world.added is not None

    def owner(self, memory: Memory) -> int | None:
        """The rank that owns a memory; None if no rank does."""
        base = next((a.base for a in self._everywhere() if a.memory is memory), None)
        return None if base is None else base // _WINDOW - 1

    def twin(self, memory: Memory, rank: int) -> Memory:
        """The memory at the same offset of another rank's heap."""
        if not 0 <= rank < self.ranks:
            raise fail("PTO-M195", f"there is no rank {rank}: the world has {self.ranks}")
        attached = next((a for a in self._arrays if a.memory is memory and a.stays), None)
        if attached is None:
            raise fail(
                "PTO-M195",
                f"this memory is not of the symmetric heap of rank {self.rank}",
                help="allocate it with World.symmetric, which uses the same offset on every rank",
            )
        wanted = attached.base + (rank - self.rank) * _WINDOW
        return next(a.memory for a in self.world.devices[rank]._arrays if a.base == wanted)

    # ---- launches

    def run(self, launch: Launch) -> Launch:
        """Run one launch at once; on a stream of its own if an agent may have to wait."""
        if self._world is None and launch.is_alone(direct=True):
            launch.now()
            return launch
        stream = self.stream()
        stream.is_direct = True
        stream.submit(launch)
        stream.synchronize()
        return launch

    def values(self, kernel: PreparedKernel, args: Sequence[Any]) -> Mapping[str, Any]:
        """The values of a kernel's parameters, by name."""
        kernel.require(len(args))
        pairs = zip(kernel.parameters.items(), args, strict=True)
        return {name: self._value(name, type, arg) for (name, type), arg in pairs}

    def _value(self, name: str, type: t.Type, value: Any) -> Any:
        if isinstance(type, t.Ptr) and type.space is Space.GM:
            elem = type.elem.dtype if isinstance(type.elem, t.Scalar) else None
            return Pointer(self._memory_of(name, "a pointer", value, elem), 0, elem)
        if isinstance(type, t.MemRef) and type.space is Space.GM:
            memory = self._memory_of(name, "a memref", value, type.elem.dtype)
            return argument_view(type, memory, value.shape)
        if isinstance(type, t.View):
            return self._view(name, type, value)
        if isinstance(type, t.Scalar):
            return scalar(name, type, value)
        where = f" into {type.space.value}" if isinstance(type, t.Ptr | t.MemRef) else ""
        raise fail("PTO-U033", f"%{name} is a {type.kind}{where}, which a host value cannot be")

    def _view(self, name: str, type: t.View, value: Any) -> GlobalTensor:
        memory = self._memory_of(name, "a view", value, type.elem.dtype)
        if type.elem.dtype is None or (None in type.shape and len(value.shape) != len(type.shape)):
            raise fail("PTO-U033", f"%{name} has {len(type.shape)} dimensions, got {value.shape}")
        actual = value.shape if None in type.shape else type.shape
        shape = [
            extent if size is None else size
            for size, extent in zip(type.shape, actual, strict=True)
        ]
        return GlobalTensor.of(memory, 0, type.elem.dtype, [n or 0 for n in shape])

    def _memory_of(self, name: str, role: str, array: Any, elem: DType | None) -> Memory:
        if not isinstance(array, np.ndarray):
            raise fail("PTO-U033", f"%{name} is {role}: it needs an array, got {array!r}")
        if elem is None or array.dtype != elem.numpy:
            of_elements(name, Borrowed(array, array), elem)
        return self.memory_of(array) or self.attach(array)


def _tap(observer: Observer) -> Hook:
    from pto.run.watch.events import Hook  # only runs that are watched need it

    return Hook(observer)


def scalar(name: str, type: t.Scalar, value: Any) -> Any:
    """A number that the type can hold; the bits of a signless integer may be passed as unsigned."""
    if not isinstance(value, int | float | np.generic | np.ndarray) or np.ndim(value):
        actual = "an array" if isinstance(value, np.ndarray) else repr(value)
        raise fail("PTO-U033", f"%{name} is a scalar of type {type.name}, got {actual}")
    number: Any = value.item() if isinstance(value, np.generic | np.ndarray) else value
    finite = isinstance(number, int) or math.isfinite(number)
    if type.is_float:
        fits = not finite or type.dtype is None or abs(number) <= type.dtype.max
    else:
        low, high = type.written
        fits = finite and int(number) == number and low <= number <= high
    if not fits:
        raise fail("PTO-U033", f"%{name} is {type.name}, which cannot be {value}")
    return (
        type.dtype.numpy.type(value) if type.dtype and type.is_float else wrapper(type)(int(number))
    )
