"""Load what the first request of a web process would otherwise load: templates, addresses, texts, static files.

A parent process that forks web workers calls `warm` once, after `django.setup()`; its children share the memory.
Nothing here opens a connection, starts a thread or an event loop.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.forms.renderers import get_default_renderer
from django.template import TemplateDoesNotExist, TemplateSyntaxError, engines
from django.template.backends.django import DjangoTemplates
from django.template.base import Node, Template
from django.template.loader import get_template
from django.urls import Resolver404, URLResolver, get_resolver
from django.utils import translation
from django.utils.module_loading import import_string

from accounts.access.permissions import Action
from aiplatform.frame.navigation import navigation
from aiplatform.lib import static_files
from aiplatform.lib.preloads import PRELOADS
from aiplatform.templatetags.ui import icon_names

log = logging.getLogger(__name__)


def warm() -> None:
    """Load all that requests share; takes about a CPU second."""
    import_module(settings.SESSION_ENGINE)
    for path in (settings.MESSAGE_STORAGE, *settings.MIDDLEWARE, *settings.AUTHENTICATION_BACKENDS):
        import_string(path)
    get_default_renderer()
    static_files.fingerprint()
    icon_names()
    load_templates()
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            for resolver in resolvers(get_resolver()):
                len(resolver.reverse_dict)  # tables are kept per language
            with contextlib.suppress(Resolver404):
                get_resolver().resolve("/no such page/")  # compiles the patterns
            navigation("/", frozenset(Action))
            get_template("components/styles.html").render({})
    static_files.bundle(("base/frame.js",))
    with translation.override(settings.LANGUAGE_CODE):
        for name in PRELOADS:
            import_string(name)()


def load_templates() -> None:
    """Load all templates of the platform into the caches of their engine."""
    for engine in engines.all():
        if isinstance(engine, DjangoTemplates):
            len(engine.engine.template_context_processors)  # imports them
    for name in template_names():
        try:
            _drop_tokens(get_template(name))
        except (TemplateDoesNotExist, TemplateSyntaxError) as error:
            log.warning("template %s cannot be loaded: %s", name, error)


def _drop_tokens(template: object) -> None:
    """Release the source positions of a template's nodes, which only the error page of DEBUG shows: half its memory."""
    inner = getattr(template, "template", None)
    if isinstance(inner, Template) and not settings.DEBUG:
        for node in inner.nodelist.get_nodes_by_type(Node):
            node.token = None


def resolvers(root: URLResolver) -> Iterator[URLResolver]:
    """The resolver and all below it."""
    yield root
    for pattern in root.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from resolvers(pattern)


def template_names() -> list[str]:
    """Names of the platform's own templates; those of libraries load when they are needed."""
    folders = [settings.BASE_DIR / "templates"]
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
