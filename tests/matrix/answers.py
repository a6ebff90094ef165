"""Asking every route by every method as every person, and writing the answers down as one letter each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from django.db import transaction
from django.test import Client
from django.urls import get_resolver

from tests.matrix.world import PEOPLE, World
from tests.routes import routes

TABLE = Path(__file__).with_name("table.txt")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAGE_METHODS = ("GET", "POST")  # everything else is refused for all pages in one place, see aiplatform.lib.pages
IN, SIGN_IN, REFUSED, MISSING, METHOD = "i", "d", "-", "0", "x"
LEGEND = """\
# Who gets in where. One row per method and route; one letter each for: {people}.
# i  in: served, or refused for what was sent, not for who sent it
# d  sent to the sign-in page             -  refused: the role does not allow it
# 0  missing: answered like a thing that does not exist
# The ids in addresses are those of private things of `owner`. Written by `python -m tests.matrix`; read every
# changed letter before you commit it.
"""


def addresses(world: World) -> tuple[dict[str, str], list[str]]:
    """(address by route, routes that nobody taught `world.py`)."""
    known: dict[str, str] = {}
    unknown = []
    for route, _pattern in routes(get_resolver().url_patterns):
        path = world.fill(route)
        if path is None:
            unknown.append(route)
        else:
            known[path] = route
    return {route: path for path, route in known.items()}, unknown


def rows(
    world: World, part: int = 0, parts: int = 1, believed: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """(key, letters) of every method that a route offers anybody; of every `parts`-th route from `part` on.

    What `believed` says of people who get in is asked of the first of them alone: whole pages take most of the time.
    """
    clients = {name: signed_in(user) for name, user in world.people.items()}
    for route, path in sorted(addresses(world)[0].items())[part::parts]:
        for method in METHODS if route.startswith("api/") else PAGE_METHODS:
            world.mend()
            key = f"{method:<6} {route}"
            if row := (believed or {}).get(key):
                asked = [name for name, told in zip(PEOPLE, row, strict=True) if told != IN]
                asked += [name for name in ("owner", *PEOPLE) if name not in asked][:1]
                yield key, "".join(letter(clients[name], method, path) if name in asked else IN for name in PEOPLE)
                continue
            first = {name: letter(clients[name], method, path) for name in ("anonymous", "owner", "operator")}
            if METHOD in first.values() and IN not in first.values():
                continue  # the route does not offer this method
            yield (
                key,
                "".join(first.get(name) or letter(clients[name], method, path) for name in PEOPLE),
            )


def read() -> dict[str, str]:
    """The checked-in table: letters by key."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            letters, _space, key = line.partition("  ")
            found[key] = letters
    return found


def known_rows(world: World, part: int, parts: int) -> dict[str, str]:
    """The rows of the table that `rows` gives for this part."""
    mine = set(sorted(addresses(world)[0])[part::parts])
    return {key: row for key, row in read().items() if key[7:] in mine}


def write(table: dict[str, str]) -> None:
    """Replace the checked-in table."""
    lines = [f"{letters}  {key}" for key, letters in table.items()]
    TABLE.write_text(LEGEND.format(people=", ".join(PEOPLE)) + "\n".join(lines) + "\n")


def signed_in(user: object) -> Client:
    """A browser of this person; None is a stranger's."""
    client = Client(raise_request_exception=False)
    if user is not None:
        client.force_login(user)  # type: ignore[arg-type]  # strangers are left out above
    return client


def letter(client: Client, method: str, path: str) -> str:
    """What one person is answered; whatever the request did is rolled back."""
    api = path.startswith("/api/")
    body = {"data": {}, "content_type": "application/json"} if api and method != "GET" else {}
    cookies = client.cookies.copy()
    with transaction.atomic():
        answer = getattr(client, method.lower())(path, **body)
        for close in getattr(answer, "_resource_closers", []):
            close()
        transaction.set_rollback(True)
    client.cookies = cookies  # whoever signed out is in again
    status = answer.status_code
    if status >= 500 and status != 503:
        raise AssertionError(f"{method} {path} answered {status}")
    if status == 401 or (status == 302 and answer["Location"].startswith("/login/")):
        return SIGN_IN
    return {403: REFUSED, 404: MISSING, 405: METHOD}.get(status, IN)
