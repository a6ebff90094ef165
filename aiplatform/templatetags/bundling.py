"""`{% bundle %}`: the scripts and style sheets that its content names, as one file of each."""

from __future__ import annotations

import re
from functools import lru_cache

from django import template
from django.conf import settings
from django.template.base import NodeList, Parser, Token
from django.template.context import Context

from aiplatform.lib import static_files

register = template.Library()

_TAG = re.compile(
    r"""<script type="module" src="(?P<script>[^"]+)"></script>|<link rel="stylesheet" href="(?P<sheet>[^"]+)">"""
)


class BundleNode(template.Node):
    """Content whose module scripts become one bundle and whose style sheets become another; the rest stays.

    Tags with other attributes (`media`, `id`) and classic scripts stay, too. While DEBUG nothing changes.
    """

    def __init__(self, nodelist: NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: Context) -> str:
        content = self.nodelist.render(context)
        return content if settings.DEBUG else _bundle(content, static_files.fingerprint())


@register.tag
def bundle(parser: Parser, _token: Token) -> BundleNode:
    """`{% bundle %}{% block scripts %}{% endblock scripts %}{% endbundle %}`."""
    nodelist = parser.parse(("endbundle",))
    parser.delete_first_token()
    return BundleNode(nodelist)


@lru_cache(maxsize=512)
def _bundle(content: str, fingerprint: str) -> str:
    """Replace the first tag of each kind by that of its bundle and drop the others; the order within a kind stays."""
    prefix = f"{settings.STATIC_URL}{fingerprint}/"
    names: dict[str, list[str]] = {"script": [], "sheet": []}
    there = static_files.digests()

    def name_of(match: re.Match[str]) -> str:
        """Return the static file that a tag names; empty where it is none of the platform's."""
        name = match[str(match.lastgroup)].removeprefix(prefix)
        return name if name in there else ""

    for match in _TAG.finditer(content):
        kind = str(match.lastgroup)
        if (name := name_of(match)) and name not in names[kind]:
            names[kind].append(name)
    urls = {kind: static_files.bundle_url(tuple(listed)) if listed else None for kind, listed in names.items()}
    tags = {
        "script": f'<script type="module" src="{urls["script"]}"></script>',
        "sheet": f'<link rel="stylesheet" href="{urls["sheet"]}">',
    }

    def replace(match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        if not urls[kind] or not name_of(match):
            return match[0]
        return tags.pop(kind, "")

    return _TAG.sub(replace, content)
