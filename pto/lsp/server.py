"""The language server: `pto lsp` on standard input and output, by pygls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from pto import __version__
from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.comments import formatted
from pto.lsp import features
from pto.lsp.actions import Edit, fixes
from pto.lsp.document import Document
from pto.lsp.features import Item, Span
from pto.lsp.places import Places

PAUSE = 0.1  # seconds without a change before the text is read again
_KINDS = {
    "instruction": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.Class,
    "attribute": lsp.CompletionItemKind.Property,
    "word": lsp.CompletionItemKind.EnumMember,
    "function": lsp.CompletionItemKind.Module,
}
_LEGEND = lsp.SemanticTokensLegend([*features.TOKEN_TYPES], ["definition"])
_SEVERITY = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}


@dataclass
class Open:
    """A document as the editor has it, read, with its lines."""

    uri: str
    text: str
    document: Document
    places: Places

    def offset(self, at: lsp.Position) -> int:
        return self.places.offset(at.line, at.character)

    def range(self, span: Span) -> lsp.Range:
        ends = (self.places.position(each) for each in span)
        return lsp.Range(*(lsp.Position(*each) for each in ends))

    def location(self, span: Span) -> lsp.Location:
        return lsp.Location(self.uri, self.range(span))

    def edit(self, spans: Iterable[Span], text: str) -> lsp.WorkspaceEdit:
        return lsp.WorkspaceEdit({self.uri: [lsp.TextEdit(self.range(s), text) for s in spans]})

    def diagnostic(self, found: Diagnostic) -> lsp.Diagnostic:
        help = f"\nhelp: {found.help}" if found.help else ""
        notes = [
            lsp.DiagnosticRelatedInformation(self.location(self.places.span(n.loc)), n.message)
            for n in found.notes
            if n.loc
        ]
        return lsp.Diagnostic(
            self.range(self.places.span(found.loc)),
            found.message + help,
            severity=_SEVERITY[found.severity],
            code=found.code,
            source="pto",
            related_information=notes,
        )


class Server(LanguageServer):
    """Open documents, each as it was last read."""

    def __init__(self, profile: str | None = None, device: str | None = None) -> None:
        super().__init__("pto", __version__)
        self.options = {"profile": profile, "device": device}
        self.opened: dict[str, Open] = {}
        self.is_shut_down = False  # the client has asked for it

    def open(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> Open:
        """A document as the editor has it now: read again if it has changed."""
        text = self.text_of(of.uri)
        known = self.opened.get(of.uri)
        if known is None or known.text != text:
            document = Document(to_fs_path(of.uri) or of.uri, **self.options)
            document = known.document if known else document
            document.update(text)
            places = Places(text, _encoding(self))
            known = self.opened[of.uri] = Open(of.uri, text, document, places)
        return known

    def text_of(self, uri: str) -> str:
        return self.workspace.get_text_document(uri).source

    def version_of(self, uri: str) -> int | None:
        return self.workspace.get_text_document(uri).version

    def publish(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> None:
        known = self.open(of)
        shown = [known.diagnostic(each) for each in known.document.findings]
        version = self.version_of(of.uri)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(of.uri, shown, version=version)
        )


def _encoding(server: Server) -> str:
    found = server.workspace.position_encoding
    return found.value if isinstance(found, lsp.PositionEncodingKind) else str(found or "utf-16")


def start(profile: str | None = None, device: str | None = None) -> Server:
    """A server with every feature; `start().start_io()` serves."""
    server = Server(profile, device)

    @server.feature(lsp.SHUTDOWN)
    def shut_down(*_: object) -> None:  # pyright: ignore[reportUnusedFunction]
        server.is_shut_down = True

    _documents(server)
    _questions(server)
    _changes(server)
    return server


def _documents(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        for name in server.options:
            value = getattr(given, name, None) or (
                given.get(name) if isinstance(given, dict) else None
            )
            server.options[name] = value or server.options[name]

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(lsp.TextDocumentIdentifier(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        await asyncio.sleep(PAUSE)
        of = params.text_document
        if of.uri in server.opened and server.version_of(of.uri) == of.version:
            server.publish(of)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.opened.pop(params.text_document.uri, None)


def _questions(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        known = server.open(params.text_document)
        found = features.hover(known.document, known.offset(params.position))
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown)
        return lsp.Hover(content, known.range(found.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "%", "!", "#", "@", "<"]),
    )
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        known = server.open(params.text_document)
        offset = known.offset(params.position)
        found = features.completions(known.document, offset)
        spot = known.range(features.word_before(known.text, offset))
        return lsp.CompletionList(False, [_item(each, spot) for each in found])

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        known = server.open(params.text_document)
        home, _ = features.occurrences(known.document, known.offset(params.position))
        return None if home is None else known.location(home)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        known = server.open(params.text_document)
        home, spans = features.occurrences(known.document, known.offset(params.position))
        wanted = params.context.include_declaration
        return [known.location(span) for span in spans if wanted or span != home]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        known = server.open(params.text_document)
        kind = lsp.SymbolKind.Function
        return [
            lsp.DocumentSymbol(name, kind, known.range(whole), known.range(spot))
            for name, whole, spot in features.functions(known.text)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _LEGEND)
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        known = server.open(params.text_document)
        return _tokens(known, Span(0, len(known.text)))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _LEGEND)
    def some_tokens(params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        known = server.open(params.text_document)
        return _tokens(known, Span(*map(known.offset, (params.range.start, params.range.end))))


def _changes(server: Server) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        known = server.open(params.text_document)
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        here = [d for d in known.document.findings if d.loc and d.loc.line in lines]
        return [_action(known, each, edit, params.context) for each, edit in _fixes(known, here)]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        known = server.open(params.text_document)
        offset, name = known.offset(params.position), params.new_name.removeprefix("%")
        spans, reason = features.renamed(known.document, offset, name)
        if reason:
            raise JsonRpcInvalidParams(reason)
        return known.edit(spans, name)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def format(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        known = server.open(params.text_document)
        try:
            made = formatted(known.text)
        except PtoError:  # not well formed; the findings say so
            return []
        whole = known.range(Span(0, len(known.text)))
        return [] if made == known.text else [lsp.TextEdit(whole, made)]


def _fixes(known: Open, found: Iterable[Diagnostic]) -> Iterable[tuple[Diagnostic, Edit]]:
    for each in found:
        for edit in fixes(each, known.text, known.places.span(each.loc)):
            yield each, edit


def _action(
    known: Open, found: Diagnostic, edit: Edit, context: lsp.CodeActionContext
) -> lsp.CodeAction:
    answered = [d for d in context.diagnostics if d.code == found.code]
    change = known.edit([edit.span], edit.text)
    kind = lsp.CodeActionKind.QuickFix
    return lsp.CodeAction(edit.title, kind, diagnostics=answered, edit=change)


def _item(item: Item, spot: lsp.Range) -> lsp.CompletionItem:
    about = f"```pto\n{item.documentation}\n```" if item.documentation else ""
    return lsp.CompletionItem(
        item.label,
        kind=_KINDS[item.kind],
        detail=item.detail or None,
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, about) if about else None,
        text_edit=lsp.TextEdit(spot, item.label),
    )


def _tokens(known: Open, span: Span) -> lsp.SemanticTokens:
    """Five numbers a word: lines and columns from the word before, length, kind, modifiers."""
    numbers: list[int] = []
    line = column = 0
    for spot, kind, defines in features.tokens(known.document, *span):
        (row, start), (last, end) = map(known.places.position, spot)
        if row == last:
            moved = row - line
            numbers += (moved, start if moved else start - column, end - start, kind, int(defines))
            line, column = row, start
    return lsp.SemanticTokens(numbers)
