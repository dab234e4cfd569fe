"""Builds the extension for VS Code: `python editors/vscode/package.py` writes pto-VERSION.vsix.

A .vsix is a ZIP archive: the files of the extension, a manifest and a list of content types. The
extension has no dependencies, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

HOME = Path(__file__).parent
FILES = (
    "package.json",
    "README.md",
    "icon.png",
    "extension.js",
    "protocol.js",
    "language-configuration.json",
    "pto.tmLanguage.json",
)
TYPES = {
    ".json": "application/json",
    ".md": "text/markdown",
    ".png": "image/png",
    ".js": "application/javascript",
    ".txt": "text/plain",
    ".vsixmanifest": "text/xml",
}
_WHEN = (2026, 1, 1, 0, 0, 0)  # the same files make the same archive

_MANIFEST = """\
<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
    <DisplayName>{title}</DisplayName>
    <Description xml:space="preserve">{description}</Description>
    <Tags>{tags}</Tags>
    <Categories>{categories}</Categories>
    <License>extension/LICENSE.txt</License>
    <Icon>extension/{icon}</Icon>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Icons.Default" Path="extension/{icon}" Addressable="true"/>
  </Assets>
</PackageManifest>
"""  # noqa: E501


def build(out: Path) -> Path:
    """Write the package to a file, or into a folder under its usual name."""
    about = json.loads((HOME / "package.json").read_text("utf-8"))
    out = out / f"{about['name']}-{about['version']}.vsix" if out.is_dir() else out
    parts = {f"extension/{name}": (HOME / name).read_bytes() for name in FILES}
    parts["extension/LICENSE.txt"] = (HOME.parents[1] / "LICENSE").read_bytes()
    parts["extension.vsixmanifest"] = _manifest(about).encode()
    parts["[Content_Types].xml"] = _content_types().encode()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            entry = zipfile.ZipInfo(name, _WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return out


def _manifest(about: dict[str, object]) -> str:
    engines = about["engines"]
    assert isinstance(engines, dict)
    return _MANIFEST.format(
        name=quoteattr(str(about["name"])),
        version=quoteattr(str(about["version"])),
        publisher=quoteattr(str(about["publisher"])),
        title=escape(str(about["displayName"])),
        description=escape(str(about["description"])),
        tags=escape(",".join(_words(about["keywords"]))),
        categories=escape(",".join(_words(about["categories"]))),
        icon=escape(str(about["icon"])),
        engine=quoteattr(str(engines["vscode"])),
    )


def _words(listed: object) -> list[str]:
    assert isinstance(listed, list)
    return [str(each) for each in listed]


def _content_types() -> str:
    defaults = "".join(
        f"<Default Extension={quoteattr(end)} ContentType={quoteattr(kind)}/>"
        for end, kind in TYPES.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{defaults}</Types>\n'


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="build the extension for VS Code")
    parser.add_argument("out", nargs="?", type=Path, default=Path(), help="a file, or a folder")
    print(build(parser.parse_args().out))
