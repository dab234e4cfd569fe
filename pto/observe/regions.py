"""Sources that end before the domain of an instruction: its result is undefined there."""

from __future__ import annotations

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.observe.clocks import Moment
from pto.observe.races import counters_text
from pto.run.events import Event


class Regions:
    """Reads outside valid regions, one finding an operation and operand."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], tuple[Operation, str, Note]] = {}
        self._counts: dict[tuple[int, str], int] = {}

    def look(self, event: Event, moment: Moment) -> None:
        (_, dst), *sources = event.tiles
        rows, cols = dst.get_valid()
        if not rows or not cols:
            return
        for name, tile in sources:
            have = tile.get_valid()
            if have[0] >= rows and have[1] >= cols:
                continue
            key = (id(event.op), name)
            self._counts[key] = self._counts.get(key, 0) + 1
            if key not in self._found:
                self._found[key] = (event.op, *_words(event, name, have, (rows, cols), moment))

    def findings(self) -> list[Diagnostic]:
        out: list[Diagnostic] = []
        for key, (op, message, note) in self._found.items():
            count = self._counts[key]
            notes = (note, Note(f"{count} alike")) if count > 1 else (note,)
            out.append(Diagnostic("PTO-V211", message, op.loc, notes=notes))
        return out


def _words(
    event: Event, name: str, have: tuple[int, int], want: tuple[int, int], moment: Moment
) -> tuple[str, Note]:
    message = (
        f"'{event.op.name}' op reads {name} outside its valid region: "
        f"{have[0]}x{have[1]} are valid, dst takes {want[0]}x{want[1]}"
    )
    where = counters_text(event.op, event.counters)
    return message, Note(f"#{moment.number} on {event.core.name}{f', {where}' if where else ''}")
