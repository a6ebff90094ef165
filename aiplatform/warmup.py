"""Load what the first request of a web process would otherwise load: templates, addresses, texts, static files.

A parent process that forks web workers calls `warm` once, after `django.setup()`; its children share the memory.
Nothing here opens a connection, starts a thread or an event loop.
"""

from __future__ import annotations

import logging
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.template import TemplateDoesNotExist, TemplateSyntaxError, engines
from django.urls import get_resolver
from django.utils import translation

from aiplatform.lib import static_files

log = logging.getLogger(__name__)


def warm() -> None:
    """Load the resolver, translations, the digests of static files and all templates of the platform."""
    resolver = get_resolver()
    for name in (resolver.app_dict, resolver.namespace_dict, resolver.reverse_dict):
        len(name)  # builds the table for reversing
    resolver._populate()  # also what `resolve` needs
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            translation.gettext("Overview")
            resolver._populate()  # tables are kept per language
    static_files.fingerprint()
    for name in template_names():
        try:
            for engine in engines.all():
                engine.get_template(name)
        except (TemplateDoesNotExist, TemplateSyntaxError) as error:
            log.warning("template %s cannot be loaded: %s", name, error)


def template_names() -> list[str]:
    """Names of the platform's own templates; those of libraries load when they are needed."""
    folders = [Path(folder) for folder in settings.TEMPLATES[0]["DIRS"]]
    folders += [Path(app.path) / "templates" for app in apps.get_app_configs() if _is_ours(app.path)]
    names = {
        str(path.relative_to(folder))
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".html", ".txt", ".xml"}
    }
    return sorted(names)


def _is_ours(path: str) -> bool:
    return Path(path).is_relative_to(settings.BASE_DIR) and "site-packages" not in Path(path).parts
