"""Every page without an id, as an operator sees it empty: accessible, inside its window, quiet on the console."""

from __future__ import annotations

import pytest

from tests.architecture.test_route_matrix import action_of, plain_routes
from tests.conftest import signed_in


def pages(user) -> list[str]:
    """Paths that answer a plain GET with a whole page (no API, no parts, no files)."""
    client, found = signed_in(user), []
    for path, pattern in plain_routes().items():
        if path.startswith("/api/") or action_of(pattern) is None:
            continue
        answer = client.get(path)
        if answer.status_code == 200 and b"</html>" in b"".join(answer):
            found.append(path)
    return found


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1440, True)], ids=["narrow-light", "wide-dark"])
def test_pages_are_accessible_and_fit(open_as, olga, accessible, fits, shot, width, dark):
    page = open_as(olga, width=width, height=844, dark=dark)
    wrong = []
    for path in pages(olga):
        page.goto(path)
        try:
            fits(page)
            accessible(page)
        except AssertionError as exc:
            wrong.append(str(exc)[:1500])
        shot(page, f"page{path.replace('/', '-')}{width}", full=True)

    assert wrong == []
