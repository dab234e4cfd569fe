"""Costs from a file: the numbers of a chip that replace those of `target`, and a template of them.

The file is JSON: `chip` (numbers of the chip), `launches` (fixed costs by kind of launch, as us and
cold_us), `classes` (numbers of cost classes) and `lanes` (latency and interval of register
instructions). Whatever is left out keeps its value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pto.core.errors import PtoError, fail
from pto.target.costs import Chip, Cost, Costs, LaunchCost

Overrides = Mapping[str, Mapping[str, Any]]
_PARTS = ("chip", "launches", "classes", "lanes")
_NUMBERS = tuple(f.name for f in fields(Chip) if f.name not in ("launches", "kind"))


def read(path: str) -> Overrides:
    """The overrides in a file."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _wrong(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _wrong(f"{path} contains no object")
    return found


def applied(costs: Costs, changes: Overrides) -> Costs:
    """The costs with the changed numbers, which count as measured."""
    for part in changes:
        if part not in _PARTS and not part.startswith("_"):
            raise _wrong(f"costs have no part {part!r}, only {', '.join(_PARTS)}")
    chip = replace(costs.chip, **_numbers("chip", changes.get("chip", {}), _NUMBERS))
    launches = dict(chip.launches)
    for kind, given in changes.get("launches", {}).items():
        if kind not in launches:
            raise _wrong(f"costs have no kind of launch {kind!r}, only {', '.join(launches)}")
        known = launches[kind]
        launches[kind] = known._replace(**_numbers(kind, given, LaunchCost._fields))
    classes = dict(costs.classes)
    for name, given in changes.get("classes", {}).items():
        if name not in classes:
            raise _wrong(f"costs have no class {name!r}")
        old = classes[name]
        numbers = {**old.numbers, **_numbers(name, given, tuple(old.numbers))}
        classes[name] = Cost(old.form, "measured", "a file of costs", numbers)
    lanes = dict(costs.lanes)
    for name, given in changes.get("lanes", {}).items():
        if name not in lanes:
            raise _wrong(f"costs have no register instruction {name!r}")
        if not isinstance(given, list) or len(given) != 2:
            raise _wrong(f"lanes.{name} is {given!r}, not [latency, interval]")
        latency, interval = (_number(f"lanes.{name}", each) for each in given)
        lanes[name] = latency, interval
    return Costs(replace(chip, launches=launches), classes, lanes)


def template(costs: Costs, used: frozenset[str]) -> str:
    """A file with the numbers that a launch uses: the chip's and those of its cost classes."""
    chip = {name: getattr(costs.chip, name) for name in _NUMBERS}
    classes = {name: dict(costs.classes[name].numbers) for name in sorted(used & {*costs.classes})}
    lanes = {name: list(pair) for name, pair in costs.lanes.items()} if "scope" in used else {}
    status = {
        name: f"{costs.classes[name].status}: {costs.classes[name].source}" for name in classes
    }
    found = {
        "_status": status,
        "chip": chip,
        "launches": {kind: _as_dict(each) for kind, each in costs.chip.launches.items()},
        "classes": classes,
        "lanes": lanes,
    }
    return json.dumps(found, indent=2) + "\n"


def _as_dict(cost: LaunchCost) -> dict[str, float]:
    return dict(zip(cost._fields, cost, strict=True))


def _numbers(where: str, given: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise _wrong(f"{where} is {given!r}, not an object of numbers")
    for name in given:
        if name not in known:
            raise _wrong(f"{where} has no number {name!r}, only {', '.join(known)}")
    return {name: _number(f"{where}.{name}", value) for name, value in given.items()}


def _number(where: str, value: Any) -> float:
    if not isinstance(value, int | float) or value < 0:
        raise _wrong(f"{where} is {value!r}, not a number from 0 on")
    return value


def _wrong(message: str) -> PtoError:
    return fail(
        "PTO-U360",
        message,
        help="pto time --costs-template FILE writes the numbers that a launch uses",
    )
