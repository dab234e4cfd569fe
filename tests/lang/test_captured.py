"""A kernel computes with the values that its globals, closures and attributes have at the call."""

from __future__ import annotations

import functools
import weakref
from collections import UserList, deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pto

F32 = pto.Global[pto.f32]
X = np.ones((16, 64), np.float32)


def result(kernel: Any, *constants: object) -> float:
    y = np.zeros_like(X)
    kernel(X, y, *constants)
    return float(y[0, 0])


def set_global(name: str, value: object) -> None:
    globals()[name] = value


LOG: list[Any] = [2.0]


@pto.kernel
def logged(x: F32, y: F32):
    f = LOG[0]
    LOG.append("traced")
    pto.store(y, pto.load(x, x.shape[0], 64) * f)


def test_a_list_that_the_trace_changes_is_read_anew_when_it_is_replaced():
    for n in range(200):
        set_global("LOG", [3.0 + n])
        assert result(logged) == 3.0 + n


def test_a_list_that_the_trace_changes_is_read_anew_when_an_item_is_set():
    set_global("LOG", [1.0])
    for n in range(5):
        LOG[0] = 7.0 + n
        assert result(logged) == 7.0 + n
        rows = X[:8]
        kernel_of_another_shape = np.zeros_like(rows)
        logged(rows, kernel_of_another_shape)
        assert kernel_of_another_shape[0, 0] == 7.0 + n
    assert result(logged) == 11.0


def test_a_log_does_not_cause_a_trace_for_each_call():
    set_global("LOG", [1.0])
    for _ in range(4):
        result(logged)
        logged(X[:8], np.zeros_like(X[:8]))
    assert LOG == [1.0, "traced", "traced"]


class Config:
    factor = 2.0
    table: Mapping[str, float] = {"a": 2.0}

    def __init__(self, hidden: float = 2.0) -> None:
        self._hidden = hidden

    def method(self) -> float:
        return self._hidden

    @property
    def computed(self) -> float:
        return self._hidden

    @staticmethod
    def static() -> float:
        return SCALE

    @classmethod
    def of_class(cls) -> float:
        return cls.factor

    def __getitem__(self, key: int) -> float:
        return self._hidden * key

    def __call__(self) -> float:
        return self._hidden


class Derived(Config):
    pass


@dataclass(slots=True)
class Slots:
    factor: float


class Table(dict[str, float]):
    factor = 2.0


class Steps(tuple[float, ...]):
    factor = 2.0


class Size(int):
    factor = 2.0


class Mode(Enum):
    ONE = 1

    def factor_of(self) -> float:
        return SCALE


class Computed(type):
    hidden: float

    @property
    def factor(cls) -> float:
        return cls.hidden


class OfMeta(metaclass=Computed):
    hidden = 2.0


def with_factor(factor: float) -> Callable[[], None]:
    def function() -> None:
        pass

    function.factor = factor  # pyright: ignore[reportFunctionMemberAccess]
    return function


SCALE = 2.0


def scaled() -> float:
    return SCALE


def scaled_too() -> float:
    return SCALE + 1.0


def nested(depth: int, leaf: object) -> object:
    return leaf if depth == 0 else [nested(depth - 1, leaf)]


def bottom(value: Any) -> float:
    while isinstance(value, list):
        value = value[0]
    return value


HELD: Any = None


def factor_of(held: Any) -> float:
    return held.factor


# What is held, how it is read, and what changes it from 2 to 3.
CHANGES: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]] = {
    "deeply nested list": (
        lambda: nested(9, [2.0]),
        lambda: bottom(HELD),
        lambda held: functools.reduce(lambda a, _: a[0], range(9), held).__setitem__(0, 3.0),
    ),
    "very deeply nested list": (
        lambda: nested(150, [2.0]),
        lambda: bottom(HELD),
        lambda held: functools.reduce(lambda a, _: a[0], range(150), held).__setitem__(0, 3.0),
    ),
    "deque": (lambda: deque([2.0]), lambda: HELD[0], lambda d: d.__setitem__(0, 3.0)),
    "bytearray": (lambda: bytearray(b"\2"), lambda: HELD[0], lambda b: b.__setitem__(0, 3)),
    "view of a dictionary": (
        lambda: MappingProxyType(Config.__dict__["table"]),
        lambda: HELD["a"],
        lambda _: Config.__dict__["table"].__setitem__("a", 3.0),
    ),
    "namespace": (
        lambda: SimpleNamespace(factor=2.0),
        lambda: HELD.factor,
        lambda held: setattr(held, "factor", 3.0),
    ),
    "object that a helper reads": (
        Config,
        lambda: factor_of(HELD),
        lambda held: setattr(held, "factor", 3.0),
    ),
    "slots": (lambda: Slots(2.0), lambda: HELD.factor, lambda s: setattr(s, "factor", 3.0)),
    "attribute of a method": (
        Config,
        lambda: HELD.method(),
        lambda held: setattr(held, "_hidden", 3.0),
    ),
    "attribute of a property": (
        Config,
        lambda: HELD.computed,
        lambda held: setattr(held, "_hidden", 3.0),
    ),
    "attribute of an item": (Config, lambda: HELD[1], lambda held: setattr(held, "_hidden", 3.0)),
    "attribute of a call": (Config, lambda: HELD(), lambda held: setattr(held, "_hidden", 3.0)),
    "bound method": (
        lambda: Config().method,
        lambda: HELD(),
        lambda held: setattr(held.__self__, "_hidden", 3.0),
    ),
    "global of a static method": (
        lambda: Config(),
        lambda: HELD.static(),
        lambda _: set_global("SCALE", 3.0),
    ),
    "attribute of a class": (
        lambda: type("Own", (Config,), {}),
        lambda: HELD.factor,
        lambda held: setattr(held, "factor", 3.0),
    ),
    "attribute of the class of an object": (
        lambda: type("Own", (Config,), {})(),
        lambda: HELD.factor,
        lambda held: setattr(type(held), "factor", 3.0),
    ),
    "attribute of a class around": (
        Derived,
        lambda: HELD.of_class(),
        lambda _: setattr(Config, "factor", 3.0),
    ),
    "replaced method": (
        lambda: type("Own", (Config,), {})(),
        lambda: HELD.method(),
        lambda held: setattr(type(held), "method", lambda self: 3.0),
    ),
    "order of functions": (
        lambda: [scaled, scaled_too, scaled],
        lambda: HELD[2](),
        lambda held: held.__setitem__(2, scaled_too),
    ),
    "cached function": (
        lambda: functools.lru_cache(scaled).__wrapped__,
        lambda: HELD(),
        lambda _: set_global("SCALE", 3.0),
    ),
    "partial": (
        lambda: functools.partial(factor_of, Slots(2.0)),
        lambda: HELD(),
        lambda held: setattr(held.args[0], "factor", 3.0),
    ),
    "array of objects": (
        lambda: np.array([2.0, "a"], object),
        lambda: HELD[0],
        lambda held: held.__setitem__(0, 3.0),
    ),
    "attribute of a function": (
        lambda: with_factor(2.0),
        lambda: HELD.factor,
        lambda held: setattr(held, "factor", 3.0),
    ),
    **{
        f"attribute of a {type(made).__name__}": (
            lambda made=made: made,
            lambda: HELD.factor,
            lambda held: setattr(held, "factor", 3.0),
        )
        for made in (Table(), Steps(), Size(4), functools.partial(factor_of, held=0))
        if setattr(made, "factor", 2.0) is None
    },
    "global of a method of an enumeration": (
        lambda: Mode.ONE,
        lambda: HELD.factor_of(),
        lambda _: set_global("SCALE", 3.0),
    ),
    "attribute of a metaclass": (
        lambda: OfMeta,
        lambda: HELD.factor,
        lambda held: setattr(held, "hidden", 3.0),
    ),
    "context variable": (
        lambda: ContextVar("factor", default=2.0),
        lambda: HELD.get(),
        lambda held: held.set(3.0),
    ),
    "weak reference": (
        lambda: weakref.ref(OfMeta),
        lambda: HELD().factor,
        lambda held: setattr(held(), "hidden", 3.0),
    ),
    "list of a library": (
        lambda: UserList([2.0]),
        lambda: HELD[0],
        lambda held: held.__setitem__(0, 3.0),
    ),
    "fraction": (
        lambda: Fraction(2),
        lambda: float(HELD),
        lambda _: set_global("HELD", Fraction(3)),
    ),
    "decimal": (
        lambda: Decimal(2),
        lambda: float(HELD),
        lambda _: set_global("HELD", Decimal(3)),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_kernel_sees_the_change_of(what: str):
    make, read, change = CHANGES[what]
    set_global("SCALE", 2.0)
    Config.factor = OfMeta.hidden = 2.0

    @pto.kernel
    def scale(x: F32, y: F32):
        pto.store(y, pto.load(x, 16, 64) * float(read()))

    set_global("HELD", make())
    assert [result(scale) for _ in range(3)] == [2.0] * 3
    assert len(vars(scale)["_cache"]) == (3 if what.startswith("very") else 1)
    change(HELD)
    assert result(scale) == 3.0


@dataclass(frozen=True)
class Frozen:
    inner: Slots | list[float]

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("constant", "read", "change"),
    [
        (Config(), lambda c: c.factor, lambda c: setattr(c, "factor", 3.0)),
        (Frozen([2.0]), lambda c: c.inner[0], lambda c: c.inner.__setitem__(0, 3.0)),
        (Frozen(Slots(2.0)), lambda c: c.inner.factor, lambda c: setattr(c.inner, "factor", 3.0)),
        (scaled, lambda c: c(), lambda _: set_global("SCALE", 3.0)),
    ],
)
def test_a_constant_argument_is_read_anew_after_a_change(constant: Any, read: Any, change: Any):
    Config.factor = 2.0
    set_global("SCALE", 2.0)

    @pto.kernel
    def scale(x: F32, y: F32, config: Any):
        pto.store(y, pto.load(x, 16, 64) * read(config))

    assert [result(scale, constant) for _ in range(3)] == [2.0] * 3
    assert len(vars(scale)["_cache"]) == 1
    change(constant)
    assert result(scale, constant) == 3.0


def test_constants_of_other_types_and_signs_are_others():
    @pto.kernel
    def scale(x: F32, y: F32, n: Any):
        pto.store(y, pto.load(x, 16, 64) * (1.0 / n if isinstance(n, float) and n else 5.0))

    assert [result(scale, n) for n in (2, 2.0, 4.0, True, (2,))] == [5.0, 0.5, 0.25, 5.0, 5.0]

    @pto.kernel
    def sign(x: F32, y: F32, n: Any):
        pto.store(y, pto.load(x, 16, 64) * float(np.copysign(1.0, n[0])))

    assert [result(sign, (n,)) for n in (0.0, -0.0)] == [1.0, -1.0]


class Tensor:
    """What torch's tensors have in common with this: a version that changes in place, which
    tensors of inference mode do not have."""

    data_ptr = element_size = is_contiguous = numel = None

    def __init__(self, *, inference: bool = False) -> None:
        self._value, self._changes, self._inference = 2.0, 0, inference

    def is_inference(self) -> bool:
        return self._inference

    @property
    def _version(self) -> int:
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._changes

    def tolist(self) -> list[float]:
        return [self._value]

    def fill(self, value: float) -> None:
        self._value, self._changes = value, self._changes + 1


@pytest.mark.parametrize("inference", [False, True])
def test_a_kernel_sees_the_change_of_a_tensor(inference: bool):
    weights = Tensor(inference=inference)
    take = getattr(Tensor, "__getattribute__")  # noqa: B009, hidden from the names of the kernel

    @pto.kernel
    def scale(x: F32, y: F32):
        pto.store(y, pto.load(x, 16, 64) * take(weights, "_value"))

    assert [result(scale) for _ in range(2)] == [2.0] * 2
    assert len(vars(scale)["_cache"]) == 1
    weights.fill(3.0)
    assert result(scale) == 3.0
