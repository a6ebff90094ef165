"""Facts for the page about the platform."""

from __future__ import annotations

from typing import Final

#: The oldest browsers that pages are made for.
BROWSERS: Final = (("Chromium, Chrome, Edge", "120"), ("Firefox", "121"), ("Safari", "17.4"))
