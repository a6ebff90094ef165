"""A parent process loads what requests share, without anything that a fork would break."""

from __future__ import annotations

import threading

from django.db import connections
from django.template import engines
from django.urls import get_resolver

from aiplatform.templatetags import fragments
from aiplatform.web import warmup
from training.presets.catalog import PRESETS


def test_warm_loads_templates_and_addresses_without_connection_or_thread():
    threads, opened = set(threading.enumerate()), [one for one in connections.all() if one.connection is not None]

    warmup.warm()  # without the database's mark: a query would fail

    loader = engines["django"].engine.template_loaders[0]
    assert set(warmup.template_names()) <= set(loader.get_template_cache)
    assert all(resolver._reverse_dict for resolver in warmup.resolvers(get_resolver()) if resolver.url_patterns)
    assert set(threading.enumerate()) <= threads
    assert [one for one in connections.all() if one.connection is not None] == opened


def test_warm_renders_what_the_page_of_a_new_training_remembers():
    fragments._fragments.clear()

    warmup.warm()  # without the database's mark: a query would fail

    remembered = {key[2][0] for key in fragments._fragments if key[0] == "params"}
    assert remembered == set(PRESETS)
