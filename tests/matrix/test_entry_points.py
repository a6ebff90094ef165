"""B01, beyond Django's routes: sockets and raw ASGI entry points answer everybody as the checked-in table says."""

import pytest

from tests.matrix import entry_points, world
from tests.matrix.answers import IN, MISSING, REFUSED, SIGN_IN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.proof]


async def test_b01_entry_points_answer_everybody_as_the_table_says(entry_point_ground):
    found = await entry_points.rows(entry_point_ground)
    known = entry_points.read()

    wrong = [
        f"{found.get(key, 'gone')} was {known.get(key, 'not there')}: {key}"
        for key in sorted(found.keys() | known.keys())
        if found.get(key) != known.get(key)
    ]

    print(f"{len(found)} rows x {len(world.PEOPLE)} people = {len(found) * len(world.PEOPLE)} decisions, entry points")
    assert wrong == []


def test_b01_entry_point_without_a_probe_fails(monkeypatch):
    monkeypatch.setitem(entry_points.asgi.RAW, "/new/", entry_points.asgi.django_app)

    with pytest.raises(LookupError, match="/new/"):
        list(entry_points.entry_points())


def _person(letters: str) -> dict[str, str]:
    return dict(zip(world.PEOPLE, letters, strict=True))


def test_b01_entry_points_let_no_stranger_at_anything_of_the_owner():
    """What no change of the table may bring."""
    opened = []
    for key, letters in entry_points.read().items():
        method, _way, address = key.split()
        if "{" not in address or method == "OPTIONS":  # tus tells everybody what it can do, and nothing else
            continue
        person = _person(letters)
        opened += [f"{who}: {key}" for who in ("anonymous", "stranger", "annotator", "member") if person[who] == IN]

    assert opened == []


def test_j01_entry_points_ignore_a_cookie_from_a_foreign_page():
    for key, letters in entry_points.read().items():
        method, way, _address = key.split()
        if way == "foreign" and method in {"WS", "POST", "PUT", "PATCH", "DELETE"}:
            assert IN not in letters, key


def test_c07_entry_points_change_nothing_by_a_token_for_reading():
    for key, letters in entry_points.read().items():
        method, way, _address = key.split()
        if way == "reading" and method in {"POST", "PUT", "PATCH", "DELETE"}:
            assert set(letters) <= {SIGN_IN, REFUSED, MISSING}, key


def test_entry_points_let_the_owner_in_where_there_is_something():
    """A table of refusals alone would hold for a platform that is off."""
    table = {tuple(key.split()): _person(letters) for key, letters in entry_points.read().items()}

    assert table["WS", "cookie", "/ws/jobs/{pk}/"]["owner"] == IN
    assert table["HEAD", "token", "/uploads/tus/{upload}"]["owner"] == IN
    assert table["GET", "token", "/serve/{service}/predict"]["owner"] == IN
