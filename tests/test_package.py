"""The wheel and the source archive: complete metadata, and an installation that runs by itself."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
_BUILD = "import sys, hatchling.build as b; print(b.build_{}(sys.argv[1]))"


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def run(self, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        bare = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PTO_ENGINE")}
        return subprocess.run(
            [self.python, *words], cwd=cwd, env=bare, capture_output=True, text=True, check=False
        )

    def install(
        self, *words: str | Path, into: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run pip here; `into` is the Python of another environment."""
        quiet = ("--quiet", "--disable-pip-version-check", *words)
        return self.run(
            "-m", "pip", "--python", into or self.python, "install", *quiet, cwd=self.folder
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def builder(folder: Path) -> Environment:
    """An environment with the build backend, from the package index that pip has."""
    made = Environment(folder / "builder")
    venv.create(made.folder, with_pip=True)
    done = made.install("hatchling>=1.24")
    if done.returncode:
        pytest.skip(f"pip cannot install hatchling: {done.stderr.strip()[-200:]}")
    return made


def build(builder: Environment, kind: str, source: Path, to: Path) -> Path:
    done = builder.run("-c", _BUILD.format(kind), to, cwd=source)
    assert done.returncode == 0, done.stderr
    return to / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(builder: Environment, folder: Path) -> Path:
    return build(builder, "wheel", ROOT, folder)


@pytest.fixture(scope="module")
def unpacked(builder: Environment, folder: Path) -> Path:
    """The source archive, unpacked."""
    made = build(builder, "sdist", ROOT, folder)
    with tarfile.open(made) as archive:
        archive.extractall(folder / "source", filter="data")
    return next((folder / "source").iterdir())


@pytest.fixture(scope="module")
def installed(builder: Environment, wheel: Path, folder: Path) -> Environment:
    """A clean environment with the wheel; only its dependencies come from the one of the tests."""
    made = Environment(folder / "clean")
    venv.create(made.folder)
    done = builder.install("--no-deps", "--no-index", wheel, into=made.python)
    assert done.returncode == 0, done.stderr
    where = made.run("-c", "import site; print(site.getsitepackages()[-1])", cwd=folder)
    dependencies = {str(Path(p)) for p in sys.path if p.endswith("site-packages")}
    link = Path(where.stdout.strip()) / "dependencies_of_tests.pth"
    link.write_text("\n".join(sorted(dependencies)) + "\n", "utf-8")
    return made


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "pto"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout: the list of files is unknown")
    kept = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert {name for name in names(wheel) if ".dist-info/" not in name} == kept


def test_the_source_archive_builds_the_same_wheel(
    builder: Environment, unpacked: Path, wheel: Path, tmp_path: Path
) -> None:
    assert names(build(builder, "wheel", unpacked, tmp_path)) == names(wheel)
    kept = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "Makefile")
    assert [name for name in kept if not (unpacked / name).exists()] == []


def test_the_wheel_runs_in_a_clean_environment(installed: Environment, tmp_path: Path) -> None:
    where = installed.run("-c", "import pto; print(pto.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(installed.folder), where.stderr
    (tmp_path / "add.pto").write_bytes((ROOT / "examples" / "add.pto").read_bytes())
    arrays = [f"--arg={n}=ones:40x64xf32" for n in "ab"] + ["--arg=c=zeros:40x64xf32"]
    ran = installed.run(
        "-m", "pto", "run", "add.pto", "--blocks=3", *arrays, "--arg=rows=40", cwd=tmp_path
    )
    assert "2,560 of 2,560 elements changed, now 2.0 to 2.0" in ran.stdout, ran.stdout + ran.stderr
    for words in (["explain", "PTO-M001"], ["isa", "tadd"], ["--version"]):  # data files
        assert installed.run("-m", "pto", *words, cwd=tmp_path).returncode == 0
    script = installed.python.with_name("pto")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert PROJECT["version"] in done.stdout


def test_metadata_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (file,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        about = email.message_from_string(archive.read(file).decode())
    assert about["Version"] == PROJECT["version"]
    assert about["License-Expression"] == "Apache-2.0"
    assert about.get_payload() == (ROOT / "README.md").read_text("utf-8")
    classifiers = about.get_all("Classifier", [])
    systems = [c.rsplit(" :: ", 1)[1] for c in classifiers if c.startswith("Operating System")]
    readme = (ROOT / "README.md").read_text("utf-8")
    platforms = re.search(r"^Platforms: (.*?) with Python", readme, re.MULTILINE)
    assert platforms and sorted(systems) == ["Linux", "MacOS", "Windows"]
    assert [s for s in systems if s.lower() not in platforms[1].lower()] == []
    assert about.get_all("Project-URL") and about["Keywords"] and about["Author"]


def test_versions_of_python_and_of_the_citation_agree() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    versions = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d", c)]
    assert versions[0] == oldest
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
