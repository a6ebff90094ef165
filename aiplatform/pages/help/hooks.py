"""What MkDocs calls while it builds the help site: generated pages, scripts in files, languages, Chinese search.

The site is served under the Content-Security-Policy of the product, which allows neither inline scripts nor inline
styles: scripts that the theme writes into its pages are moved into files, alignment of table cells into classes.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

#: The script of the theme would look for a sitemap at each of these addresses.
ALTERNATE_LINK = re.compile(r'<link rel="alternate"[^<>]*>')
INLINE_SCRIPT = re.compile(r"<script>(.+?)</script>", re.DOTALL)
ALIGNMENT = re.compile(r' style="text-align: (left|right|center);"')
HAN = re.compile(r"[\u4e00-\u9fff]")
ZERO_WIDTH_SPACE = "\u200b"
PAGE_BOOST = 8  # of a page in search results: a match in its title is before one in the title of a section elsewhere


def on_files(files: Files, *, config: Any) -> Files:
    """Add the generated pages and, in Chinese, the assets of the English site."""
    for path, text in config.extra["generated_pages"].items():
        files.append(File.generated(config, path, content=text))
    if config.theme["language"] == "zh":
        folder = Path(config.docs_dir).parent / "en" / "assets"
        for path in sorted(folder.iterdir()):
            files.append(File.generated(config, f"assets/{path.name}", abs_src_path=str(path)))
    return files


def on_page_context(context: dict[str, Any], *, page: Any, config: Any, nav: Any) -> dict[str, Any]:
    """Link each page to its translation, or to the start of the other language."""
    translations = config.extra["translations"]
    page_url = page.url if page.file.src_uri in translations else ""
    config.extra["alternate"] = [
        {"name": "English", "lang": "en", "link": f"/help/{page_url}"},
        {"name": "中文", "lang": "zh", "link": f"/help/zh/{page_url}"},
    ]
    return context


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Move inline scripts into files below `assets/inline`, named by their content."""
    root = "../" * page.url.rstrip("/").count("/") + ("../" if page.url.rstrip("/") else "")
    return external_scripts(output, Path(config.site_dir), root or "./")


def on_post_template(output_content: str, *, template_name: str, config: Any) -> str:
    """Do the same in pages that are no document, as 404.html."""
    if not template_name.endswith(".html"):
        return output_content
    return external_scripts(output_content, Path(config.site_dir), "/help/")


def external_scripts(html: str, site: Path, root: str) -> str:
    """Return the page with its inline scripts in files of `site`.

    Args:
        root: address of the site relative to the page.
    """

    def move(match: re.Match[str]) -> str:
        code = match[1]
        name = f"assets/inline/{blake2b(code.encode(), digest_size=8).hexdigest()}.js"
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        return f'<script src="{root}{name}"></script>'

    html = ALTERNATE_LINK.sub("", INLINE_SCRIPT.sub(move, html))
    return ALIGNMENT.sub(r' class="align-\1"', html)


def on_post_build(*, config: Any) -> None:
    """Rank pages before their sections in the search index; in Chinese, make it find any sequence of characters."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    if not index.is_file():
        return
    content = json.loads(index.read_text())
    for entry in content["docs"]:
        if "#" not in entry["location"]:
            entry["boost"] = PAGE_BOOST
        if config.theme["language"] == "zh":
            for key in ("title", "text"):
                entry[key] = HAN.sub(lambda match: f"{match[0]}{ZERO_WIDTH_SPACE}", entry[key])
    index.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
