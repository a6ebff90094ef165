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
from django.utils.html import escape
from django.utils.safestring import SafeString

register = template.Library()

_SITE = "address site"  # key of the render context: what URLs depend on in addition to name and arguments


@lru_cache(maxsize=8192, typed=True)
def _find(
    name: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...], _site: tuple[Any, ...]
) -> tuple[str, SafeString]:
    """Return the address as it is and as HTML shows it."""
    app = _site[0]
    address = reverse(name, args=args, kwargs=dict(kwargs), current_app=app)
    return address, SafeString(escape(address))


def _site_of(context: Context) -> tuple[Any, ...]:
    """Return the current app, the URL configuration and the script prefix; read once per template and page."""
    site = context.render_context.get(_SITE)
    if site is None:
        request = getattr(context, "request", None)
        app = getattr(request, "current_app", None)
        if app is None and request is not None and getattr(request, "resolver_match", None):
            app = request.resolver_match.namespace
        site = (app, get_urlconf() or settings.ROOT_URLCONF, get_script_prefix())
        context.render_context[_SITE] = site
    return site


class AddressNode(defaulttags.URLNode):
    """Django's node, with a cache in front of `reverse` where all arguments are numbers and texts."""

    def render(self, context: Context) -> str:
        args = tuple([arg.resolve(context) for arg in self.args])
        kwargs = tuple([(name, value.resolve(context)) for name, value in self.kwargs.items()]) if self.kwargs else ()
        for value in (*args, *(value for _name, value in kwargs)) if kwargs else args:
            if type(value) not in (int, str):
                return super().render(context)
        name = self.view_name.resolve(context)
        try:
            address, shown = _find(str(name), args, kwargs, _site_of(context))
        except NoReverseMatch:
            if self.asvar is None:
                raise
            address = shown = SafeString("")
        if self.asvar:
            context[self.asvar] = address
            return ""
        return shown if context.autoescape else address


@register.tag
def url(parser: Parser, token: Token) -> AddressNode:
    node = defaulttags.url(parser, token)
    return AddressNode(node.view_name, node.args, node.kwargs, node.asvar)
