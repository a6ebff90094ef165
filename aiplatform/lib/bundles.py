"""Bundles: several ES modules or style sheets of the platform in one file, made from the sources when first needed.

A bundle of scripts holds the modules that a page starts (its entries) and all that they import. Each module becomes a
function that runs once, when it is first imported; the registry of modules (`base/modules.js`) is part of the bundle of
the frame, which all other bundles import. A module therefore exists once on a page, in however many bundles it is.

Modules keep to what `_parse` reads: `import` and `export` begin a line, exported names are constants, functions or
classes, imports have no circles. tests/scripts compares the result with the TypeScript parser's.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

FOLDER = "bundle"
"""Bundles are served at `/static/<fingerprint>/bundle/<name>+<name>`; the names say what is in them."""

REGISTRY = "base/modules.js"
FRAME = "base/frame.js"
MAX_NAMES = 24

Read = Callable[[str], str]


class BundleError(Exception):
    """A file cannot be part of a bundle; the message says why. Pages then load the files one by one."""


@dataclass(frozen=True)
class Module:
    """An ES module as parts of a bundle."""

    imports: tuple[str, ...]  # names of modules, in order
    exports: tuple[tuple[str, str], ...]  # (exported name, local name)
    bindings: tuple[str, ...]  # statements that give imported names their values
    body: str
    is_async: bool  # waits at its top level


_STRING = r"""(?:"([^"\n]+)"|'([^'\n]+)')"""
_IMPORT = re.compile(rf"^import\b(?!\()\s*(?:([^\"';(]*?)\s*\bfrom\s*)?{_STRING}[ \t]*;?", re.MULTILINE)
_EXPORT_DECLARATION = re.compile(
    r"^export (default )?((?:async )?(?:function\*?|class)|const)\s+([A-Za-z_$][\w$]*)", re.MULTILINE
)
_EXPORT_LIST = re.compile(r"^export \{([^}]*)\}[ \t]*;?(?![ \t]*from)", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(?:import\b(?!\s*\()|export\b).*", re.MULTILINE)
_TOP_AWAIT = re.compile(r"^(?:(?:const|let|var)\b[^=\n]*=\s*)?(?:for\s+)?await\b", re.MULTILINE)
_DYNAMIC_IMPORT = re.compile(r"(?<![\w$.])import\(")
_NAMED = re.compile(r"([A-Za-z_$][\w$]*)(?:\s+as\s+([A-Za-z_$][\w$]*))?")
#: Comments that take whole lines: types and descriptions. Comments behind code stay, and lines keep their numbers.
_COMMENT_LINES = re.compile(r"^[ \t]*(?://[^\n]*|/\*(?:(?!\*/).)*\*/[ \t]*)$", re.MULTILINE | re.DOTALL)
_CSS_COMMENT = re.compile(r"/\*.*?\*/|(\"[^\"\n]*\"|'[^'\n]*')", re.DOTALL)


def address(names: Sequence[str]) -> str:
    """Path of the bundle of these files, below the fingerprint."""
    return f"{FOLDER}/{'+'.join(names)}"


def split_address(path: str) -> tuple[str, ...] | None:
    """Return the names in the path of a bundle; None: the path belongs to no bundle."""
    folder, _slash, joined = path.partition("/")
    names = tuple(joined.split("+"))
    suffixes = {posixpath.splitext(name)[1] for name in names}
    is_bundle = folder == FOLDER and len(names) <= MAX_NAMES and len(set(names)) == len(names)
    return names if is_bundle and suffixes in ({".js"}, {".css"}) else None


def build(names: Sequence[str], read: Read) -> str:
    """Return the text of a bundle.

    Args:
        names: files by their paths below `/static/`, all scripts or all style sheets; scripts are entries of a page.
        read: returns the text of a file.

    Raises:
        BundleError: a file is not of a form that bundles support.
        KeyError: `read` does not know a file.
    """
    return build_style_sheet(names, read) if names[0].endswith(".css") else build_script(names, read)


def build_style_sheet(names: Sequence[str], read: Read) -> str:
    """Join style sheets in their order, without comments."""
    parts = []
    for name in names:
        text = _CSS_COMMENT.sub(lambda match: match[1] or "", read(name))
        if re.search(r"@import|@charset|@namespace|url\((?![\"']?(?:data:|#))", text):
            raise BundleError(f"{name} names other files, whose addresses are relative to it.")
        parts.append("\n".join(line for line in map(str.strip, text.splitlines()) if line))
    return "\n".join(parts) + "\n"


def build_script(entries: Sequence[str], read: Read) -> str:
    """Join the modules that `entries` need, without those of the frame unless the frame itself is built."""
    is_frame = tuple(entries) == (FRAME,)
    modules = _collect(entries, read)
    if not is_frame:
        there = _collect([FRAME], read)
        modules = {name: module for name, module in modules.items() if name not in there}
    path = address(entries)
    up = "../" * path.count("/")  # from the bundle's folder to the fingerprint
    frame = f'import {{ define, launch, load }} from "{up}{address([FRAME])}";\n'
    head = _COMMENT_LINES.sub("", read(REGISTRY)) if is_frame else frame
    parts = [head, f'const $root = new URL("{up or "./"}", import.meta.url).href;\n']
    parts += [_definition(name, module) for name, module in modules.items()]
    parts += [f"launch({json.dumps(name)});\n" for name in entries]
    if not is_frame and len(entries) == 1:
        parts += _exports_of(entries[0], modules)
    return "".join(parts)


def closure(entries: Iterable[str], read: Read) -> list[str]:
    """Names of all modules that the entries need, each behind those that it imports."""
    return list(_collect(entries, read))


def _collect(entries: Iterable[str], read: Read) -> dict[str, Module]:
    modules: dict[str, Module] = {}
    ancestors: list[str] = []

    def add(name: str, importer: str) -> None:
        if name in modules:
            if importer and modules[name].is_async:
                raise BundleError(f"{importer} imports {name}, which waits at its top level.")
            return
        if name in ancestors:
            raise BundleError(f"Imports run in a circle: {' → '.join([*ancestors[ancestors.index(name) :], name])}.")
        module = _parse(name, read(name))
        if importer and module.is_async:
            raise BundleError(f"{importer} imports {name}, which waits at its top level.")
        ancestors.append(name)
        for needed in module.imports:
            add(needed, name)
        ancestors.pop()
        modules[name] = module

    for entry in entries:
        add(entry, "")
    return modules


def _parse(name: str, text: str) -> Module:
    imports: list[str] = []
    bindings: list[str] = []
    exports: list[tuple[str, str]] = []

    def take_import(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2] or match[3]))
        if not (match[2] or match[3]).startswith("."):
            raise BundleError(f"{name} imports {match[2] or match[3]}, which is not relative.")
        imports.append(target)
        bindings.append(_binding(name, match[1], target))
        return "\n" * match[0].count("\n")  # lines keep their numbers within the module

    def take_declaration(match: re.Match[str]) -> str:
        exports.append(("default" if match[1] else match[3], match[3]))
        return f"{match[2]} {match[3]}"

    def take_list(match: re.Match[str]) -> str:
        for item in filter(None, map(str.strip, match[1].split(","))):
            named = _NAMED.fullmatch(item)
            if not named:
                raise BundleError(f"{name} has an export that is not understood: {item}")
            exports.append((named[2] or named[1], named[1]))
        return ""

    body = _IMPORT.sub(take_import, text)
    body = _EXPORT_DECLARATION.sub(take_declaration, body)
    body = _EXPORT_LIST.sub(take_list, body)
    if left := _LEFT_OVER.search(body):
        raise BundleError(f"{name} has a line that is not understood: {left[0]}")
    body = _COMMENT_LINES.sub(lambda match: "\n" * match[0].count("\n"), body)
    body = _DYNAMIC_IMPORT.sub("$import(", body).replace("import.meta.url", "$url")
    if "import.meta" in body:
        raise BundleError(f"{name} uses import.meta for more than its address.")
    return Module(tuple(imports), tuple(exports), tuple(bindings), body, bool(_TOP_AWAIT.search(body)))


def _binding(name: str, clause: str | None, target: str) -> str:
    """Return the statement for one import: `const { a, b: c } = $load("base/api.js");`."""
    value = f"$load({json.dumps(target)})"
    if not clause:
        return f"{value};"
    if namespace := re.fullmatch(r"\*\s+as\s+([A-Za-z_$][\w$]*)", clause):
        return f"const {namespace[1]} = {value};"
    names = clause.strip()
    wanted = []
    if not names.startswith("{"):
        default, _comma, names = names.partition(",")
        wanted.append(f"default: {default.strip()}")
    for item in filter(None, map(str.strip, names.strip().strip("{}").split(","))):
        named = _NAMED.fullmatch(item)
        if not named:
            raise BundleError(f"{name} has an import that is not understood: {item}")
        wanted.append(f"{named[1]}: {named[2]}" if named[2] else named[1])
    return f"const {{ {', '.join(wanted)} }} = {value};"


def _exports_of(name: str, modules: dict[str, Module]) -> list[str]:
    """Let who imports the bundle of one entry have what the entry exports."""
    if name not in modules or modules[name].is_async:
        return []
    return [
        f"const $value{number} = load({json.dumps(name)}).{exported}; export {{ $value{number} as {exported} }};\n"
        for number, (exported, _local) in enumerate(modules[name].exports)
    ]


def _definition(name: str, module: Module) -> str:
    getters = ", ".join(f"{exported}: () => {local}" for exported, local in module.exports)
    head = f"$exports({{ {getters} }}); " if getters else ""
    start = "async function" if module.is_async else "function"
    bindings = " ".join(module.bindings)
    return (
        f"define({json.dumps(name)}, $root, {start} ({{ $load, $import, $exports, $url }}) "
        f"{{ {head}{bindings}\n{module.body}\n}});\n"
    )
