"""`{% remember %}`: a part of a page that is rendered once per process and key."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from django import template
from django.conf import settings
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.template.context import Context
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

MAX_FRAGMENTS = 256

register = template.Library()

_fragments: OrderedDict[tuple[object, ...], SafeString] = OrderedDict()
_lock = Lock()


class RememberNode(template.Node):
    """Content that depends on nothing but its key and the language; rendered each time while DEBUG or with no key."""

    def __init__(self, nodelist: NodeList, name: str, key: FilterExpression) -> None:
        self.nodelist, self.name, self.key = nodelist, name, key

    def render(self, context: Context) -> str:
        key = self.key.resolve(context)
        if not key or settings.DEBUG:
            return self.nodelist.render(context)
        cache_key = (self.name, get_language(), key)
        with _lock:
            if (fragment := _fragments.get(cache_key)) is not None:
                _fragments.move_to_end(cache_key)
                return fragment
        content = mark_safe(self.nodelist.render(context))  # noqa: S308 - it was rendered by the template
        with _lock:
            _fragments[cache_key] = content
            while len(_fragments) > MAX_FRAGMENTS:
                _fragments.popitem(last=False)
        return content


@register.tag
def remember(parser: Parser, token: Token) -> RememberNode:
    """`{% remember "name" key %}…{% endremember %}`; the key is hashable and determines all that the content shows."""
    _tag, name, key = token.split_contents()
    nodelist = parser.parse(("endremember",))
    parser.delete_first_token()
    return RememberNode(nodelist, name.strip("\"'"), parser.compile_filter(key))
