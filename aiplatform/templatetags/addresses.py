"""`{% url %}` for tables: an address that was looked up once is not looked up again. A builtin of all templates."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django import template
from django.conf import settings
from django.template import defaulttags
from django.template.base import Parser, Token
from django.template.context import Context
from django.urls import NoReverseMatch, get_script_prefix, get_urlconf, reverse
from django.utils.html import conditional_escape

register = template.Library()


@lru_cache(maxsize=8192, typed=True)
def _find(
    name: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...], app: str | None, _site: tuple[Any, ...]
) -> str:
    return reverse(name, args=args, kwargs=dict(kwargs), current_app=app)


class AddressNode(defaulttags.URLNode):
    """Django's node, with a cache in front of `reverse` where all arguments are numbers and texts."""

    def render(self, context: Context) -> str:
        args = tuple(arg.resolve(context) for arg in self.args)
        kwargs = tuple((name, value.resolve(context)) for name, value in self.kwargs.items())
        if not all(type(value) in (int, str) for value in (*args, *(value for _name, value in kwargs))):
            return super().render(context)
        name = self.view_name.resolve(context)
        request = getattr(context, "request", None)
        app = getattr(request, "current_app", None)
        if app is None and request is not None and getattr(request, "resolver_match", None):
            app = request.resolver_match.namespace
        site = (get_urlconf() or settings.ROOT_URLCONF, get_script_prefix())
        try:
            address = _find(str(name), args, kwargs, app, site)
        except NoReverseMatch:
            if self.asvar is None:
                raise
            address = ""
        if self.asvar:
            context[self.asvar] = address
            return ""
        return conditional_escape(address) if context.autoescape else address


@register.tag
def url(parser: Parser, token: Token) -> AddressNode:
    node = defaulttags.url(parser, token)
    return AddressNode(node.view_name, node.args, node.kwargs, node.asvar)
