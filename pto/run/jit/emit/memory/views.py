"""The words of a mover about views of global memory (`isa/meaning/memory/views.py`), compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pto.run.jit.emit.tile.elements import Elements, ViewRef
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import UnsupportedLowering
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.lanes import items_of
from pto.run.jit.llvm.value import Condition, Val, known_condition
from pto.run.jit.runtime.context import Word

_ROWS, _COLS = 3, 4  # dimensions


class Views(Elements):
    """Loops over the outer dimensions, lanes along the last one."""

    def assign(
        self,
        dst: ViewRef,
        sources: Sequence[ViewRef],
        combine: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Copy views. Written elements must not be read later; the host handles other cases."""
        self.leave_unless(self._once(dst))
        for source in sources:
            self.leave_unless(self._separate_views(dst, source) | self._same(dst, source))

        def strip(starts: Sequence[Number]) -> None:
            self.strips(
                Number(self.x, 0),
                dst.shape[_COLS],
                lambda _, j: element(j, *starts),
                [dst.dtype.itemsize],
                upright=False,
            )

        def element(j: Index, to: Number, *starts: Number) -> None:
            pairs = zip(sources, starts, strict=True)
            values = [self.load(v, self._along(v, j, at), None) for v, at in pairs]
            found = values[0] if combine is None else reduce(combine, values)
            items = items_of(self._lanes, self.symbol(found), dst.dtype).name
            self.store(dst, self._along(dst, j, to), items, self.mask)

        self._nested((dst, *sources), 0, [Number(self.x, 0)] * (1 + len(sources)), strip)

    def _along(self, view: ViewRef, j: Index, start: Number) -> Index:
        return self._index(j * view.strides[_COLS] + start)

    def _nested(
        self,
        views: Sequence[ViewRef],
        axis: int,
        starts: Sequence[Number],
        body: Callable[[Sequence[Number]], None],
    ) -> None:
        """body(where a line of each view begins), for all lines."""
        if axis == _COLS:
            body(starts)
            return

        def line(i: str | int) -> None:
            pairs = zip(views, starts, strict=True)
            moved = [at + Number(self.x, i) * view.strides[axis] for view, at in pairs]
            self._nested(views, axis + 1, moved, body)

        size = views[0].shape[axis]
        if size.known == 1:
            line(0)
        else:
            self.x.loop(size.value, 1, line)

    def _once(self, view: ViewRef) -> Condition:
        """True if no two elements share bytes."""
        axes = ([n.value for n in reversed(numbers)] for numbers in (view.shape, view.strides))
        return strided.distinct(self.x, 1, *axes)

    def numbered(self, view: ViewRef) -> Condition:
        guard, reach = known_condition(view.view.layout.name == "ND"), Number(self.x, 1)
        for size, step in reversed(list(zip(view.shape, view.strides, strict=True))):
            guard = guard & ((size == 1) | (step == reach))
            reach = reach * size
        return guard

    def _same(self, a: ViewRef, b: ViewRef) -> Condition:
        found = self.x.compare("eq", a.pointer, b.pointer, "ptr")
        for one, other in zip(a.strides, b.strides, strict=True):
            found = found & (one == other)
        return found

    def _separate_views(self, a: ViewRef, b: ViewRef) -> Condition:
        return self.x.disjoint(*self._span(a), *self._span(b))

    def _span(self, view: ViewRef) -> tuple[Val, Val]:
        """The start of a view, and the bytes it spans."""
        axes = ([n.value for n in numbers] for numbers in (view.shape, view.strides))
        begin = self.x.new(f"ptrtoint ptr {view.pointer} to i64")
        return begin, self.x.mul(strided.span(self.x, 1, *axes), view.dtype.itemsize)

    def add_to(self, dst: ViewRef, src: ViewRef, add: Callable[[Any, Any], Any]) -> None:
        self.leave_unless(~self.x.compare("ne", self.context(Word.RECORDS_SUMS), "null", "ptr"))
        self.assign(dst, [dst, src], add)

    def rows(self, view: ViewRef, first: Count, count: Count) -> ViewRef:
        skipped = self.number(first) * view.strides[_ROWS] * view.dtype.itemsize
        shape = (*view.shape[:_ROWS], self.number(count), view.shape[_COLS])
        return ViewRef(view.view, self.x.at(view.pointer, skipped.value), shape, view.strides)

    def on_peer(self, view: ViewRef, peer: Count) -> ViewRef:
        raise UnsupportedLowering("a rank whose memory only its host knows")
