"""Markdown of people as HTML that is safe to show: CommonMark with tables, by markdown-it.

HTML inside is shown as it was written, pictures are links (a page of ours asks no other host), and links lead to http,
https and mail only. Headings stand below those of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml

MAX_LENGTH = 100_000
MAX_MARKS = 5_000  # characters that mean something, about 10 µs each
MAX_LINES = 1_200  # about 40 µs each
_MARKS = "[]*_`|<&!\\~"
_SCHEMES = ("http://", "https://", "mailto:", "/", "#")


@dataclass(frozen=True)
class Fence:
    """A fenced block of code at the top level, in no list and no quotation.

    Attributes:
        line: of the fence, from 1; its content starts one below.
        word: the first behind the fence, "" for none.
    """

    line: int
    word: str
    text: str


def render(
    text: str,
    *,
    fences: Mapping[int, SafeString] | None = None,
    longest: int = MAX_LENGTH,
    apart: bool = False,
    top: int | None = None,
) -> SafeString:
    """The text as HTML; "" for an empty one, preformatted where it is too complex.

    Args:
        fences: replacements of fenced blocks, by their lines.
        longest: characters of the text that are read.
        apart: for a file that leaves the site: links to its own pages lead nowhere.
        top: level of the highest headings; None is two below what is written.
    """
    text = _storable(text, longest)
    if is_too_complex(text):
        return SafeString(f"<pre>{escapeHtml(text)}</pre>")
    parser = _parser()
    tokens = parser.parse(text)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    below = 2 if top is None else top - min(levels, default=1)
    env = {"fences": fences or {}, "apart": apart, "below": below}
    return SafeString(str(parser.renderer.render(tokens, parser.options, env)).strip())


def fences(text: str, *, longest: int = MAX_LENGTH) -> list[Fence]:
    """The fenced blocks of a text that stand for themselves; none of one that is shown as it is."""
    text = _storable(text, longest)
    tokens = [] if is_too_complex(text) else _parser().parse(text)
    return [
        Fence(token.map[0] + 1, (token.info.split() or [""])[0], token.content)
        for token in tokens
        if token.type == "fence" and token.level == 0 and token.map
    ]


def is_too_complex(text: str) -> bool:
    """Whether a text takes too long to format, so that it is shown as it was written."""
    return text.count("\n") > MAX_LINES or sum(map(text.count, _MARKS)) > MAX_MARKS


def _storable(text: str, longest: int) -> str:
    return text.replace("\x00", "")[:longest]


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table").disable("image")
    parser.validateLink = _is_safe  # type: ignore[method-assign]  # documented to be replaced
    renderer: Any = parser.renderer
    rules = renderer.rules
    rules["heading_open"] = lambda tokens, at, *rest: f"<{_level(tokens[at].tag, rest[-1])}>"
    rules["heading_close"] = lambda tokens, at, *rest: f"</{_level(tokens[at].tag, rest[-1])}>\n"
    rules["link_open"] = _link
    written = renderer.fence
    rules["fence"] = lambda tokens, at, *rest: _fence(tokens[at], rest[-1]) or written(tokens, at, *rest)
    rules["table_open"] = lambda *_all: '<div class="table-wrap" tabindex="0"><table class="table">\n'
    rules["table_close"] = lambda *_all: "</table></div>\n"
    return parser


def _is_safe(url: str) -> bool:
    return url.strip().lower().startswith(_SCHEMES) and not url.strip().startswith("//")


def _level(tag: str, env: Any) -> str:
    return f"h{min(int(tag[1]) + env['below'], 6)}"


def _fence(token: Any, env: Any) -> str:
    """What was given in place of a block, if anything was."""
    return str(env["fences"].get(token.map[0] + 1, "")) if token.level == 0 and token.map else ""


def _link(tokens: Any, at: int, _options: Any, env: Any) -> str:
    if env["apart"] and str(tokens[at].attrGet("href")).startswith(("/", "#")):
        return "<a>"
    return f'<a href="{escapeHtml(str(tokens[at].attrGet("href")))}" rel="noopener noreferrer nofollow">'
