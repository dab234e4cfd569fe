"""Python kernels in an editor: the language server, used by a real client. Files are executed on
opening and saving, if that is allowed, and not otherwise."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pto.lsp.actions import fixes
from pto.lsp.examine import reports
from pto.lsp.python import Examined, PythonFile, examined

pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
pytest_lsp = pytest.importorskip("pytest_lsp", reason="pytest-lsp is not installed")

from lsprotocol import types as lsp  # noqa: E402
from pygls.workspace import Workspace  # noqa: E402
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities  # noqa: E402

from pto.lsp.places import Places  # noqa: E402
from pto.lsp.server import start  # noqa: E402

LONGEST = 60  # seconds that a server may be silent
TEXT = '''\
import numpy as np
import pto
from pto import isa
from pathlib import Path

Path(__file__).with_suffix(".ran").touch()
F32 = pto.Global[pto.f32]


@pto.kernel(profile="a2a3")
def racy(x: F32, y: F32):
    """Größer: the store does not wait.

    >>> shape = (16, 64)
    >>> racy[1](np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    """
    t = pto.tile(16, 64, pto.f32, address=0x400)
    isa.tload(t, x[:16, :64])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)
    isa.texp(t, t)
    isa.tstore(y[:16, :64], t)


@pto.kernel(profile="a2a3")
def ends(x: pto.Global[pto.f32, "n"], y: pto.Global[pto.f32, "n"]):
    t = pto.load(x, 1024)
    u = pto.exq(t)
    pto.store(y, u)


@pto.kernel(profile="a2a3")
def sized(x: pto.Global[pto.f32, 10, 64], y: pto.Global[pto.f32, 10, 64]):
    t = pto.load(x, 16, 64)
    pto.store(y, t + 1.0)


@pto.kernel
def unknown(x: F32):
    pto.store(x, pto.load(x, 8, 8))
'''


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Examined]:
    file = tmp_path_factory.mktemp("examined") / "k.py"
    return file, here(file, TEXT)


def here(file: Path, text: str) -> Examined:
    """What is found in a text, in this process."""
    file.write_text(text, "utf-8")
    found = Examined(text)
    for part in reports(file, None, None):
        found.add(json.loads(json.dumps(part)))
    return found


def line_of(words: str) -> int:
    return TEXT[: TEXT.index(words)].count("\n") + 1


def test_what_is_found_and_where(known: tuple[Path, Examined]):
    found = {(d.code, d.loc.line) for d in known[1].findings if d.loc}
    assert found == {("PTO-R001", line_of("isa.tstore(y")), ("PTO-U081", line_of("pto.exq"))}
    remarks = {each.loc.line: each.message for each in known[1].remarks}
    assert "unknown is not checked" in remarks[line_of("def unknown")]
    assert "waited" in remarks[line_of("isa.texp")]


def test_lines_become_instructions_with_cost_and_address(known: tuple[Path, Examined]):
    (row,) = known[1].lines[line_of("isa.texp")]
    assert (
        row["op"] == "pto.texp"
        and row["pipe"] == "V"
        and "%t 16x64xf32 at UB 0x400" in row["tiles"]
    )
    assert " us, " in row["cost"]
    tile = known[1].tiles[line_of("t = pto.load(x, 16, 64)")]
    assert tile == ("16x64xf32, valid 10x64", "vec 16x64xf32 ND at UB 0x0")
    assert known[1].tiles[line_of("t = pto.tile")][0] == "16x64xf32"
    heads = {each["line"]: each["text"] for each in known[1].heads}
    assert set(heads) == {line_of("def racy"), line_of("def sized")}
    assert all(" us on 910b1, bound by " in each for each in heads.values())


def document(known: tuple[Path, Examined], text: str = TEXT) -> PythonFile:
    kernels = PythonFile(str(known[0]), allowed=True)
    kernels.learn(known[1])
    kernels.update(text)
    return kernels


def mended(known: tuple[Path, Examined], text: str, code: str) -> str:
    kernels, places = document(known, text), Places(text)
    (finding,) = [d for d in kernels.findings if d.code == code]
    (edit,) = fixes(finding, text, places.span(finding.loc))
    for span, new in sorted(edit.changes)[::-1]:
        text = text[: span.start] + new + text[span.end :]
    return text


def test_quick_fixes_mend_the_kernel(known: tuple[Path, Examined], tmp_path: Path):
    text = mended(known, TEXT, "PTO-U081")
    assert "u = pto.exp(t)" in text
    text = mended(known, text, "PTO-R001")
    assert (
        '    pto.isa.set_flag("V", "MTE3", 0)\n    pto.isa.wait_flag("V", "MTE3", 0)\n    isa.tst'
        in text
    )
    assert here(tmp_path / "k.py", text).findings == []


def test_what_is_known_moves_with_its_lines(known: tuple[Path, Examined]):
    text = "# one more line\n" + TEXT.replace("isa.texp(t, t)", "isa.tlog(t, t)")
    kernels = document(known, text)
    assert {d.loc.line for d in kernels.findings if d.loc} == {
        line_of("isa.tstore(y") + 1,
        line_of("pto.exq") + 1,
    }
    assert "pto.tload" in str(kernels.hover(text.index("tload(t")))
    assert "| instruction" not in str(kernels.hover(text.index("tlog(t")))  # not examined yet
    hints = {text for _, _, text, _ in kernels.hints()}
    assert ": 16x64xf32, valid 10x64" in hints


def test_regions_that_only_a_run_knows(tmp_path: Path):
    """With an example by their bounds, else as a formula."""
    text = (
        "import pto\n"
        "@pto.kernel\n"
        'def ends(x: pto.Global[pto.f32, "m", 64]):\n'
        "{}"
        "    t = pto.load(x[pto.block_idx() * 16 :], 16, 64)\n"
        "    pto.store(x[pto.block_idx() * 16 :], t + 1.0)\n"
    )
    file = tmp_path / "k.py"
    (shown,) = {each for each, _ in here(file, text.format("")).tiles.values()}
    assert shown == "16x64xf32, valid min(16, max(-16*block + m, 0)) x 64"
    example = '    """\n    >>> ends[7].time((100, 64))\n    """\n'
    (shown,) = {each for each, _ in here(file, text.format(example)).tiles.values()}
    assert shown == "16x64xf32, valid 4..16 x 64"  # 100 - 6 * 16 rows in the last block


def test_words_lead_to_rows_and_functions():
    text = (
        "import pto as p\nfrom pto import isa, load as get\nfrom pto.isa import tsub\n\n"
        "isa.tadd, get, other.tadd, p.exp, p.none, p.isa.tmul, tsub, p.tdiv\n"
    )
    kernels = PythonFile("k.py", allowed=False)
    kernels.update(text)

    def home(word: str) -> tuple[str, int, str] | None:
        found = kernels.definition(text.index(word, 64) + len(word) - 1)
        if found is None:
            return None
        line = Path(found[0]).read_text("utf-8").splitlines()[found[1] - 1]
        return Path(found[0]).name, found[1], line

    file, _, line = home("isa.tadd") or ("", 0, "")
    assert file == "elementwise.py" and '"tadd"' in line
    assert (home("get") or ("",))[0] == "memory.py" and "def load(" in (home("get") or ("",) * 3)[2]
    assert "def exp(" in (home("p.exp") or ("",) * 3)[2]
    assert (
        '"tmul"' in (home("p.isa.tmul") or ("",) * 3)[2]
        and '"tsub"' in (home("tsub") or ("",) * 3)[2]
    )
    assert home("other.tadd") is None and home("p.none") is None and home("p.tdiv") is None


def test_a_file_that_does_not_end_or_is_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from pto.core.confined import ProcessLimits

    file = tmp_path / "k.py"
    file.write_text("while True:\n    pass\n")
    with monkeypatch.context() as patched:
        patched.setattr("pto.lsp.python.LIMITS", ProcessLimits(seconds=1.0, megabytes=8192))
        (told,) = examined(str(file), {}, []).remarks
    assert "not checked to the end: ended: it took longer than 1 s" in told.message
    (found,) = here(file, "def f(:\n").findings
    assert found.code == "PTO-U281" and found.loc and found.loc.line == 1


def test_only_a_kernel_and_only_with_permission_is_executed(monkeypatch: pytest.MonkeyPatch):
    ran: list[str] = []

    def recorded(file: str, *_: object) -> Examined:
        ran.append(file)
        return Examined()

    monkeypatch.setattr("pto.lsp.server.examined", recorded)
    for text, allowed, wanted in [(TEXT, False, 0), ("import pto\n", True, 0), (TEXT, True, 1)]:
        server = start(python=allowed)
        server.protocol._workspace = Workspace(None)
        item = lsp.TextDocumentItem("file:///k.py", "python", 1, text)
        server.workspace.put_text_document(item)
        monkeypatch.setattr(server, "publish", lambda of: None)
        capabilities = lsp.ClientCapabilities()
        server.protocol.client_capabilities = capabilities
        ran.clear()
        asyncio.run(server.examine(lsp.TextDocumentIdentifier(item.uri)))
        assert ran == ["/k.py"] * wanted


# ---- by a client


async def started(client: LanguageClient, folder: Path, **options: object) -> None:
    capabilities = client_capabilities("visual-studio-code")
    root = lsp.InitializeParams(
        capabilities=capabilities,
        initialization_options=options,
        workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), "work")],
    )
    await client.initialize_session(root)


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "pto.cli.main", "lsp"])
)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    yield
    await lsp_client.shutdown_session()


async def published(client: LanguageClient) -> None:
    await asyncio.wait_for(
        client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), LONGEST
    )


@pytest.mark.asyncio
async def test_without_permission_nothing_is_executed(client: LanguageClient, tmp_path: Path):
    await started(client, tmp_path)
    file = tmp_path / "k.py"
    file.write_text(TEXT, "utf-8")
    uri = file.as_uri()
    item = lsp.TextDocumentItem(uri, "python", 1, TEXT)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    await published(client)
    (told,) = client.diagnostics[uri]
    assert "not checked: that executes this file" in told.message
    assert told.severity == lsp.DiagnosticSeverity.Information
    of = lsp.TextDocumentIdentifier(uri)
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(of))
    place = lsp.Position(line_of("isa.texp") - 1, 10)
    page = await client.text_document_hover_async(lsp.HoverParams(of, place))
    assert "pto.texp" in page.contents.value and "cost a2a3" in page.contents.value
    home = await client.text_document_definition_async(lsp.DefinitionParams(of, place))
    assert home.uri.endswith("pto/isa/tile/elementwise.py")
    assert [each.name for each in tmp_path.iterdir()] == ["k.py"]  # what it does when executed


@pytest.mark.asyncio
async def test_with_permission_a_save_is_examined(client: LanguageClient, tmp_path: Path):
    await started(client, tmp_path, python=True)
    file = tmp_path / "k.py"
    file.write_text(TEXT, "utf-8")
    uri, of = file.as_uri(), lsp.TextDocumentIdentifier(file.as_uri())
    item = lsp.TextDocumentItem(uri, "python", 1, TEXT)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    while not client.diagnostics.get(uri):
        await published(client)
    codes = {d.code: d for d in client.diagnostics[uri]}
    assert {"PTO-R001", "PTO-U081"} <= set(codes)
    assert {each.name for each in tmp_path.iterdir()} == {"k.py", "k.ran"}
    place = codes["PTO-U081"].range
    assert (place.start.line, place.start.character) == (line_of("pto.exq") - 1, 8)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(60, 0))
    context = lsp.CodeActionContext([codes["PTO-U081"]])
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(of, whole, context))
    titles = {each.title for each in actions or []}
    assert "write exp" in titles and any("set_flag(V, MTE3, 0)" in each for each in titles)
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(of, whole))
    labels = {each.position.line + 1: each.label for each in hints or []}
    assert labels[line_of("t = pto.load(x, 16, 64)")] == ": 16x64xf32, valid 10x64"
    page = await client.text_document_hover_async(
        lsp.HoverParams(of, lsp.Position(line_of("isa.texp") - 1, 10))
    )
    assert "at UB 0x400" in page.contents.value and "| V |" in page.contents.value
