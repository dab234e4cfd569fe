"""The language server, asked by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
pytest_lsp = pytest.importorskip("pytest_lsp", reason="pytest-lsp is not installed")

from lsprotocol import types as lsp  # noqa: E402
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities  # noqa: E402

ROOT = Path(__file__).parents[2]
URI = "file:///work/k.pto"
TEXT = """\
module attributes {pto.target_arch = "a5"} {
  // größer 𝛼: columns count in UTF-16
  func.func @f(%x: !pto.ptr<f32>) {
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    %u = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    pto.tad ins(%t, %t : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 16x64xf32>) outs(%u : !pto.tile_buf<vec, 16x64xf32>)
    pto.texp ins(%u : !pto.tile_buf<vec, 16x64xf16>) outs(%u : !pto.tile_buf<vec, 16x64xf32>)
    return
  }
}
"""  # noqa: E501
GOOD = TEXT.replace("pto.tad ", "pto.tadd ").replace("16x64xf16", "16x64xf32")
LONGEST = 60  # seconds that a server may be silent
OF = lsp.TextDocumentIdentifier(URI)


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "pto.cli.main", "lsp"])
)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    root = lsp.InitializeParams(capabilities=client_capabilities("visual-studio-code"))
    await lsp_client.initialize_session(root)
    yield
    await lsp_client.shutdown_session()


async def opened(client: LanguageClient, text: str) -> list[lsp.Diagnostic]:
    item = lsp.TextDocumentItem(URI, "pto", 1, text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    await asyncio.wait_for(
        client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), LONGEST
    )
    return list(client.diagnostics[URI])


async def changed(client: LanguageClient, version: int, change: object) -> list[lsp.Diagnostic]:
    of = lsp.VersionedTextDocumentIdentifier(version, URI)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(of, [change]))
    await asyncio.wait_for(
        client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), LONGEST
    )
    return list(client.diagnostics[URI])


def place(text: str, word: str, into: int = 1) -> lsp.Position:
    """Of a word's first occurrence, `into` it."""
    before = text[: text.index(word) + into]
    return lsp.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    starts = [0, *(n + 1 for n, ch in enumerate(text) if ch == "\n")]
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character))[::-1]:
        low, high = (starts[p.line] + p.character for p in (edit.range.start, edit.range.end))
        text = text[:low] + edit.new_text + text[high:]
    return text


@pytest.mark.asyncio
async def test_findings_as_you_type_and_their_fixes(client: LanguageClient) -> None:
    found = await opened(client, TEXT)
    assert {(d.code, d.range.start.line) for d in found} == {("PTO-P021", 5), ("PTO-T040", 6)}
    assert all(d.source == "pto" for d in found)
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(20, 0))
    params = lsp.CodeActionParams(OF, whole, lsp.CodeActionContext(found))
    actions = await client.text_document_code_action_async(params)
    edits = {a.title: a.edit.changes[URI] for a in actions or []}
    assert "write pto.tadd" in edits
    (typed,) = [title for title in edits if title.startswith("write its type")]
    mended = applied(TEXT, [*edits["write pto.tadd"], *edits[typed]])
    assert mended == GOOD
    assert await changed(client, 2, lsp.TextDocumentContentChangeWholeDocument(mended)) == []
    spot = lsp.Range(place(GOOD, "pto.texp", 4), place(GOOD, "pto.texp", 8))
    change = lsp.TextDocumentContentChangePartial(range=spot, text="tlog2")
    assert [d.code for d in await changed(client, 3, change)] == ["PTO-P021"]


@pytest.mark.asyncio
async def test_pages_definitions_and_names(client: LanguageClient) -> None:
    await opened(client, GOOD)
    page = await client.text_document_hover_async(lsp.HoverParams(OF, place(GOOD, "tadd")))
    assert "pto.tadd" in page.contents.value and "cost a2a3" in page.contents.value
    told = await client.text_document_hover_async(lsp.HoverParams(OF, place(GOOD, "%u :")))
    assert "%u : !pto.tile_buf<vec, 16x64xf32>" in told.contents.value

    home = await client.text_document_definition_async(
        lsp.DefinitionParams(OF, place(GOOD, "%u :"))
    )
    assert home.range.start == place(GOOD, "%u = ", 0)
    context = lsp.ReferenceContext(include_declaration=True)
    places = await client.text_document_references_async(
        lsp.ReferenceParams(context, OF, place(GOOD, "%u = "))
    )
    assert len(places) == 4
    change = await client.text_document_rename_async(
        lsp.RenameParams(OF, place(GOOD, "%u = "), "%sum")
    )
    assert applied(GOOD, change.changes[URI]) == GOOD.replace("%u", "%sum")
    with pytest.raises(Exception, match="%t is defined already"):
        await client.text_document_rename_async(lsp.RenameParams(OF, place(GOOD, "%u = "), "t"))
    outline = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(OF))
    assert [each.name for each in outline] == ["@f"]


@pytest.mark.asyncio
async def test_completion_by_position(client: LanguageClient) -> None:
    async def labels(line: str) -> list[str]:
        text = GOOD.replace("    return", f"    {line}\n    return")
        await changed(client, 9, lsp.TextDocumentContentChangeWholeDocument(text))
        params = lsp.CompletionParams(OF, place(text, f"    {line}\n", 4 + len(line)))
        found = await client.text_document_completion_async(params)
        return [item.label for item in found.items]

    await opened(client, GOOD)
    assert {"pto.tadd", "pto.vadd", "arith.addi"} <= set(await labels("pto.ta"))
    assert set(await labels("pto.tadd ins(%")) == {"%u", "%t", "%x"}
    assert "PIPE_MTE2" in await labels("pto.barrier #pto.pipe<PIPE_")
    assert "!pto.tile_buf" in await labels("%z = pto.alloc_tile : !pto.")
    assert await labels("func.call @") == ["@f"]
    assert "rmode" in await labels("pto.tcvt ins(%u {")


@pytest.mark.asyncio
async def test_format_and_tokens(client: LanguageClient) -> None:
    await opened(client, GOOD.replace("    return", "       return  // the end"))
    options = lsp.FormattingOptions(2, True)
    edits = await client.text_document_formatting_async(lsp.DocumentFormattingParams(OF, options))
    assert "\n    return  // the end\n" in edits[0].new_text
    assert "  // größer 𝛼: columns count in UTF-16\n" in edits[0].new_text
    found = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(OF))
    assert len(found.data) % 5 == 0 and len(found.data) > 100
    assert list(found.data[:5]) == [0, 0, len("module"), 1, 0]
