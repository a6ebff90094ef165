"""When schedules are due, and who may start by a webhook."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiplatform.lib import signatures
from aiplatform.lib.errors import Invalid
from inference.pipelines import schedules
from tests.cases import case_table

BERLIN = "Europe/Berlin"


def shown(expr, zone, after, count=3):
    tz = schedules.zone_named(zone)
    times = schedules.next_times(expr, zone, datetime.fromisoformat(after).replace(tzinfo=tz), count)
    return [f"{moment.astimezone(tz):%m-%d %H:%M%z}" for moment in times]


@case_table(
    ("expr", "zone", "after", "times"),
    [
        ("30 2 * * SUN", BERLIN, "2026-03-22T02:30", ["03-29 03:00+0200", "04-05 02:30+0200", "04-12 02:30+0200"]),
        ("0,15,30 2 * * *", BERLIN, "2026-03-28T02:20", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:00+0200"]),
        ("30 2 * * SUN", BERLIN, "2026-10-18T02:30", ["10-25 02:30+0200", "11-01 02:30+0100", "11-08 02:30+0100"]),
        ("30 */2 * * *", BERLIN, "2026-10-25T00:40", ["10-25 02:30+0200", "10-25 04:30+0100", "10-25 06:30+0100"]),
        ("30 * * * *", BERLIN, "2026-10-25T01:40", ["10-25 02:30+0200", "10-25 02:30+0100", "10-25 03:30+0100"]),
        ("30 0-23 * * *", BERLIN, "2026-03-29T00:40", ["03-29 01:30+0100", "03-29 03:30+0200", "03-29 04:30+0200"]),
        ("@weekly", "Asia/Shanghai", "2026-01-01", ["01-04 00:00+0800", "01-11 00:00+0800", "01-18 00:00+0800"]),
        ("0 0 29 2 *", "UTC", "2026-01-01", ["02-29 00:00+0000"] * 3),
        ("0 12 L * *", "Asia/Shanghai", "2028-02-01", ["02-29 12:00+0800", "03-31 12:00+0800", "04-30 12:00+0800"]),
        ("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00", ["03-29 01:00+0300", "03-30 00:00+0300", "03-31 00:00+0300"]),
        ("0 12 30,31 12 *", "Pacific/Apia", "2011-12-29", ["12-31 00:00+1400", "12-31 12:00+1400", "12-30 12:00+1400"]),
    ],
)
def test_times_are_those_of_the_clocks_of_the_place_each_once(expr, zone, after, times):
    assert shown(expr, zone, after) == times


def test_what_was_missed_is_made_up_for_as_was_chosen():
    last, now = datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 28, 0, 33, tzinfo=UTC)

    def due(missed, expr="30 2 * * *", last=last, now=now, limit=100):
        return [f"{moment:%d %H:%M}" for moment in schedules.due(expr, BERLIN, last, now, missed, limit=limit)]

    assert due("latest") == ["27 01:30"]
    assert due("all") == ["25 00:30", "26 01:30", "27 01:30"]
    assert due("all", limit=2) == ["25 00:30", "26 01:30"]
    assert due("none") == []
    assert due("none", now=datetime(2026, 10, 28, 1, 34, tzinfo=UTC)) == ["28 01:30"]
    assert due("latest", last=datetime(2026, 10, 27, 1, 30, tzinfo=UTC)) == []
    years_later = datetime(2096, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert due("latest", "* * * * *", now=years_later) == ["01 00:00"]
    assert len(due("all", "* * * * *", now=years_later, limit=10**9)) == schedules.MAX_DUE


def test_bad_schedules_and_zones_are_refused_with_what_to_write():
    for expr, says in [
        ("* * * * * *", "The shortest interval of a schedule is one minute:"),
        ("every day", "five fields"),
        ("61 * * * *", "the minute cannot be parsed."),
        ("0 0 * * 9", "the day of the week"),
        ("0 0 30 2 *", "the day of the month"),
        ("1 " * 200, "at most 200"),
    ]:
        with pytest.raises(Invalid, match=says) as refused:
            schedules.check(expr, "UTC")
        assert refused.value.blamed == "schedule"
    with pytest.raises(Invalid) as both:
        schedules.check("", "../../etc/passwd")
    assert [error.blamed for error in both.value.every] == ["schedule", "zone"]


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "30", "*/20", "0,59"]), st.sampled_from(["*", "2", "*/2", "1-3", "0"]),
    st.sampled_from(["*", "1", "L", "*/9"]), st.sampled_from(["*", "3,10"]), st.sampled_from(["*", "SUN", "1-5"]),
).map(" ".join)  # fmt: skip
ZONES = st.sampled_from([BERLIN, "Asia/Shanghai", "Australia/Lord_Howe", "Asia/Beirut", "UTC"])
MOMENTS = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from(
        [datetime(2026, month, day, 20, tzinfo=UTC) for month, day in [(3, 28), (10, 24), (4, 4), (10, 3)]]
    ),
    st.integers(0, 1440),
)


@settings(max_examples=80, deadline=None)
@given(FIELDS, ZONES, MOMENTS, st.integers(0, 3000))
def test_the_newest_time_is_the_last_of_all_and_all_are_in_order(expr, zone, last, minutes):
    now = last + timedelta(minutes=minutes)
    every, at = [], last
    while more := schedules.due(expr, zone, at, now, "all"):
        every += more
        at = more[-1]

    assert every == sorted(set(every))
    assert schedules.due(expr, zone, last, now) == every[-1:]
    assert all(last < moment <= now for moment in every)


def test_a_webhook_proves_who_sent_it_when_and_which_delivery_it_is():
    now, body = datetime(2026, 11, 28, 12, tzinfo=UTC), b'{"ref": "main"}'
    sent = signatures.header("new", body, now)
    named = signatures.header("new", body, now - timedelta(seconds=200), "d-1")

    plain = signatures.verify(["old", "new"], sent, body, now)
    again = signatures.verify(["new"], signatures.header("new", body, now, "d-1"), body, now)

    assert plain.key.startswith("sha256:")
    assert plain.sent == now
    assert signatures.verify(["new"], named, body, now).key == again.key == "id:d-1"
    digest = sent.partition("v1=")[2]
    for header, secrets, text in [
        ("", ["new"], "missing"),
        (sent, ["other", ""], "does not match"),
        (sent.replace("t=1", "t=2"), ["new"], "more than five minutes"),
        (named.replace("d-1", "d-2"), ["new"], "The signature does not match:"),
        (named.replace(",id=d-1", ""), ["new"], "The signature does not match:"),
        (f"t=1{'0' * 30},v1={digest}", ["new"], "must look like"),
        (f"t=999999999999,v1={digest}", ["new"], "must look like|five minutes"),
        (sent + f",v1={digest}" * 5, ["new"], "must look like"),
        ("v1=" + "é" * 64, ["new"], "must look like"),
    ]:
        with pytest.raises(signatures.BadSignature, match=text):
            signatures.verify(secrets, header, body, now)
    with pytest.raises(signatures.BadSignature):
        signatures.verify(["new"], sent, body + b" ", now)
