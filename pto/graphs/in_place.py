"""Import this to run pypto on the machine: `pytest -p pto.graphs.in_place ...`.

It provides the packages `simpler` and `simpler_setup`, before another path does. Without a `ptoas`
it provides one that hands programs to the machine as they are.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pto.cxx
from pto.graphs import chips, device, process, scene_names
from pto.graphs.stand_in import ProvidedModules


def _parse_level(level: int | str) -> int:
    """The number of a level of Python's logging; the runtime has two more."""
    if isinstance(level, int):
        return level
    return {**logging.getLevelNamesMapping(), "TIMING": 25, "NULL": 100}[level.upper()]


def _ensure_pto_isa_root(**options: Any) -> str:
    """The folder with the headers of the ISA, `include/pto`."""
    return str(Path(pto.cxx.__file__).parent)


def _provide_assembler() -> None:
    """Make PTOAS_ROOT a folder with our `ptoas`, unless there is one."""
    if os.environ.get("PTOAS_ROOT") or shutil.which("ptoas"):
        return
    folder = tempfile.mkdtemp(prefix="pto-ptoas-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(folder, "ptoas")
    ours = shlex.join([sys.executable, "-m", "pto.cxx.program_calls"])
    script.write_text(f'#!/bin/sh\nexec {ours} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    os.environ["PTOAS_ROOT"] = folder


_TYPES = (
    *(scene_names.ArgDirection, scene_names.DataType, scene_names.scalar_to_uint64),
    *chips.INTERFACE,
    *(device.ChipCallable, device.CoreCallable),
)
_TENSORS = dict.fromkeys(("ChipTensor", "Tensor"), process.ArgTensor)
_TORCH = (
    *(device.make_chip_tensor_arg, device.make_tensor_arg),
    scene_names.torch_dtype_to_datatype,
)
MODULES: dict[str, dict[str, Any]] = {
    "simpler": {},
    "simpler._log": {"get_logger": lambda: logging.getLogger("simpler")},
    "simpler.task_interface": {
        **{each.__name__: each for each in _TYPES},
        **_TENSORS,
        "ChipStorageTaskArgs": chips.TaskArgs,
    },
    "simpler.worker": {"Worker": device.Worker},
    "simpler_setup": {"KernelCompiler": device.KernelCompiler},
    "simpler_setup.log_config": {"parse_level": _parse_level},
    "simpler_setup.pto_isa": {"ensure_pto_isa_root": _ensure_pto_isa_root},
    "simpler_setup.torch_interop": {each.__name__: each for each in _TORCH},
}
sys.meta_path.insert(0, ProvidedModules(MODULES))
_provide_assembler()
