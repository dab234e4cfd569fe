"""A kernel as data: its text, where each operation stood, and how it was made ready."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from weakref import WeakKeyDictionary

from pto.core.errors import Loc
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.run.launch.prepared import Kernel
from pto.target.choose import choose
from pto.target.facts import Profile

_KEPT = 64  # kernels that a worker remembers
_packed: WeakKeyDictionary[Kernel, Parcel] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Program:
    """A module as text. Findings of another machine name the lines of the source it came from."""

    key: str  # tells programs apart, sooner than their texts
    text: str = field(compare=False)
    file: str = field(compare=False)
    places: tuple[Loc | None, ...] = field(compare=False)  # of each operation, in program order

    @classmethod
    def of(cls, module: Module) -> Program:
        text, places = print_module(module), tuple(op.loc for op in module.walk())
        key = sha256(f"{text}{places}".encode()).hexdigest()
        return cls(key, text, module.source.file, places)

    def module(self) -> Module:
        made = parse(self.text, self.file)
        found = list(made.walk())
        if len(found) == len(self.places):
            for op, place in zip(found, self.places, strict=True):
                op.where = place
        return made


@dataclass(frozen=True, slots=True)
class Parcel:
    """What a worker makes a kernel of."""

    program: Program
    functions: tuple[int, ...]  # those that the launch runs, by their place in the program
    target: tuple[str, str | None, str]  # profile, device, edition
    engine: str
    checks: bool


def pack(kernel: Kernel) -> Parcel | None:
    """A kernel to be sent; None: its profile has no name that others know it by."""
    found = _packed.get(kernel)
    if found is not None:
        return found
    profile = kernel.profile
    target = profile.name, profile.device, profile.edition
    if profile_of(target) != profile:
        return None
    numbers = {id(f): n for n, f in enumerate(kernel.module.functions())}
    functions = tuple(numbers[id(f)] for f in kernel.functions)
    program = Program.of(kernel.module)
    found = _packed[kernel] = Parcel(program, functions, target, kernel.engine, kernel.checks)
    return found


@lru_cache(_KEPT)
def unpack(parcel: Parcel) -> Kernel:
    """The kernel, made ready once."""
    module = parcel.program.module()
    functions = list(module.functions())
    return Kernel(
        module,
        [functions[n] for n in parcel.functions],
        profile_of(parcel.target),
        engine=parcel.engine,
        checks=parcel.checks,
    )


def profile_of(target: tuple[str, str | None, str]) -> Profile:
    name, device, edition = target
    return choose(profile_name=name, device_name=device, edition=edition).profile
