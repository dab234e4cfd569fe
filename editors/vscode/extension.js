// Starts `pto lsp` for .pto files; everything else is the server's.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("pto");
  const server = { command: settings.get("command"), args: ["lsp"] };
  client = new LanguageClient("pto", "PTO", server, {
    documentSelector: [{ language: "pto" }],
    initializationOptions: { profile: settings.get("profile"), device: settings.get("device") },
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
