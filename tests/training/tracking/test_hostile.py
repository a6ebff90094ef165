"""Bodies that no client sends: each is refused with a code, and none is a fault of the platform."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import case_table
from tests.training.tracking.conftest import Script
from training.experiments.models import Param, RunCurve, Tag
from training.experiments.tracking.calls import CALLS

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

BAD_BODIES = [
    "", "[]", "null", '"text"', "{", '{"run_id": ', "[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000, "\xff\xfe",
    '{"run_id": "\\u0000"}', '{"run_id": "\\ud800"}', '{"run_id": ["a"]}', '{"run_id": {"a": 1}}', '{"run_id": true}',
    '{"run_id": 1e400}', '{"run_id": NaN}', '{"run_id": ' + "9" * 5000 + "}",
]  # fmt: skip

MEANING_NOTHING = {"", *BAD_BODIES[11:]}  # objects, of which some calls know no field


@case_table("body", BAD_BODIES, ids=range(len(BAD_BODIES)), rollback=True)
def test_body_that_is_no_object_is_refused_by_every_call(laptop, body):
    laptop.made()

    for call in CALLS:
        if call.method == "GET" or call.raw:
            continue
        path = call.path.pattern.replace("(?P<uid>[^/]+)", "m-x").replace("(?P<key>[^/]+)", "k").replace("\\", "")
        answer = laptop.ask(call.method, path, body or None, base="/api/mlflow/")
        assert answer.status_code in (200, 400, 404, 501), (path, answer.content)
        assert answer.status_code != 200 or body in MEANING_NOTHING, path


VALUES = [
    {"key": "a", "value": "nothing"}, {"key": "a", "value": None}, {"key": "a"}, {"key": "a", "value": True},
    {"key": "a", "value": [1]}, {"key": "", "value": 1}, {"value": 1}, {"key": ["a"], "value": 1},
    {"key": "a" * 251, "value": 1}, {"key": "a", "value": 1, "step": "x"}, {"key": "a", "value": 1, "step": 2**63},
    {"key": "a", "value": 1, "step": 1.5}, {"key": "a", "value": 1, "timestamp": -1},
    {"key": "a", "value": 1, "timestamp": 10**18}, {"key": "a", "value": 1, "timestamp": "soon"},
    {"key": "a\x00b", "value": 1}, {"key": "a", "value": "1" * 500},
]  # fmt: skip


@case_table("fields", VALUES, ids=range(len(VALUES)), rollback=True)
def test_metric_that_is_none_is_refused_alone_and_in_a_batch(laptop, fields):
    uid = laptop.made()

    alone = laptop.refused("POST", "runs/log-metric", {"run_id": uid} | fields)
    batch = laptop.refused("POST", "runs/log-batch", {"run_id": uid, "metrics": [{"key": "b", "value": 1}, fields]})

    assert alone == batch == (400, "INVALID_PARAMETER_VALUE")
    assert not RunCurve.objects.exists()


@pytest.mark.parametrize("value", ["1e308", 1e308, -1e308, 5e-324, "1e-400", 2**61, "0x10"])
def test_metric_of_an_extreme_number_is_kept_or_refused(laptop, value):
    uid = laptop.made()

    answer = laptop.ask("POST", "runs/log-metric", {"run_id": uid, "key": "a", "value": value})

    assert answer.status_code == (400 if value == "0x10" else 200)
    assert laptop.ask("GET", "runs/get", {"run_id": uid}).status_code == 200


def test_names_and_values_are_text_wherever_they_come_back(laptop):
    uid = laptop.made("<script>alert(1)</script>")
    odd = "<img src=x onerror=alert(1)>\n\u202e"
    laptop.post("runs/log-batch", run_id=uid, params=[{"key": odd, "value": odd}], tags=[{"key": odd, "value": odd}])

    answer = laptop.ask("GET", "runs/get", {"run_id": uid})

    assert answer["Content-Type"] == "application/json"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert laptop.data(uid)["params"] == {odd: odd}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(
            ["run_id", "key", "value", "metrics", "params", "tags", "step", "filter", "max_results", "name"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_any_fields_are_answered_or_refused(laptop: Script, fields):
    for path in ("runs/create", "runs/log-batch", "runs/search", "logged-models", "registered-models/create"):
        assert laptop.ask("POST", path, fields).status_code in (200, 400, 404)


def test_many_keys_in_one_batch_leave_nothing_half_written(laptop):
    uid = laptop.made()
    params = [{"key": f"p{n}", "value": "v"} for n in range(100)]
    params[50] = {"key": "", "value": "v"}

    assert laptop.refused("POST", "runs/log-batch", {"run_id": uid, "params": params})[0] == 400
    assert not Param.objects.exists()
    tags = [{"key": "t", "value": "v" * 9000}, {"key": "u", "value": "v"}]
    assert laptop.refused("POST", "runs/log-batch", {"run_id": uid, "tags": tags})[0] == 400
    assert not Tag.objects.exists()


@case_table(
    "source",
    ["/etc/passwd", "file:///etc", "runs:/../../etc", "runs:/a/..%2f", "models:/m?x=1", "http://169.254.169.254/",
     "mlflow-artifacts:/a/../b", "s3://bucket/x", "runs:/a#b", "models:/a\\b", ""],
    rollback=True,
)  # fmt: skip
def test_version_of_files_elsewhere_is_refused(laptop, source):
    laptop.post("registered-models/create", name="iris")

    refused = laptop.refused("POST", "model-versions/create", {"name": "iris", "source": source})

    assert refused == (400, "INVALID_PARAMETER_VALUE")
