"""The pipes that run one operation, from its row, attributes and operands."""

from __future__ import annotations

from pto.core.memory import Role
from pto.isa.row.attributes import Enum
from pto.isa.row.enums import ENUMS
from pto.isa.row.instr import PipeBy
from pto.isa.row.order import Barrier
from pto.isa.row.phases import PhaseForm, PipeAccess, Step
from pto.isa.rules.rule import Case

# The pipe that runs each kind of operation: PTOAS mapSyncOpTypeToPipe.
OP_PIPES = {
    "TLOAD": "MTE2",
    "TSTORE_ACC": "FIX",
    "TSTORE_VEC": "MTE3",
    "TMOV_M2L": "MTE1",
    "TMOV_M2S": "FIX",
    "TMOV_M2B": "MTE1",
    "TMOV_M2V": "V",
    "TMOV_V2M": "FIX",
    "TMATMUL": "M",
    "TVEC": "V",
    "TVECWAIT_EVENT": "V",
}
_SCALES = {r.space: r.value for r in (Role.SCALE_LEFT, Role.SCALE_RIGHT)}
# Kinds of operation have two names each, with one number.
_EVENTS = ENUMS["pipe_event_type"]
_KINDS = dict(zip(_EVENTS.words, _EVENTS.numbers, strict=True))
_BY_NUMBER = {_KINDS[word]: pipe for word, pipe in OP_PIPES.items()}


def named_pipe(case: Case, name: str) -> str | None:
    """The pipe an attribute names, by itself or through a kind of operation."""
    value = case.op.attrs.get(name)
    if not isinstance(value, Enum):
        return None
    kind = _KINDS.get(value.value)
    return value.value.removeprefix("PIPE_") if kind is None else _BY_NUMBER[kind]


def pipe_of(case: Case) -> str:
    """MTE2, V, ...; ALL; or `none` where nothing is issued to a pipe.

    Of an operation of several pipes: the one that its row names.
    """
    pipe, order = case.row.pipe, case.row.order
    if isinstance(order, Barrier):
        return named_pipe(case, order.pipe) or "ALL"
    form = form_of(case) if case.row.phases else None
    if form is not None and len(form.pipes()) == 1:
        return form.pipes()[0]
    if isinstance(pipe, PipeBy):
        places = [_place(case, name) for name in pipe.operands]
        for roles, name in pipe.cases:
            if all(role in ("*", location) for role, location in zip(roles, places, strict=True)):
                return _chosen(case, name)
        return pipe.otherwise
    if pipe.startswith("@"):
        return named_pipe(case, pipe[1:]) or "none"
    return pipe


def _place(case: Case, name: str) -> str | None:
    """The role of an operand; scales beside an operand of the matrix unit are no fixpipe scales.

    Also the name of the profile, the side of the core, or the operation that made an operand: see
    `PipeBy`.
    """
    if name == "@profile":
        return case.profile.name
    if name == "@side":
        return case.op.side()
    if name.startswith("^"):
        maker = case.maker(name[1:])
        return getattr(case.type(name[1:]), "made_by", None) if maker is None else maker.name
    tile = case.tile(name)
    return _SCALES.get(tile.space, tile.role.value) if tile is not None else case.role(name)


def _chosen(case: Case, name: str) -> str:
    """The pipe of a name; `$x` is field x of the profile's `Sync`, where sources differ."""
    return str(getattr(case.profile.sync, name[1:])) if name.startswith("$") else name


def form_of(case: Case) -> PhaseForm | None:
    """The form of an operation with several phases; None if it is one phase."""
    for form in case.row.phases.get(case.profile.name, ()):
        if all(_holds(case, word) for word in form.when):
            return form if form.steps else None
    return None


def phases_of(case: Case) -> tuple[Step, ...]:
    """The phases of an operation with the operands of each; () where it is work of no pipe."""
    pipe, form = pipe_of(case), form_of(case)
    if form is None:
        return () if pipe in ("none", "ALL") else (_whole(case, PipeAccess(pipe)),)
    steps = (
        _whole(case, s) if isinstance(s, PipeAccess) and s.is_of_all else s for s in form.steps
    )
    return tuple(steps)


def _whole(case: Case, touch: PipeAccess) -> PipeAccess:
    """A phase that accesses all operands by their roles (read, write)."""
    used = case.row.used_on(case.profile.name)
    return PipeAccess(
        touch.pipe,
        tuple(o.name for o in used if o.role != "out"),
        tuple(o.name for o in used if o.role != "in"),
        touch.nested,
    )


def is_scalar_loop(case: Case) -> bool:
    """True if the library implements the instruction as a loop of the scalar unit only."""
    form = form_of(case)
    return form is not None and form.pipes() == ("S",)


def inner_flags(case: Case) -> tuple[tuple[str, str, int], ...]:
    """Flags an operation sets and waits for by itself: (source, target, id)."""
    form = form_of(case)
    return form.flags() if form is not None else ()


def _holds(case: Case, word: str) -> bool:
    """One condition of a form: see `phases.py`."""
    if word[0] in "+-":
        name, row = word[1:], case.row
        is_there = name in case.op.attrs or (name in row.places and bool(case.op.group(name)))
        return is_there is (word[0] == "+")
    if "~" in word:
        first, second = (case.tile(name) for name in word.split("~"))
        return first is not None and second is not None and first.valid == second.valid
    if "!" in word:
        name, _, block = word.partition("!")
        tile = case.tile(name)
        cols = None if tile is None else tile.valid[1]
        return tile is not None and cols is not None and cols * tile.itemsize % int(block) != 0
    if "@" in word:
        name, _, role = word.partition("@")
        return case.role(name) == role
    name, sign, value = word.partition("=")
    if sign:
        return case.word(name) == value
    name, _, types = word.partition(":")
    elem = case.elem(name)
    return elem is not None and bool(set(elem.names) & set(types.split(",")))
