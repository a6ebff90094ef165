"""Builds the help site with MkDocs: generate pages, build each language, compress, switch the link."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
import tempfile
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from aiplatform.lib.encodings import MIN_BYTES, Encoding, compress_file, is_compressible
from aiplatform.pages.help.reference import SITE, generated_pages
from aiplatform.pages.help.site import COMPRESSED, CURRENT, MANIFEST, content_type, current_version

#: Configuration and folder of each language.
LANGUAGES: Final = {"en": ("mkdocs.yml", ""), "zh": ("mkdocs.zh.yml", "zh")}
MODULES: Final = Path(__file__).parent
LOCK: Final = "build.lock"
#: Files whose names contain a digest of their content.
FINGERPRINTED: Final = re.compile(r"\.[0-9a-f]{8}\.min\.(?:js|css)$|^(?:zh/)?assets/inline/[0-9a-f]{16}\.js$")
#: Not served: source maps, the index of languages that are not searched, and pages of MkDocs that the product has.
UNUSED: Final = re.compile(
    r"\.map$|/lunr/(?!min/lunr\.(?:stemmer\.support|multi|zh)\.|tinyseg)|404\.html$|sitemap\.xml(?:\.gz)?$"
)


class BuildFailed(Exception):
    """MkDocs reported a problem; its log says which page and line."""


def build_site(folder: Path, *, is_forced: bool = False) -> bool:
    """Build the site into `folder` and make it the current version.

    Returns:
        False if the current version was made of the same sources.

    Raises:
        BuildFailed: a page has a broken link, or is missing in the navigation.
    """
    pages = {language: generated_pages(language) for language in LANGUAGES}
    digest = source_digest(pages)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:  # a second process waits, and then finds the site built
        fcntl.flock(lock, fcntl.LOCK_EX)
        if current_version(folder).partition("-")[0] == digest and not is_forced:
            return False
        _build_version(folder, digest, pages)
    return True


def _build_version(folder: Path, digest: str, pages: dict[str, dict[str, str]]) -> None:
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder))
    try:
        draft.chmod(0o755)
        for language, (config, subfolder) in LANGUAGES.items():
            _build_language(config, draft / subfolder, pages[language])
        _write_manifest(draft)
        target = folder / draft.name.replace("draft", digest)  # no folder that is served is written again
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    previous = current_version(folder)
    _switch(folder, target.name)
    for path in folder.iterdir():
        if path.is_dir() and path.name not in {target.name, previous, CURRENT}:
            shutil.rmtree(path, ignore_errors=True)


def source_digest(pages: dict[str, dict[str, str]]) -> str:
    """Return 16 hex digits that stand for all sources of the site and the version of the theme."""
    sources = [path for folder in (SITE, MODULES) for path in folder.rglob("*") if path.is_file()]
    digest = blake2b(f"{version('mkdocs-material')} {version('mkdocs')}".encode(), digest_size=8)
    digest.update(json.dumps(pages, sort_keys=True).encode())
    for path in sorted(path for path in sources if path.suffix != ".pyc"):
        digest.update(path.relative_to(SITE.parents[1]).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _build_language(name: str, target: Path, pages: dict[str, str]) -> None:
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # the theme prints a notice about its successor otherwise
    problems = _Problems()
    logger = logging.getLogger("mkdocs")
    logger.setLevel(logging.WARNING)
    logger.addHandler(problems)
    try:
        config: Any = load_config(str(SITE / name), site_dir=str(target), strict=True)
        config.extra |= {"generated_pages": pages, "translations": translated_pages()}
        mkdocs_build(config)
    except Abort as exc:
        raise BuildFailed("\n".join(problems.lines) or str(exc)) from exc
    finally:
        logger.removeHandler(problems)


def translated_pages() -> set[str]:
    """Return the paths of all pages that exist in both languages."""
    pages = [{path.relative_to(SITE / name).as_posix() for path in (SITE / name).rglob("*.md")} for name in LANGUAGES]
    return set.intersection(*pages) | {"glossary.md"}


class _Problems(logging.Handler):
    """Collects the warnings of MkDocs, each of which fails a strict build."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _write_manifest(folder: Path) -> None:
    """Remove what is not served, store compressed forms, and list all files."""
    entries: dict[str, dict[str, object]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if UNUSED.search(name):
            path.unlink()
            continue
        content = path.read_bytes()
        encodings: list[Encoding] = ["br", "gzip"]
        if len(content) < MIN_BYTES or not is_compressible(content_type(name)):
            encodings = []
        is_immutable = FINGERPRINTED.search(name) is not None
        for encoding in encodings:
            compressed = compress_file(content, encoding, fast=not is_immutable)
            path.with_name(path.name + COMPRESSED[encoding]).write_bytes(compressed)
        digest = blake2b(content, digest_size=16).hexdigest()
        entries[name] = {"digest": digest, "immutable": is_immutable, "encodings": encodings}
    (folder / MANIFEST).write_text(json.dumps(entries))


def _switch(folder: Path, version_name: str) -> None:
    """Let the link `current` name another version; requests see the old or the new one."""
    draft = folder / f"{CURRENT}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.symlink_to(version_name)
    draft.replace(folder / CURRENT)
