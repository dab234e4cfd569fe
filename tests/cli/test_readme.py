"""What the README shows is what the commands print."""

import re
import shlex
from pathlib import Path

import pytest

from pto.cli.main import main

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"```console\n\$ pto (.*?)\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_the_readme_has_examples():
    assert EXAMPLES


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_an_example_prints_what_the_readme_shows(command: str, shown: str, capsys, monkeypatch):
    monkeypatch.chdir(README.parent)
    main(shlex.split(command))
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown


def test_the_kernel_is_the_file_that_the_examples_run():
    (shown,) = re.findall(r"```mlir\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert shown == (README.parent / "examples/add.pto").read_text("utf-8")


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text("utf-8"))
    assert links
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (README.parent / link).exists()] == []
