"""The last lines of devices: kept within bounds, once each, shown as words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from inference.delivery.edge import fleet, logs
from inference.delivery.edge.device import diary
from inference.delivery.edge.device.diary import Diary
from inference.delivery.edge.models import EdgeDevice, EdgeLog
from tests.cases import case_table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(alice):
    group = fleet.create(user=alice, name="Gates")
    return fleet.add_device(group=group, name="gate-1", by=alice)[0]


def texts(device):
    return [line["text"] for line in logs.for_device(device)[0]]


def test_lines_that_come_twice_are_there_once_and_in_order(device):
    logs.store(device, [[1, "one"], [2, "two"]])
    logs.store(device, [[1, "one"], [2, "two"], [3, "three"]])

    assert texts(device) == ["one", "two", "three"]


@case_table(
    "lines",
    [None, "text", {"a": 1}, [1], [[1]], [["1", "x"]], [[1, 2]], [[1, "\x00"]], [[2**60, "x"]], [[float("nan"), "x"]],
     [[0, "x"]], [[5, "   "]], [[True, None]]],
    rollback=True,
)  # fmt: skip
def test_what_is_no_line_is_passed_over(device, lines):
    logs.store(device, lines)

    assert texts(device) == []


def test_newest_lines_stay_and_no_more_than_a_days_share_is_taken(device, monkeypatch):
    monkeypatch.setattr(logs, "MAX_BYTES", 100)
    monkeypatch.setattr(logs, "A_DAY", 300)
    logs.store(device, [[number, "x" * 34] for number in range(1, 9)])  # 50 bytes each with its number

    lines, left_out = logs.for_device(device)

    assert (len(lines), left_out) == (2, 2)
    EdgeLog.objects.update(day=now().date() - timedelta(days=1))
    assert logs.for_device(device)[1] == 0
    logs.store(device, [[9, "a new day"]])
    assert texts(device)[-1] == "a new day"


def test_page_shows_lines_as_words_the_newest_last_and_the_api_gives_them(device, client, alice, bob, api):
    logs.store(device, [[1_700_000_000_000, "first <script>alert(1)</script>"], [2**52, "second"]])
    client.force_login(alice)
    url = reverse("inference:edge-device", args=[device.pk])

    page = client.get(url).content.decode()
    content = api.get(f"/api/v1/edge-devices/{device.pk}/log/").json()
    stranger = APIClient()
    stranger.force_authenticate(bob)

    assert "first &lt;script&gt;" in page
    assert "<script>alert" not in page
    assert page.index("first &lt;") < page.index("second")
    assert [line["text"] for line in content["lines"]] == ["first <script>alert(1)</script>", "second"]
    assert (content["lines"][0]["at"][:10], content["lines"][1]["at"], content["left_out"]) == ("2023-11-14", None, 0)
    assert stranger.get(f"/api/v1/edge-devices/{device.pk}/log/").status_code == 404


def test_report_with_lines_that_cannot_be_is_taken_without_them(device, client, alice):
    EdgeDevice.objects.update(token_digest=fleet.digest("aipe_x"))
    body = {"outcome": "same", "log": [[1, "kept"], ["odd"], [2, {"a": 1}]]}

    answer = client.post(
        "/api/v1/edge/report", body, content_type="application/json", headers={"Authorization": "Edge aipe_x"}
    )

    assert (answer.status_code, texts(device)) == (204, ["kept"])


def test_diary_outlives_the_agent_stays_small_and_numbers_only_grow(tmp_path, monkeypatch):
    monkeypatch.setattr(diary, "MAX_BYTES", 300)
    first = Diary(tmp_path / "diary")
    for number in range(60):
        first.add(f"line {number}\nof two")
    first.add("")
    with (tmp_path / "diary").open("a") as out:
        out.write("17")  # a power cut

    again = Diary(tmp_path / "diary")
    again.add("last")

    lines = [text for _number, text in again.lines]
    numbers = [number for number, _text in again.lines]
    assert lines[-2:] == ["line 59 of two", "last"] or lines[-1] == "last"
    assert sum(map(len, lines)) <= 300
    assert numbers == sorted(set(numbers))
    assert (tmp_path / "diary").stat().st_size < 2 * 300 + 300


def test_diary_sends_no_more_than_a_days_share(tmp_path, monkeypatch):
    monkeypatch.setattr(diary, "A_DAY", 25)
    made = Diary(tmp_path / "diary")
    for number in range(4):
        made.add(f"ten bytes{number}")

    lines = made.lines_after(0)
    made.sent(lines)

    assert [text for _number, text in lines] == ["ten bytes0", "ten bytes1"]
    assert made.lines_after(lines[-1][0]) == []
