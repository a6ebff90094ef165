"""The setting UNFOLD: brand, theme and colours of Django's admin site, which are those of the platform."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _


def _theme(request: HttpRequest) -> str | None:
    """Return the theme that the reader chose; None for that of the system."""
    return getattr(request.user, "theme", "") or None


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "aiplatform",
    "SITE_HEADER": "aiplatform",
    "SITE_SUBHEADER": _("Admin site"),
    "SITE_URL": "/",
    "SITE_ICON": lambda _request: static("base/mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("base/mark.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "THEME": _theme,
    "STYLES": [lambda _request: static("base/tokens.css"), lambda _request: static("base/admin.css")],
    "SCRIPTS": [lambda _request: static("base/admin.js")],
    "COLORS": {  # those of base/tokens.css and base/dark.css, light to dark
        "base": {
            "50": "#f6f7f9",
            "100": "#eef0f4",
            "200": "#e1e4ea",
            "300": "#c6ccd6",
            "400": "#98a1b2",
            "500": "#5d6677",
            "600": "#454d5e",
            "700": "#3a4251",
            "800": "#262c38",
            "900": "#161a22",
            "950": "#0f1218",
        },
        "font": {
            "subtle-light": "#5d6677",
            "subtle-dark": "#98a1b2",
            "default-light": "#454d5e",
            "default-dark": "#b6bdca",
            "important-light": "#191e2a",
            "important-dark": "#e6e9f0",
        },
        "primary": {
            "50": "#f5f6fe",
            "100": "#eceefc",
            "200": "#d5d9f9",
            "300": "#b3baf3",
            "400": "#8592ff",
            "500": "#5e6cec",
            "600": "#4353d6",
            "700": "#3644b8",
            "800": "#2c3795",
            "900": "#272f74",
            "950": "#181c45",
        },
    },
}
