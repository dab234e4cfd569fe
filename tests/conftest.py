"""Settings of the whole test run."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, settings

from pto.core.disk_cache import users_root
from pto.run.jit.llvm.native import Target
from tests import agreement
from tests.sampling import sampled, with_new_values

# pytest rewrites the assertions of a package with a plugin. Ours has few, and 840 files.
for _hook in sys.meta_path:
    getattr(_hook, "_must_rewrite", set[str]()).discard("pto")

# A loaded machine is not a bug: no deadlines; and the same examples on every run.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

_COUNTED = {
    Path(__file__).parent / name
    for name in ("known", "test_agreement.py", "test_agreement_programs.py")
}  # their programs fall back to the host only where `fallbacks.py` says so
_OWN = {
    Path(__file__).parent / name for name in ("run/jit", "cluster", "test_random_programs.py")
}  # they compare themselves


def pytest_addoption(parser: pytest.Parser) -> None:
    told = {"action": "store_const", "dest": "agree"}
    every = "every program also runs compiled, with the same bytes, and all products of parameters"
    parser.addoption(
        "--agree", const="all", default="sample", help=f"{every}; else a sample", **told
    )
    parser.addoption("--quick", action="store_true", help="only the files of QUICK in conftest.py")
    parser.addoption("--no-agree", const="off", help="no program runs on both engines", **told)


def pytest_configure(config: pytest.Config) -> None:
    agreement.STATE.mode = str(config.getoption("agree"))
    # thousands of small programs: compiling each would take longer than all they do. What compiled
    # code does is compared with the reference in tests/run/jit, and for a sample of all programs.
    os.environ.setdefault("PTO_ENGINE", "reference")
    # compiled code of tests is kept beside the results of the last run
    if (own := users_root()) is not None:  # builds of C++ take long: all checkouts share them
        os.environ.setdefault("PTO_CXX_CACHE", str(own / "cxx"))
    os.environ.setdefault("PTO_CACHE_DIR", str(config.rootpath / ".pytest_cache" / "jit"))
    if agreement.STATE.mode != "off":
        agreement.install()
    gc.disable()  # 16,000 tests are made and kept, and the first process keeps their reports
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        _rewrite(sorted(Path(__file__).parent.rglob("*.py"))[int(worker[2:]) :: count], config)


def _rewrite(paths: list[Path], config: pytest.Config) -> None:
    """Rewrite the assertions of some files: each process does its share and reads the others'."""
    for path in paths:
        folder = rewrite.get_cache_dir(path)
        kept = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if not sys.dont_write_bytecode and rewrite._read_pyc(path, kept) is None:
            folder.mkdir(exist_ok=True)
            found, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, found, kept)


# The smoke tier, for work in progress: folders and files that together take seconds and touch every
# layer. `make quick` runs it.
QUICK = (
    *("test_layers.py", "test_programs.py", "test_coverage.py", "test_explain.py"),
    *("core/test_layout.py", "core/test_tile.py", "core/test_dtypes.py", "ir/test_text.py"),
    *("verify", "target", "plan/test_memory.py", "plan/test_room.py", "plan/test_sync.py"),
    *("known/test_elementwise.py", "known/test_move.py", "known/test_load.py", "known/test_mad.py"),
    *("known/test_vector_load.py", "known/test_dma.py", "known/test_sync.py"),
    *("test_agreement_programs.py", "run/jit/test_threads.py", "run/jit/test_flags.py"),
    *("run/test_host.py", "run/test_agents.py", "run/test_errors.py"),
    *("observe/test_sanitize.py", "observe/test_programs.py", "observe/test_streams.py"),
    *("lang/test_kernel.py", "lang/test_mistakes.py", "lang/test_rows.py"),
    *("cli/test_main.py", "cli/test_explain.py"),
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("quick") or collection_path.is_dir():
        return None
    chosen = {Path(__file__).parent / name for name in QUICK}
    return None if chosen & {collection_path, *collection_path.parents} else True


# Files that take longest go first, so that no process has one left when the others are done; those
# that wait for others before all, while types are judged. xdist is told to keep the order.
_LONGEST = (
    *("cluster/test_ray.py", "gym/test_pool.py", "run/test_limit.py"),
    "cxx/test_exported_examples.py",
    *("cxx/test_kernel.py", "examples/test_examples.py", "run/jit/test_rearrange.py"),
    *("lang/test_expressions.py", "test_agreement.py", "run/jit/test_tiles.py"),
    *("run/jit/test_moves.py", "run/jit/test_cube_moves.py", "observe/timing/test_published.py"),
    *("run/jit/test_push_scales.py", "test_agreement_programs.py", "examples/test_gallery.py"),
    *("run/jit/test_simt_rows.py", "run/jit/test_quant.py", "run/jit/test_levels.py"),
    *("cxx/test_library.py", "cxx/test_export.py", "gym/test_models.py", "known/test_halves.py"),
    *("examples/test_decoder.py", "run/jit/test_fixpipes.py", "gym/test_mutate.py"),
    *("gym/test_runner.py", "run/jit/test_products.py", "cli/test_surroundings.py"),
    *("known/test_matmul.py", "cxx/test_st.py", "observe/test_mutation.py", "gym/test_scripts.py"),
    *("graphs/test_device.py", "cxx/test_headers.py", "cxx/test_folder.py", "test_package.py"),
    *("observe/test_faults.py", "lang/test_model_kernels.py", "test_names.py", "test_switches.py"),
    *("mcp/test_server.py", "test_docs.py", "test_docs_tables.py", "test_explain.py"),
)


# Tests that compile a program for each combination of their parameters, or take long for each.
_PRODUCTS = {
    Path(__file__).parent / name
    for name in (
        *("run/jit", "known/test_halves.py"),
        *("lang/test_expressions.py", "cxx/test_exported_examples.py"),
    )
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    home = Path(__file__).parent
    if config.getoption("agree") != "all" and not any("[" in arg for arg in config.args):
        large = [item for item in items if _PRODUCTS & {item.path, *item.path.parents}]
        dropped = {id(item) for item in large} - {id(item) for item in sampled(large)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
        items[:] = [item for item in items if id(item) not in dropped]
    if config.getoption("agree") != "all":
        optimised = {id(item) for item in with_new_values(items)}
        for item in items:
            item.stash[_OPTIMISED] = id(item) in optimised
    places = {home / name: n for n, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(_LONGEST)))


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # thousands of tests stay until the end: nobody need ask whether they are garbage
    if session.items:  # this process runs tests
        gc.enable()
        gc.set_threshold(50_000, 20, 20)


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest asks that of everything, five times


_OPTIMISED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def _optimised(request: pytest.FixtureRequest) -> Iterator[None]:
    """LLVM optimises the compiled code of a test, as for users, unless every value of its
    parameters occurred in an earlier test of its function. With `--agree` it optimises all.

    Unoptimised code compiles in half the time. Emitted text is the same.
    """
    Target.optimises = request.node.stash.get(_OPTIMISED, True)
    yield
    Target.optimises = True


@pytest.fixture(scope="module", autouse=True)
def _agreement(request: pytest.FixtureRequest) -> None:
    agreement.STATE.here = not _OWN & {request.path, *request.path.parents}
    agreement.STATE.counts = bool(_COUNTED & {request.path, *request.path.parents})
    agreement.STATE.seen = set()
