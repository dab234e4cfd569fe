"""Annotations of a kernel's parameters, as type checkers read them.

`x: pto.Global[pto.f32]` is an array of global memory inside the kernel, and an array of the host
where the kernel is called: the annotation is a union of both. At run time `pto.Global` and
`pto.Scalar` are the classes of the values inside.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar, TypeVarTuple

from pto.lang.values import scalars, views

E = TypeVar("E", covariant=True)
Sizes = TypeVarTuple("Sizes")


class HostArray(Protocol):
    """An array as a caller passes it: of NumPy, torch, or another library with such attributes."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    @property
    def T(self) -> Any: ...
    @property
    def transpose(self) -> Any: ...
    def reshape(self, *shape: Any) -> Any: ...
    def view(self, dtype: Any, /) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __len__(self) -> int: ...


Global: TypeAlias = views.Global[*Sizes] | HostArray
Array: TypeAlias = views.Global[*tuple[Any, ...]] | HostArray | views.View
# A caller passes a number of Python or NumPy. A union with `int` would refuse `n.to(pto.f32)`.
Scalar: TypeAlias = scalars.Scalar[E] | Any
