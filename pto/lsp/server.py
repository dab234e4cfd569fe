"""The language server: `pto lsp` on standard input and output, with pygls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from pto import __version__
from pto.core.errors import Diagnostic, Loc, PtoError
from pto.ir.text.comments import formatted
from pto.lsp import features
from pto.lsp.actions import QuickFix, fixes
from pto.lsp.document import Document, TextSpan
from pto.lsp.features import Completion
from pto.lsp.places import Places
from pto.lsp.python import Examined, PythonFile, Remark, examined

PAUSE = 0.1  # seconds without a change before the text is parsed again
_KINDS = {
    "instruction": lsp.CompletionItemKind.Function,
    "value": lsp.CompletionItemKind.Variable,
    "type": lsp.CompletionItemKind.Class,
    "attribute": lsp.CompletionItemKind.Property,
    "word": lsp.CompletionItemKind.EnumMember,
    "function": lsp.CompletionItemKind.Module,
}
_LEGEND = lsp.SemanticTokensLegend([*features.TOKEN_TYPES], ["definition"])
_SEVERITY = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "information": lsp.DiagnosticSeverity.Information,
}


@dataclass
class Open:
    """An open document: its current text, parsed, with its lines."""

    uri: str
    text: str
    document: Document | PythonFile
    places: Places

    def offset(self, at: lsp.Position) -> int:
        return self.places.offset(at.line, at.character)

    def range(self, span: TextSpan) -> lsp.Range:
        ends = (self.places.position(each) for each in span)
        return lsp.Range(*(lsp.Position(*each) for each in ends))

    def location(self, span: TextSpan) -> lsp.Location:
        return lsp.Location(self.uri, self.range(span))

    def edit(self, changes: Iterable[tuple[TextSpan, str]]) -> lsp.WorkspaceEdit:
        return lsp.WorkspaceEdit({self.uri: [lsp.TextEdit(self.range(s), t) for s, t in changes]})

    def diagnostic(self, found: Diagnostic) -> lsp.Diagnostic:
        help = f"\nhelp: {found.help}" if found.help else ""
        notes = [
            lsp.DiagnosticRelatedInformation(self.place(n.loc), n.message)
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

    def remark(self, found: Remark) -> lsp.Diagnostic:
        spot, severity = self.range(self.places.span(found.loc)), _SEVERITY[found.severity]
        return lsp.Diagnostic(spot, found.message, severity=severity, source="pto")

    def place(self, loc: Loc) -> lsp.Location:
        """A location in this file, or in another."""
        if loc.file == self.document.file:
            return self.location(self.places.span(loc))
        return elsewhere(loc.file, loc.line, loc.col, loc.end or loc.col)

    @property
    def program(self) -> Document | None:
        """The document, if it is .pto text."""
        return self.document if isinstance(self.document, Document) else None

    @property
    def kernels(self) -> PythonFile | None:
        """The document, if it is Python."""
        return self.document if isinstance(self.document, PythonFile) else None


def elsewhere(file: str, line: int, col: int = 1, end: int = 1) -> lsp.Location:
    """A location in a file that may not be open."""
    ends = (lsp.Position(line - 1, each - 1) for each in (col, end))
    return lsp.Location(from_fs_path(file) or file, lsp.Range(*ends))


class Server(LanguageServer):
    """Open documents, each as last parsed."""

    def __init__(
        self, profile: str | None = None, device: str | None = None, python: bool = False
    ) -> None:
        super().__init__("pto", __version__)
        self.options = {"profile": profile, "device": device}
        self.python = python  # Python files may be executed
        self.opened: dict[str, Open] = {}
        self.examining: dict[str, int] = {}  # number of requests to examine each file
        self.turn = asyncio.Lock()  # one process at a time
        self.is_shut_down = False  # the client requested it

    def open(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> Open:
        """The current document: parsed again if it has changed."""
        text = self.text_of(of.uri)
        known = self.opened.get(of.uri)
        if known is None or known.text != text:
            document = known.document if known else self._new(to_fs_path(of.uri) or of.uri)
            document.update(text)
            places = Places(text, _encoding(self))
            known = self.opened[of.uri] = Open(of.uri, text, document, places)
        return known

    def _new(self, file: str) -> Document | PythonFile:
        return (
            PythonFile(file, self.python)
            if file.endswith(".py")
            else Document(file, **self.options)
        )

    async def examine(self, of: lsp.TextDocumentIdentifier) -> None:
        """Execute a saved Python file, if that is allowed, and publish the findings."""
        kernels = self.open(of).kernels
        if kernels is None or not self.python or not kernels.has_kernels:
            return
        self.examining[of.uri] = number = self.examining.get(of.uri, 0) + 1
        async with self.turn:
            if self.examining.get(of.uri) != number:
                return  # it was saved again, or closed
            roots = [p for f in self.workspace.folders.values() if (p := to_fs_path(f.uri))]
            learned: Examined = await asyncio.to_thread(examined, kernels.file, self.options, roots)
        if of.uri in self.opened:
            kernels.learn(learned)
            self.publish(of)
            about = self.client_capabilities.workspace
            if about and about.inlay_hint and about.inlay_hint.refresh_support:
                await self.workspace_inlay_hint_refresh_async(None)

    def text_of(self, uri: str) -> str:
        return self.workspace.get_text_document(uri).source

    def version_of(self, uri: str) -> int | None:
        return self.workspace.get_text_document(uri).version

    def publish(self, of: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier) -> None:
        known = self.open(of)
        shown = [known.diagnostic(each) for each in known.document.findings]
        shown += [known.remark(each) for each in (known.kernels.remarks if known.kernels else ())]
        version = self.version_of(of.uri)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(of.uri, shown, version=version)
        )


def _encoding(server: Server) -> str:
    found = server.workspace.position_encoding
    return found.value if isinstance(found, lsp.PositionEncodingKind) else str(found or "utf-16")


def start(profile: str | None = None, device: str | None = None, python: bool = False) -> Server:
    """A server with every feature; `start().start_io()` serves."""
    server = Server(profile, device, python)

    @server.feature(lsp.SHUTDOWN)
    def shut_down(*_: object) -> None:  # pyright: ignore[reportUnusedFunction]
        server.is_shut_down = True

    _documents(server)
    _positions(server)
    _whole_documents(server)
    _changes(server)
    return server


class _Question(Protocol):
    """Parameters that name a position in a document."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


def _asked(server: Server, params: _Question) -> tuple[Open, int]:
    """The document of a request, and the offset in it."""
    known = server.open(params.text_document)
    return known, known.offset(params.position)


def _documents(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        said = given if isinstance(given, dict) else vars(given or object)
        for name in server.options:
            server.options[name] = said.get(name) or server.options[name]
        server.python = server.python or said.get("python") is True

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        of = lsp.TextDocumentIdentifier(params.text_document.uri)
        server.publish(of)
        await server.examine(of)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        await server.examine(params.text_document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        await asyncio.sleep(PAUSE)
        of = params.text_document
        if of.uri in server.opened and server.version_of(of.uri) == of.version:
            server.publish(of)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.opened.pop(params.text_document.uri, None)
        server.examining.pop(params.text_document.uri, None)


def _positions(server: Server) -> None:
    """Requests about a position in a document."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        known, at = _asked(server, params)
        document = known.document
        is_python = isinstance(document, PythonFile)
        found = document.hover(at) if is_python else features.hover(document, at)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown)
        return lsp.Hover(content, known.range(found.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "%", "!", "#", "@", "<"]),
    )
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        known, offset = _asked(server, params)
        found = features.completions(known.program, offset) if known.program else []
        spot = known.range(features.word_before(known.text, offset))
        return lsp.CompletionList(False, [_item(each, spot) for each in found])

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        known, at = _asked(server, params)
        if isinstance(known.document, PythonFile):
            home = known.document.definition(at)
            return None if home is None else elsewhere(*home)
        span, _ = features.occurrences(known.document, at)
        if span is not None:
            return known.location(span)
        home = features.instruction_home(known.document, at)
        return None if home is None else elsewhere(*home)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        known, at = _asked(server, params)
        home, spans = features.occurrences(known.program, at) if known.program else (None, [])
        wanted = params.context.include_declaration
        return [known.location(span) for span in spans if wanted or span != home]


def _whole_documents(server: Server) -> None:
    """Requests about a document or a range of its lines."""

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        known = server.open(params.text_document)
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        found = known.kernels.hints() if known.kernels else ()
        return [
            lsp.InlayHint(lsp.Position(*known.places.position(at)), text, tooltip=tip)
            for at, line, text, tip in found
            if line in lines
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        known = server.open(params.text_document)
        kind = lsp.SymbolKind.Function
        return [
            lsp.DocumentSymbol(name, kind, known.range(whole), known.range(spot))
            for name, whole, spot in (features.functions(known.text) if known.program else ())
        ]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _LEGEND)
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        known = server.open(params.text_document)
        return _tokens(known, TextSpan(0, len(known.text)))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _LEGEND)
    def some_tokens(params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        known = server.open(params.text_document)
        return _tokens(known, TextSpan(*map(known.offset, (params.range.start, params.range.end))))


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
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        (known, offset), name = _asked(server, params), params.new_name.removeprefix("%")
        if known.program is None:
            return None
        spans, reason = features.renamed(known.program, offset, name)
        if reason:
            raise JsonRpcInvalidParams(reason)
        return known.edit((span, name) for span in spans)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def format(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        known = server.open(params.text_document)
        if known.program is None:
            return []
        try:
            made = formatted(known.text)
        except PtoError:  # not well formed; the findings report it
            return []
        whole = known.range(TextSpan(0, len(known.text)))
        return [] if made == known.text else [lsp.TextEdit(whole, made)]


def _fixes(known: Open, found: Iterable[Diagnostic]) -> Iterable[tuple[Diagnostic, QuickFix]]:
    for each in found:
        for edit in fixes(each, known.text, known.places.span(each.loc)):
            yield each, edit


def _action(
    known: Open, found: Diagnostic, edit: QuickFix, context: lsp.CodeActionContext
) -> lsp.CodeAction:
    answered = [d for d in context.diagnostics if d.code == found.code]
    change = known.edit(edit.changes)
    kind = lsp.CodeActionKind.QuickFix
    return lsp.CodeAction(edit.title, kind, diagnostics=answered, edit=change)


def _item(item: Completion, spot: lsp.Range) -> lsp.CompletionItem:
    about = f"```pto\n{item.documentation}\n```" if item.documentation else ""
    return lsp.CompletionItem(
        item.label,
        kind=_KINDS[item.kind],
        detail=item.detail or None,
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, about) if about else None,
        text_edit=lsp.TextEdit(spot, item.label),
    )


def _tokens(known: Open, span: TextSpan) -> lsp.SemanticTokens:
    """Five numbers per word: lines and columns from the previous word, length, kind, modifiers."""
    numbers: list[int] = []
    line = column = 0
    found = features.tokens(known.program, *span) if known.program else ()
    for spot, kind, defines in found:
        (row, start), (last, end) = map(known.places.position, spot)
        if row == last:
            moved = row - line
            numbers += (moved, start if moved else start - column, end - start, kind, int(defines))
            line, column = row, start
    return lsp.SemanticTokens(numbers)
