"""A broker that hangs costs one caller a moment, and the next ones nothing."""

import pytest

from aiplatform.lib import nudging


@pytest.fixture
def clock(monkeypatch):
    clock = {"now": 100.0}
    monkeypatch.setattr(nudging.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(nudging, "_rest", {"until": float("-inf")})
    monkeypatch.setattr(nudging, "_outage", nudging.Outage())
    return clock


def fails(clock, after_s):
    def send():
        clock["now"] += after_s
        raise TimeoutError

    return send


def test_nudging_attempt_sends_nothing_for_a_while_after_a_slow_failure(clock):
    sent = []
    assert not nudging.attempt(fails(clock, 0.5), "bell")

    assert not nudging.attempt(lambda: sent.append(1), "bell")
    clock["now"] += nudging.RETRY_DELAY_S
    assert nudging.attempt(lambda: sent.append(2), "bell")

    assert sent == [2]


def test_nudging_attempt_holds_nothing_back_after_a_quick_failure(clock, caplog):
    assert not nudging.attempt(fails(clock, 0.0), "bell")

    assert nudging.attempt(lambda: None, "bell")
    assert "bell not sent" in caplog.text


def test_nudging_attempt_tells_of_an_outage_once_a_minute_and_of_its_end(clock, caplog):
    for number in range(4 * 90):  # a minute and a half, four a second
        nudging.attempt(fails(clock, 0.25), f"bell {number}")
    for _ in range(2):
        nudging.attempt(lambda: None, "bell")

    assert [record.getMessage() for record in caplog.records] == [
        "bell 0 not sent, the rows tell: TimeoutError",
        "240 messages not sent, the rows tell; the last is bell 240: TimeoutError",
        "messages are sent again; 119 more were not",
    ]


def test_nudging_attempt_tells_once_a_minute_of_a_broker_that_comes_and_goes(clock, caplog):
    for _ in range(100):
        nudging.attempt(fails(clock, 0.25), "bell")
        nudging.attempt(lambda: None, "bell")

    assert len(caplog.records) == 2
