"""The contents of a checkout: a model is a folder with `kernels/`, a kernel a .pto file in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pto.core.errors import fail
from pto.core.selection import Selection

_RULES = Path("npu_validation/scripts/generate_testcase.py")


@dataclass(frozen=True, slots=True)
class ModelKernel:
    """One kernel, its data script if it has one, and upstream's rules."""

    name: str
    family: str  # the model
    kernel: Path
    golden: Path | None
    rules: Path | None

    @property
    def case(self) -> str:
        return self.kernel.stem

    @property
    def weight(self) -> int:
        return self.kernel.stat().st_size


def find_kernels(path: Path, selection: Selection) -> list[ModelKernel]:
    """The selected kernels of the models below `path`, by model and name."""
    if not path.is_dir():
        raise fail("PTO-U060", f"{path} is not a directory", help="give a checkout of PTOAS")
    root = path.resolve()
    rules = next((p / _RULES for p in _around(root) if (p / _RULES).is_file()), None)
    folders = sorted(p for p in root.rglob("kernels") if p.is_dir())
    samples = [p for p in folders if p.parent.parent.name == "samples"]
    folders = samples or folders  # a checkout has folders of that name elsewhere too
    if root.name == "kernels" or "kernels" in root.parts:
        folders = [root]
    kernels = [
        _kernel(f, folder, rules) for folder in folders for f in sorted(folder.rglob("*.pto"))
    ]
    if not kernels:
        raise fail(
            "PTO-U060",
            f"there are no model kernels below {path}",
            help="a model is a folder with kernels/, as test/samples/Qwen3DecodeA5 of PTOAS",
        )
    return [kernel for kernel in kernels if selection.holds(kernel.name)]


def _around(root: Path) -> list[Path]:
    """Possible folders of upstream's scripts: the folder, `test` below it, or its parents."""
    return [root, root / "test", *root.parents]


def _kernel(file: Path, folder: Path, rules: Path | None) -> ModelKernel:
    parts = folder.parts
    model = folder.parents[len(parts) - 1 - parts.index("kernels")]
    script = model / f"{file.stem}_golden.py"
    golden = script if script.is_file() else None
    return ModelKernel(f"{model.name}/{file.stem}", model.name, file, golden, rules)
