"""What apps load before web processes are forked, in addition to templates and URLs.

An app registers the dotted name of a function in `AppConfig.ready()`; only the parent of web processes imports it.
The function opens no connection, thread or event loop.
"""

from __future__ import annotations

from aiplatform.lib.registry import Registry

PRELOADS: Registry[str] = Registry("preload", name=str)
