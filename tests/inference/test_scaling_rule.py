"""How many servers a service needs, from what they tell."""

from inference.serving.scaling import load, rule
from tests.cases import case_table
from tests.inference.scaled import BUSY, CALM


@case_table(
    ("load", "changes", "wanted"),
    [
        (BUSY, {"servers": 1}, 2),
        (BUSY, {"servers": 1, "coming": 1}, 2),  # what was started comes first
        (BUSY, {"servers": 3}, 3),
        (rule.LoadSample(0.1, 0.2, 0), {"servers": 1}, 1),  # as long as may be
        (rule.LoadSample(0.0, 0.1, 1), {"servers": 1}, 2),  # somebody was refused
        (rule.LoadSample(None, 0.0, 0), {"servers": 3, "calm_s": 301}, 2),
        (CALM, {"servers": 3, "calm_s": 299}, 3),
        (CALM, {"servers": 1, "calm_s": 999}, 1),
        (CALM, {"servers": 2, "calm_s": 999, "min_servers": 2}, 2),
        (rule.LoadSample(0.001, 0.6, 0), {"servers": 2, "calm_s": 999}, 2),  # one alone would be busy all the time
        (CALM, {"servers": 1, "min_servers": 2}, 2),
        (CALM, {"servers": 5}, 3),
        (CALM, {"servers": 0, "coming": 1}, 1),
    ],
)
def test_rule_grows_where_callers_wait_and_shrinks_after_a_time_without_need(load, changes, wanted):
    params = {"coming": 0, "min_servers": 1, "max_servers": 3, "target_s": 0.1, "calm_s": 0.0, **changes}

    assert rule.needed_servers(load, **params) == wanted


def test_looks_are_differences_and_leave_out_servers_that_began_anew():
    buckets = len(rule.SECONDS) + 1
    before = rule.Counts(100.0, [10] + [0] * (buckets - 1), 50.0, 1)
    after = rule.Counts(110.0, [10] + [0] * (buckets - 2) + [5], 55.0, 3)
    anew = rule.Counts(110.0, [1] + [0] * (buckets - 1), 0.1, 0)

    assert rule.between([(before, after)]) == rule.LoadSample(19.5, 0.5, 2)
    assert rule.between([(before, anew)]) is None
    assert rule.between([(before, after), (before, anew)]) == rule.between([(before, after)])


def test_servers_tell_how_long_requests_waited(serve, tmp_path, scaled, monkeypatch):
    text = (
        'aip_requests_total{route="/predict",code="429"} 3\n'
        'aip_queue_seconds_bucket{le="0.001"} 4\naip_queue_seconds_bucket{le="+Inf"} 6\naip_inference_seconds_sum 1.5\n'
    )

    assert load.read(text, 7.0) == rule.Counts(7.0, [4, 2], 1.5, 3)
