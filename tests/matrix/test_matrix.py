"""B01: every route and method answers seven kinds of people as the checked-in table says."""

import os
import re

import pytest

from tests.matrix import answers, world
from tests.matrix.answers import IN, METHOD, SIGN_IN

pytestmark = [pytest.mark.django_db, pytest.mark.proof]
PUBLIC_API = re.compile(
    r"api/mlflow/\Z|api/v1/((auth/token|auth/device|auth/device/token|nodes/join|nodes/probe|pipeline-hooks)/|edge/(enrol|packages/|report|word))"
)


def test_b01_route_table_setup_has_an_id_for_every_route(ground):
    assert answers.addresses(ground)[1] == []


PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_b01_routes_answer_everybody_as_the_table_says(ground, part):
    believed = None if "AIP_LONG" in os.environ else answers.read()
    found = dict(answers.rows(ground, part, PARTS, believed))
    known = answers.known_rows(ground, part, PARTS)
    wrong = [
        f"{found.get(key, 'gone')} was {known.get(key, 'not there')}: {key}"
        for key in sorted(found.keys() | known.keys())
        if found.get(key) != known.get(key)
    ]
    print(f"{len(found)} rows x {len(world.PEOPLE)} people, {len(wrong)} unexpected")
    assert wrong == []


def test_b01_route_table_has_no_row_of_a_route_that_is_gone(ground):
    there = answers.addresses(ground)[0]

    assert [key for key in answers.read() if key[7:] not in there] == []


def test_b01_route_table_probes_pages_by_get_and_post_alone(as_olga):
    for method in ("put", "patch", "delete"):
        assert getattr(as_olga, method)("/datasets/").status_code == 405


#: Addresses with an id that others may read too, with the reason.
COMMON = {
    "clusters/": "whoever belongs to a cluster sees it",
    "devices/": "researchers see what the machines offer",
    "nodes/": "researchers see what the machines offer",
    "push/new/": "the empty form of a kind of target",
    "resource-groups/": "researchers see which machines are kept for what",
    "training/\\^presets|training/presets": "presets come with the product",
    "set-password/": "whoever holds the one-time link",
    "welcome/": "whoever holds the one-time link",
    "^GET +help/": "documentation, the same for everybody",
    "^GET +client/": "the client program, the same for everybody",
}


def test_b01_route_table_lets_no_stranger_at_anything_of_the_owner():
    """What no change of the table may bring: a stranger or another annotator inside a private thing."""
    opened = []
    for key, letters in answers.read().items():
        if "<" not in key and "(?P" not in key:
            continue
        if any(re.search(common, key) for common in COMMON):
            continue
        person = dict(zip(world.PEOPLE, letters, strict=True))
        opened += [f"{who}: {key}" for who in ("anonymous", "stranger", "annotator", "member") if person[who] == IN]

    assert opened == []


def test_b01_route_table_sends_people_without_account_to_sign_in():
    """Without an account: the sign-in page, or what tests/architecture lists as public."""
    opened = [key for key, letters in answers.read().items() if letters[0] not in {SIGN_IN, METHOD}]

    assert {key.split()[-1].split("/")[0] for key in opened} <= {
        "login",
        "register",
        "welcome",
        "set-password",
        "healthz",
        "help",
        "client",
        "jsi18n",
        "api",
        "edge",
    }
    edge = {key.split()[-1] for key in opened if key.split()[-1].startswith("edge/")}
    assert edge == {"edge/aip-edge.pyz"}  # the program that devices run
    assert [key for key in opened if key.split()[-1].startswith("api/") and not PUBLIC_API.search(key)] == []
