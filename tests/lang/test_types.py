"""What an editor knows of a kernel: the arguments of a call, and the stubs beside run time."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pto
from pto import isa
from pto.lang.call import instructions
from pto.lang.names import HOMES, MODULES, RENAMED, known
from pto.lang.values import elements

PACKAGE = Path(pto.__file__).parent
CHECKER = shutil.which("basedpyright", path=str(Path(sys.executable).parent))

# Lines with `# wrong` must be reported, all others must not.
CALLS = """\
import numpy as np
import pto
from pto import isa


@pto.kernel
def scaled(
    x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Scalar[pto.i32], size: int = 16
) -> None:
    t = pto.load(x[n:, :], size, 64)
    if n.to(pto.f32) > 1.0:
        t = t * isa.load_scalar(x, n, 0)
    pto.store(y.T[0:64, :], t.T)
    t.missing()  # wrong


@pto.kernel(profile="a2a3")
def copied(x: pto.Global[pto.f16], y: pto.Global[pto.f16]) -> None:
    pto.store(y, pto.load(x[0:16, :], 16, 64))


x = np.zeros((16, 64), np.float32)
scaled[4](x, x, 3)
scaled(x, y=x, n=np.int32(3), size=8)
scaled[2, 2](x, x, 3, engine="jit")
scaled.on("a2a3")[4](x, x, 3).blocks
found: pto.Verdict = scaled[4].sanitize(x, x, 3)
found = pto.sanitize(scaled.module(x, x, 3), args=[x, x, 3])
print(found.is_clean, found[0].code, scaled[4].time((16, 64), (16, 64), 3).us)
copied[1](x, x)
scaled[4](x)  # wrong
scaled[4](x, x, 3, sise=4)  # wrong
scaled[4](x, x, 3, "16")  # wrong
scaled[4]([1, 2], x, 3)  # wrong
scaled(3, x, 3)  # wrong
scaled.on("a2a3")[4](x, x)  # wrong
copied[1](x, x, 3)  # wrong
"""


@pytest.mark.skipif(CHECKER is None, reason="basedpyright is not installed")
def test_a_type_checker_knows_the_arguments_of_a_kernel(tmp_path: Path):
    file = tmp_path / "calls.py"
    file.write_text(CALLS, encoding="utf-8")
    rules = {"typeCheckingMode": "standard", "extraPaths": [str(PACKAGE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(rules), encoding="utf-8")
    command = [str(CHECKER), "-p", str(tmp_path), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    told = {d["range"]["start"]["line"]: d["message"] for d in found if d["severity"] == "error"}
    wrong = {n for n, line in enumerate(CALLS.splitlines()) if line.endswith("# wrong")}
    assert wrong and told.keys() == wrong, told


def _exports(stub: str) -> list[str]:
    tree = ast.parse((PACKAGE / stub).read_text(encoding="utf-8"))
    assigned = {ast.unparse(s.targets[0]): s.value for s in tree.body if isinstance(s, ast.Assign)}
    return ast.literal_eval(assigned["__all__"])


def test_the_stub_of_the_package_has_the_names_of_run_time():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname for node in imports for alias in node.names if alias.asname}
    assigned = {ast.unparse(n.targets[0]) for n in tree.body if isinstance(n, ast.Assign)}
    public = {name for name in imported if not name.startswith("_")}
    listed = {name for names in HOMES.values() for name in names.split()}
    assert public == listed | set(MODULES) and assigned - {"__all__"} == set(RENAMED)
    generated = set(_exports("lang/values/elements.pyi"))
    assert public | set(RENAMED) | generated == known()
    assert all(hasattr(pto, name) for name in known())
    assert _exports("__init__.pyi") == pto.__all__  # pyright: ignore


def test_the_stubs_of_instructions_and_types_have_the_names_of_run_time():
    assert sorted(_exports("lang/values/elements.pyi")) == dir(elements)
    tree = ast.parse((PACKAGE / "isa/__init__.pyi").read_text(encoding="utf-8"))
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    del functions["provide"]
    assert sorted(functions) == dir(instructions) == sorted(_exports("isa/__init__.pyi"))
    for name, node in functions.items():
        args = node.args
        more = [args.vararg] if args.vararg else []
        written = [a.arg for a in (*args.posonlyargs, *args.args, *more, *args.kwonlyargs)]
        assert list(inspect.signature(getattr(isa, name)).parameters) == written, name


def test_a_star_import_leaks_nothing_and_hides_no_builtin():
    names: dict[str, object] = {}
    exec("from pto import *", names)
    del names["__builtins__"]
    assert sorted(names) == pto.__all__  # pyright: ignore
    assert not names.keys() & vars(builtins).keys()
    results = "Findings Verdict Timing Report Proofs Exported Tuning"
    assert {*results.split()} <= names.keys()
    leaked = {n for n in dir(pto) if not n.startswith("__")} - known()
    assert not leaked, leaked


def test_few_types_are_unknown():
    """Any switches the type checker off: the number of its uses in lang may only fall."""
    files = [*(PACKAGE / "lang").rglob("*.py"), *(PACKAGE / "lang").rglob("*.pyi")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    uses = sum(len(re.findall(r"\bAny\b", line)) for line in lines if "import" not in line)
    assert uses < 125
