"""The current session, which receives instruction calls: a kernel trace or an eager machine."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, Unpack

from pto.core.errors import Diagnostic
from pto.ir.builder import Operands, Parts
from pto.ir.graph import Value
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.row.types import TileBuf, Type
from pto.lang.call.place import mistake

if TYPE_CHECKING:
    from pto.lang.values.tiles import Extent, Extents, Tile

T = TypeVar("T")


class Session(Protocol):
    """A session. Values belong to the session that created them.

    The bodies here are those of a session in which all numbers, types and loops are Python's.
    """

    profile: str
    name: str
    is_open: bool
    eager: ClassVar[bool]
    has_asked: bool = False  # Python asked what a size is that a proof has no number for
    _token: Token[Session | None]

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _current.reset(self._token)
        self.is_open = False

    def emit(
        self, row: Instr, operands: Operands = None, **parts: Unpack[Parts]
    ) -> list[Value]: ...
    def constant(self, number: float | int | bool, type: ScalarType) -> Value: ...
    def scalar(self, value: Value) -> Any: ...  # a Scalar; in eager mode a number
    def alloc(self, type: TileBuf, valid: Extents | None, address: int | None) -> Tile: ...
    def array(self, array: Any) -> Any: ...
    def all_lanes(self, bits: int) -> Value: ...
    def place(self, tile: Tile, address: Value) -> None: ...
    def region(self, tile: Tile) -> Extents: ...
    def set_region(self, tile: Tile, rows: Extent, cols: Extent) -> None: ...
    def adopt(self, tile: Tile, region: tuple[int, int]) -> Tile: ...
    def in_l1(self, tile: Tile, type: TileBuf) -> Tile | None: ...
    def grid(self) -> list[Value]: ...
    def notice(self, finding: Diagnostic) -> None: ...

    def forget(self, value: Value) -> None:
        """Drop the tile of an allocation that was erased; eager mode erases none."""

    def sees(self, tile: Tile) -> bool:
        """True if the tile was made in a block around this one."""
        return True

    def first_time(self, tile: Tile) -> Any:
        """A condition that is true in the first iteration of all loops between here and the
        definition of the tile; None if there are no loops."""
        return None

    def limit(self, extent: object, most: int) -> bool:
        """Require a named size to be at most `most` at every launch; False if not a named size."""
        return False

    def is_below(self, number: object, end: object) -> bool:
        """True if `number` is the counter of an enclosing loop and `end` its upper bound."""
        return False

    def is_loose(self, value: Value) -> bool:
        """True for a loop argument that takes the type of its first use."""
        return False

    def tighten(self, value: Value, type: ScalarType | None) -> None:
        """Fix the type of such an argument; None keeps its present type."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """A number computed once and reused wherever the first computation dominates."""
        return make()


_current: ContextVar[Session | None] = ContextVar("pto session", default=None)


def active() -> Session | None:
    return _current.get()


def current() -> Session:
    """The current session; an error if there is none."""
    session = _current.get()
    if session is None:
        raise mistake(
            "PTO-U200",
            "this is called outside a kernel, so nothing would execute it",
            help='call it in a function under @pto.kernel, or inside `with pto.eager("a5"):`',
        )
    return session


class ValueHandle:
    """A value in a kernel: a reference to one SSA value of one session."""

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
            subject = f"this {self.type.kind} belongs to {self.home.name}"
            after = "which has been traced" if not self.home.is_open else "not to the current one"
            raise mistake(
                "PTO-U201",
                f"{subject}, {after}",
                help="tiles and registers live inside one kernel: make it there, and pass data"
                " between kernels as arrays",
            )
        return self.value

    def __repr__(self) -> str:
        from pto.ir.text.types import type_text

        return f"<%{self.value.name}: {type_text(self.type)}>"
