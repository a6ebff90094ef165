"""Addresses of the help site in templates."""

from __future__ import annotations

from django import template
from django.http import HttpRequest

from aiplatform.lib import guides
from aiplatform.lib.problems import help_address

register = template.Library()


@register.simple_tag
def help_url(request: HttpRequest) -> str:
    """Return the address of the guide for the page of this request."""
    return guides.help_url(request.path)


@register.simple_tag
def help_start() -> str:
    """Return the address of the start page of the help site, in the language of the user."""
    return guides.site_url("")


@register.filter
def error_help(code: str) -> str:
    """Return the address of the entry that explains an error code."""
    return help_address(code)
