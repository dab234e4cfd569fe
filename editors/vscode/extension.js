// Starts `pto lsp` and shows what it says about .pto programs and Python kernels.
// The protocol is spoken here (protocol.js), so the package needs no other one.
"use strict";
const vscode = require("vscode");
const { spawn } = require("child_process");
const { Connection } = require("./protocol");

const LANGUAGES = ["pto", "python"];
const TOKENS = ["variable", "keyword", "type", "enumMember", "string", "number", "function", "label"];
let server = null, log = null;

exports.activate = async (context) => {
  log = vscode.window.createOutputChannel("PTO");
  const again = async () => { await stop(); await start(); };
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("pto.restart", again),
    vscode.workspace.onDidGrantWorkspaceTrust(again),
    vscode.workspace.onDidChangeConfiguration((event) => { if (event.affectsConfiguration("pto")) again(); }),
  );
  await start();
};
exports.deactivate = () => stop();

// ---- the server

async function start() {
  const settings = vscode.workspace.getConfiguration("pto"), command = settings.get("command");
  const folders = vscode.workspace.workspaceFolders ?? [];
  const child = spawn(command, ["lsp"], { cwd: folders[0]?.uri.fsPath });
  child.stderr.on("data", (data) => log.append(data.toString()));
  const failed = new Promise((resolve) => child.on("error", resolve));
  const diagnostics = vscode.languages.createDiagnosticCollection("pto"), hints = new vscode.EventEmitter();
  const connection = new Connection(child, (method, params) => {
    if (method === "textDocument/publishDiagnostics") diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
    else if (method === "workspace/inlayHint/refresh") hints.fire();
    else if (method === "workspace/configuration") return params.items.map(() => null);
  });
  server = { child, connection, parts: [diagnostics, hints] };
  const here = server;
  const begun = connection.request("initialize", {
    processId: process.pid,
    rootUri: folders[0]?.uri.toString() ?? null,
    workspaceFolders: folders.map((each) => ({ uri: each.uri.toString(), name: each.name })),
    initializationOptions: {
      profile: settings.get("profile"),
      device: settings.get("device"),
      python: settings.get("python") && vscode.workspace.isTrusted,
    },
    capabilities: {
      general: { positionEncodings: ["utf-16"] },
      workspace: { workspaceFolders: true, inlayHint: { refreshSupport: true } },
      textDocument: {
        hover: { contentFormat: ["markdown"] },
        publishDiagnostics: { relatedInformation: true, versionSupport: true },
        codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix"] } } },
        semanticTokens: { requests: { full: true }, tokenTypes: TOKENS, tokenModifiers: ["definition"], formats: ["relative"] },
      },
    },
  });
  const error = await Promise.race([failed, begun.then(() => null, (problem) => problem)]);
  if (error) {
    if (server === here) await stop();
    vscode.window.showErrorMessage(`PTO: \`${command} lsp\` does not run (${error.message}). Install pto-machine[lsp], or set pto.command.`);
    return;
  }
  connection.notify("initialized", {});
  follow(here);
  provide(here);
}

async function stop() {
  const ended = server;
  server = null;
  if (!ended) return;
  ended.parts.forEach((each) => each.dispose());
  const late = new Promise((resolve) => setTimeout(resolve, 2000));
  await Promise.race([ended.connection.request("shutdown").catch(() => null), late]);
  ended.connection.notify("exit");
  setTimeout(() => ended.child.kill(), 500);
}

function follow({ connection, parts }) {  // documents, as they are opened, changed, saved and closed
  const known = new Set(), of = (document) => ({ uri: document.uri.toString() });
  const open = (document) => {
    if (!LANGUAGES.includes(document.languageId) || document.uri.scheme !== "file" || known.has(document.uri.toString())) return;
    known.add(document.uri.toString());
    const { languageId, version } = document;
    connection.notify("textDocument/didOpen", { textDocument: { ...of(document), languageId, version, text: document.getText() } });
  };
  const ours = (event) => known.has((event.document ?? event).uri.toString());
  parts.push(
    vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidChangeTextDocument((event) => {
      if (!ours(event) || !event.contentChanges.length) return;
      const textDocument = { ...of(event.document), version: event.document.version };
      connection.notify("textDocument/didChange", { textDocument, contentChanges: [{ text: event.document.getText() }] });
    }),
    vscode.workspace.onDidSaveTextDocument((document) => { if (ours(document)) connection.notify("textDocument/didSave", { textDocument: of(document) }); }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (known.delete(document.uri.toString())) connection.notify("textDocument/didClose", { textDocument: of(document) });
    }),
  );
  vscode.workspace.textDocuments.forEach(open);
}

// ---- what an editor asks for; Python's own extensions complete, rename and format Python

function provide({ connection, parts }) {
  const languages = vscode.languages, [hints] = parts.filter((each) => each.event);
  const files = (language) => ({ language, scheme: "file" }), both = LANGUAGES.map(files), program = files("pto");
  const ask = (method, document, more) =>
    connection.request(`textDocument/${method}`, { textDocument: { uri: document.uri.toString() }, ...more }).catch(() => null);
  parts.push(
    languages.registerHoverProvider(both, {
      provideHover: async (document, position) => {
        const found = await ask("hover", document, { position });
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), range(found.range));
      },
    }),
    languages.registerDefinitionProvider(both, {
      provideDefinition: async (document, position) => location(await ask("definition", document, { position })),
    }),
    languages.registerInlayHintsProvider(files("python"), {
      onDidChangeInlayHints: hints.event,
      provideInlayHints: async (document, span) => ((await ask("inlayHint", document, { range: sent(span) })) ?? []).map((each) =>
        Object.assign(new vscode.InlayHint(point(each.position), each.label), { tooltip: each.tooltip, paddingLeft: false })),
    }),
    languages.registerCodeActionsProvider(both, {
      provideCodeActions: async (document, span, context) => {
        const diagnostics = context.diagnostics.map(({ range: at, message, code, source }) => ({ range: sent(at), message, code, source }));
        const found = (await ask("codeAction", document, { range: sent(span), context: { diagnostics } })) ?? [];
        return found.map((each) => Object.assign(new vscode.CodeAction(each.title, vscode.CodeActionKind.QuickFix), {
          edit: edit(each.edit),
          diagnostics: context.diagnostics.filter((one) => each.diagnostics?.some((other) => other.code === one.code)),
        }));
      },
    }, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
    languages.registerCompletionItemProvider(program, {
      provideCompletionItems: async (document, position) => ((await ask("completion", document, { position }))?.items ?? []).map((each) =>
        Object.assign(new vscode.CompletionItem(each.label, each.kind - 1), {
          detail: each.detail ?? undefined,
          documentation: each.documentation && new vscode.MarkdownString(each.documentation.value),
          insertText: each.textEdit.newText,
          range: range(each.textEdit.range),
        })),
    }, ".", "%", "!", "#", "@", "<"),
    languages.registerReferenceProvider(program, {
      provideReferences: async (document, position, context) => ((await ask("references", document, { position, context })) ?? []).map(location),
    }),
    languages.registerRenameProvider(program, {
      provideRenameEdits: async (document, position, newName) =>
        edit(await connection.request("textDocument/rename", { textDocument: { uri: document.uri.toString() }, position, newName })),
    }),
    languages.registerDocumentFormattingEditProvider(program, {
      provideDocumentFormattingEdits: async (document, options) => ((await ask("formatting", document, { options })) ?? []).map(change),
    }),
    languages.registerDocumentSymbolProvider(program, {
      provideDocumentSymbols: async (document) => ((await ask("documentSymbol", document)) ?? []).map((each) =>
        new vscode.DocumentSymbol(each.name, "", each.kind - 1, range(each.range), range(each.selectionRange))),
    }),
    languages.registerDocumentSemanticTokensProvider(program, {
      provideDocumentSemanticTokens: async (document) => new vscode.SemanticTokens(new Uint32Array((await ask("semanticTokens/full", document))?.data ?? [])),
    }, new vscode.SemanticTokensLegend(TOKENS, ["definition"])),
  );
}

// ---- from the protocol's data to the editor's

const point = (at) => new vscode.Position(at.line, at.character);
const sent = (span) => ({ start: span.start, end: span.end });  // a Range as JSON is a list
const range = (span) => span && new vscode.Range(point(span.start), point(span.end));
const location = (place) => place && new vscode.Location(vscode.Uri.parse(place.uri), range(place.range));
const change = (each) => new vscode.TextEdit(range(each.range), each.newText);

function edit(found) {
  const made = new vscode.WorkspaceEdit();
  for (const [uri, changes] of Object.entries(found?.changes ?? {})) made.set(vscode.Uri.parse(uri), changes.map(change));
  return made;
}

function diagnostic(found) {
  const made = new vscode.Diagnostic(range(found.range), found.message, found.severity - 1);
  made.source = found.source;
  made.code = found.code;
  made.relatedInformation = (found.relatedInformation ?? []).map((each) =>
    new vscode.DiagnosticRelatedInformation(location(each.location), each.message));
  return made;
}
