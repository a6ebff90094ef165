"""Functions of apps that load modules and data before web processes are forked, so that these share the memory.

An app registers the dotted name of a function without arguments in `AppConfig.ready()`. Only the parent of the web
processes imports and calls it, see `aiplatform.web.warmup`. The function must not open connections or start threads or
event loops, because they do not survive the fork.
"""

from __future__ import annotations

from aiplatform.lib.registry import Registry

PRELOADS: Registry[str] = Registry("preload", name=str)
