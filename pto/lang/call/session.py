"""Who listens to instruction functions: the trace of a kernel, or a machine that runs at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol, Unpack

from pto.core.errors import Diagnostic
from pto.ir.builder import Operands, Parts
from pto.ir.graph import Value
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.row.types import TileBuf, Type
from pto.lang.call.place import mistake


class Session(Protocol):
    """What every listener can do. Values belong to the session that made them."""

    profile: str
    name: str
    is_open: bool
    eager: ClassVar[bool]

    def emit(
        self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]
    ) -> list[Value]: ...
    def constant(self, number: float | int | bool, type: ScalarType) -> Value: ...
    def scalar(self, value: Value) -> Any: ...
    def alloc(self, type: TileBuf, valid: Any, address: Any) -> Any: ...
    def array(self, array: Any) -> Any: ...
    def all_lanes(self, bits: int) -> Value: ...
    def place(self, tile: Any, address: Value) -> None: ...
    def region(self, tile: Any) -> tuple[Any, Any]: ...
    def set_region(self, tile: Any, rows: Any, cols: Any) -> None: ...
    def sees(self, tile: Any) -> bool: ...
    def adopt(self, tile: Any, region: tuple[int, int]) -> Any: ...
    def in_l1(self, tile: Any, type: TileBuf) -> Any: ...
    def first_time(self, tile: Any) -> Any: ...
    def limit(self, extent: Any, most: int) -> bool: ...
    def grid(self) -> list[Value]: ...
    def notice(self, finding: Diagnostic) -> None: ...
    def is_below(self, number: Any, end: Any) -> bool: ...
    def is_loose(self, value: Value) -> bool: ...
    def tighten(self, value: Value, type: ScalarType | None) -> None: ...
    def once(self, key: Hashable, make: Callable[[], Any]) -> Any: ...


_current: ContextVar[Session | None] = ContextVar("pto session", default=None)


def enter(session: Session) -> Any:
    """Make `session` the listener; give the token to `leave`."""
    return _current.set(session)


def leave(token: Any) -> None:
    _current.reset(token)


def active() -> Session | None:
    return _current.get()


def current() -> Session:
    """The listener, or a diagnostic that says what is missing."""
    session = _current.get()
    if session is None:
        raise mistake(
            "PTO-U200",
            "this stands outside a kernel: nothing would execute it",
            help='call it in a function under @pto.kernel, or inside `with pto.eager("a5"):`',
        )
    return session


class Handle:
    """A value of a kernel: belongs to one session and names one value of its program."""

    __slots__ = ("home", "value")

    def __init__(self, value: Value, home: Session) -> None:
        self.value = value
        self.home = home

    @property
    def type(self) -> Type:
        return self.value.type

    def used(self) -> Value:
        """The value, for an instruction of the current session."""
        if self.home is not _current.get():
            what = f"this {self.type.kind} belongs to {self.home.name}"
            after = "which has been traced" if not self.home.is_open else "not to the current one"
            raise mistake(
                "PTO-U201",
                f"{what}, {after}",
                help="tiles and registers live inside one kernel: make it there, and pass data"
                " between kernels as arrays",
            )
        return self.value

    def __repr__(self) -> str:
        from pto.ir.text.types import type_text

        return f"<%{self.value.name}: {type_text(self.type)}>"
