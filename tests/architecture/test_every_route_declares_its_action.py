"""A page or API action nobody thought about must not exist."""

from django.urls import get_resolver

from tests.routes import PUBLIC, declares, routes


def test_every_route_declares_its_action():
    silent = [where for where, p in routes(get_resolver().url_patterns) if p.name not in PUBLIC and not declares(p)]

    assert silent == []
