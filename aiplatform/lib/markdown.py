"""Markdown of people as HTML that is safe to show: CommonMark with tables, by markdown-it.

HTML inside is shown as it was written, pictures are links (a page of ours asks no other host), and links lead to http,
https and mail only. Headings begin at h3: they stand below those of the page.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml

LONGEST = 100_000
_SCHEMES = ("http://", "https://", "mailto:", "/", "#")


def render(text: str) -> SafeString:
    """The text as HTML; "" for an empty one."""
    return SafeString(_parser().render(text.replace("\x00", "")[:LONGEST]).strip())


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table").disable("image")
    parser.validateLink = _is_safe  # type: ignore[method-assign]  # documented to be replaced
    renderer: Any = parser.renderer
    rules = renderer.rules
    rules["heading_open"] = lambda tokens, at, *_rest: f"<{_level(tokens[at].tag)}>"
    rules["heading_close"] = lambda tokens, at, *_rest: f"</{_level(tokens[at].tag)}>\n"
    rules["link_open"] = _link
    rules["table_open"] = lambda *_all: '<div class="table-wrap" tabindex="0"><table class="table">\n'
    rules["table_close"] = lambda *_all: "</table></div>\n"
    return parser


def _is_safe(url: str) -> bool:
    return url.strip().lower().startswith(_SCHEMES) and not url.strip().startswith("//")


def _level(tag: str) -> str:
    return f"h{min(int(tag[1]) + 2, 6)}"


def _link(tokens: Any, at: int, _options: Any, _env: Any) -> str:
    return f'<a href="{escapeHtml(str(tokens[at].attrGet("href")))}" rel="noopener noreferrer nofollow">'
