"""Outgoing requests use the standard library, except in the modules that decision 39 names."""

import re

from tests.architecture.code import APPS, ROOT, modules, text

CLIENT = re.compile(r"^\s*(?:import|from) (aiohttp|httpx|requests|urllib3)\b", re.MULTILINE)
ALLOWED = {"aiohttp": "workers/access/proxy/", "requests": "accounts/services/oidc.py"}


def test_other_http_clients_are_imported_in_their_modules_only():
    imports = {
        (path.relative_to(ROOT).as_posix(), client)
        for path in modules("aiplatform", *APPS)
        for client in CLIENT.findall(text(path))
    }

    assert {client for _path, client in imports} == set(ALLOWED)  # else an exception is no longer used
    assert sorted((path, client) for path, client in imports if not path.startswith(ALLOWED[client])) == []
