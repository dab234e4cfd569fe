"""A kernel as data: its text, the source location of each operation, and its compile options."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from weakref import WeakKeyDictionary

from pto.core.errors import Loc
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.run.launch.prepared import PreparedKernel
from pto.target.facts import Profile
from pto.target.profile import choose

_KEPT = 64  # kernels that a worker caches
_packed: WeakKeyDictionary[PreparedKernel, KernelMessage] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A module as text, with the locations of its operations for findings of another machine."""

    key: str  # identifies the program; faster to compare than the text
    text: str = field(compare=False)
    file: str = field(compare=False)
    places: tuple[Loc | None, ...] = field(compare=False)  # of each operation, in program order

    @classmethod
    def of(cls, module: Module) -> ProgramText:
        text, places = print_module(module), tuple(op.loc for op in module.walk())
        key = sha256(f"{text}{places}".encode()).hexdigest()
        return cls(key, text, module.source.file, places)

    def module(self) -> Module:
        module = parse(self.text, self.file)
        ops = list(module.walk())
        if len(ops) == len(self.places):
            for op, location in zip(ops, self.places, strict=True):
                op.where = location
        return module


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """The data from which a worker compiles a kernel."""

    program: ProgramText
    functions: tuple[int, ...]  # those that the launch runs, by their number in the program
    target: tuple[str, str | None, str]  # profile, device, edition
    engine: str


def pack(kernel: PreparedKernel) -> KernelMessage | None:
    """A kernel as a message; None if its profile cannot be found by name on another machine."""
    message = _packed.get(kernel)
    if message is not None:
        return message
    profile = kernel.profile
    target = profile.name, profile.device, profile.edition
    if profile_of(target) != profile:
        return None
    numbers = {id(f): n for n, f in enumerate(kernel.module.functions())}
    functions = tuple(numbers[id(f)] for f in kernel.functions)
    program = ProgramText.of(kernel.module)
    message = _packed[kernel] = KernelMessage(program, functions, target, kernel.engine)
    return message


@lru_cache(_KEPT)
def unpack(message: KernelMessage) -> PreparedKernel:
    """The kernel of a message, compiled once."""
    module = message.program.module()
    functions = list(module.functions())
    return PreparedKernel(
        module,
        [functions[n] for n in message.functions],
        profile_of(message.target),
        engine=message.engine,
    )


def profile_of(target: tuple[str, str | None, str]) -> Profile:
    name, device, edition = target
    return choose(profile_name=name, device_name=device, edition=edition).profile
