"""A small part of Markdown as HTML, safe by construction: all text is escaped first, and only our own tags are put in.

Known are headings, paragraphs, lists, quotes, code, rules, **bold**, *italic*, `code` and [links](https://…). Anything
else, HTML included, is shown as it was written. Headings begin at h3: they stand below those of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString

LONGEST = 100_000
_HEADING = re.compile(r"(#{1,4}) +(\S.*)")
_BULLET = re.compile(r"[-*+] +(\S.*)")
_NUMBER = re.compile(r"\d{1,4}[.)] +(\S.*)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})")
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\(((?:https?://|mailto:)[^\s()<>\"']{1,1000})\)")
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")
_ITALIC = re.compile(r"(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])")


def render(text: str) -> SafeString:
    """The text as HTML; "" for an empty one."""
    lines = text.replace("\x00", "")[:LONGEST].expandtabs(4).splitlines()
    return SafeString("\n".join(_blocks(lines)))


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if not line:
            at += 1
        elif line.startswith("```"):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith("```")), len(lines))
            yield f"<pre><code>{escape(chr(10).join(lines[at + 1 : end]))}</code></pre>"
            at = end + 1
        elif heading := _HEADING.fullmatch(line):
            level = min(len(heading[1]) + 2, 6)
            yield f"<h{level}>{_inline(heading[2])}</h{level}>"
            at += 1
        elif _RULE.fullmatch(line):
            yield "<hr>"
            at += 1
        elif line.startswith(">"):
            at, quoted = _taken(lines, at, lambda one: one[1:].strip() if one.startswith(">") else None)
            yield f"<blockquote><p>{_inline(' '.join(quoted))}</p></blockquote>"
        elif _BULLET.fullmatch(line) or _NUMBER.fullmatch(line):
            kind, tag = (_BULLET, "ul") if _BULLET.fullmatch(line) else (_NUMBER, "ol")
            at, items = _taken(lines, at, lambda one, kind=kind: (found := kind.fullmatch(one)) and found[1])  # type: ignore[misc]  # the loop's own kind, bound here
            yield f"<{tag}>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</{tag}>"
        else:
            at, words = _taken(lines, at, _plain)
            yield f"<p>{_inline(' '.join(words))}</p>"


def _taken(lines: list[str], at: int, read: Callable[[str], str | None]) -> tuple[int, list[str]]:
    """The lines from `at` on that `read` takes, and where they end; the first is always one of them."""
    taken: list[str] = []
    while at < len(lines):
        line = lines[at].strip()
        value = read(line) if line else None
        if value is None:
            break
        taken.append(value)
        at += 1
    return at, taken


def _plain(line: str) -> str | None:
    begins = line.startswith(("```", ">")) or any(one.fullmatch(line) for one in (_HEADING, _RULE, _BULLET, _NUMBER))
    return None if begins else line


def _inline(text: str) -> str:
    """Marks within a line. Code is taken out first, so that nothing inside it is read as a mark."""
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        parts += [_marks(text[at : code.start()]), f"<code>{escape(code[1])}</code>"]
        at = code.end()
    return "".join([*parts, _marks(text[at:])])


def _marks(text: str) -> str:
    parts: list[str] = []
    at = 0
    for link in _LINK.finditer(text):
        anchor = f'<a href="{escape(link[2])}" rel="noopener noreferrer nofollow">{_emphasis(link[1])}</a>'
        parts += [_emphasis(text[at : link.start()]), anchor]
        at = link.end()
    return "".join([*parts, _emphasis(text[at:])])


def _emphasis(text: str) -> str:
    return _ITALIC.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", escape(text)))
