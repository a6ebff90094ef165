"""A broker that hangs costs one caller a moment, and the next ones nothing."""

import pytest

from aiplatform.lib import nudging


@pytest.fixture
def clock(monkeypatch):
    clock = {"now": 100.0}
    monkeypatch.setattr(nudging.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(nudging, "_rest", {"until": float("-inf")})
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
    clock["now"] += nudging.REST_S
    assert nudging.attempt(lambda: sent.append(2), "bell")

    assert sent == [2]


def test_nudging_attempt_holds_nothing_back_after_a_quick_failure(clock, caplog):
    assert not nudging.attempt(fails(clock, 0.0), "bell")

    assert nudging.attempt(lambda: None, "bell")
    assert "bell not sent" in caplog.text
