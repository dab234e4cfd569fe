"""A folder that pypto has built: an orchestration, its kernels, inputs and a golden.

`kernel_config.py` names the C++ sources, `golden.py` loads the inputs and computes the golden. Both
are imported with the user's rights, as pypto does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from pto.core.errors import fail
from pto.graphs.device import runtime_root
from pto.graphs.process import Argument, GraphSource
from pto.graphs.scene import Arguments, imported, replaced_modules
from pto.graphs.scene_names import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg
from pto.graphs.shapes import shapes_only

CONFIG = "kernel_config.py"


def find(path: Path) -> Iterator[BuildFolder]:
    """The folders with a `kernel_config.py` at or below a path."""
    for config in sorted(path.rglob(CONFIG)) if path.is_dir() else ():
        home = config.parent.resolve()
        file = home / "compiled_meta.json"
        described = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        profile = described.get("platform", "a2a3").removesuffix("sim")
        yield BuildFolder(home, profile, described.get("runtime_root"))


@dataclass(frozen=True, slots=True)
class BuildFolder:
    """One program of pypto for one chip; `suite` runs it as a scene."""

    path: Path
    profile: str
    headers: str | None = None  # the checkout of the runtime, where the folder names it

    @property
    def root(self) -> Path:
        return runtime_root() if self.headers is None else Path(self.headers)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def tolerances(self) -> tuple[float, float]:
        golden = self._module("golden.py")
        return golden.RTOL, golden.ATOL

    def _module(self, name: str) -> ModuleType:
        file = self.path / name
        if not file.is_file():
            raise fail("PTO-U322", f"there is no {file}")
        module = ModuleType(f"_pto_{file.stem}")
        module.__file__ = str(file)
        loader = SourceFileLoader(module.__name__, str(file))
        with replaced_modules(self.root):
            imported(file, lambda: loader.exec_module(module))
        return module

    def source(self) -> GraphSource:
        config = self._module(CONFIG)
        runtime = getattr(config, "RUNTIME_CONFIG", {}).get("runtime", "tensormap_and_ringbuffer")
        return GraphSource.listed(
            config.ORCHESTRATION, config.KERNELS, self.profile, self.root, runtime, self.path
        )

    def arguments(self, with_values: bool = True) -> Arguments:
        """The inputs of the golden."""
        with nullcontext() if with_values else shapes_only():
            listed = self._module("golden.py").generate_inputs({})
        tensors = [TensorArg(n, v) for n, v in listed if hasattr(v, "data_ptr")]
        scalars = [Scalar(n, v) for n, v in listed if not hasattr(v, "data_ptr")]
        signature = [d.value for d in self._module(CONFIG).ORCHESTRATION.get("signature", ())]
        built = TaskArgsBuilder(*tensors, *scalars)
        return Arguments(built, [use for use in signature if use != "scalar"])

    @property
    def has_golden(self) -> bool:
        return hasattr(self._module("golden.py"), "compute_golden")

    def limited(self, most: Mapping[str, int]) -> BuildFolder:
        """The folder itself: its parameters are fixed."""
        return self

    def judge(self, arguments: Arguments, passed: Sequence[Argument]) -> str:
        """The difference between outputs and golden; empty if they match.

        A NaN of the golden marks an element that a program leaves undefined.
        """
        golden = self._module("golden.py")
        expected = arguments.original.clone()
        tensors: dict[str, Any] = {
            name: getattr(expected, name) for name in expected.tensor_names()
        }
        golden.compute_golden(tensors, {})
        outcome = arguments.outcome(passed)
        for name in golden.__outputs__:
            ours, wanted = getattr(outcome, name), tensors[name]
            if wanted.is_floating_point():
                ours = ours.clone()
                ours[wanted.isnan()] = float("nan")
            comparison = SceneTestCase()
            comparison.RTOL, comparison.ATOL = self.tolerances
            try:
                comparison.compare_tensor(name, ours, wanted, equal_nan=True)
            except AssertionError as error:
                return str(error)
        return ""
