"""Sentences and thresholds of alarms count: one day, two days, in each language."""

from __future__ import annotations

import pytest
from django.utils import translation

from workers.core.models import AlarmRule
from workers.resources.monitoring import alarms
from workers.resources.monitoring.rules import RULES, message_of

#: rule → its sentence for 1, for 2, and in Chinese for 1
COUNTED = {
    "unkillable": (
        "1 process on x cannot be killed. Restart the node, then resume scheduling.",
        "2 processes on x cannot be killed. Restart the node, then resume scheduling.",
        "x 上有 1 个进程无法终止。请重启该节点，然后恢复接收任务。",
    ),
    "service_restarts": (
        "x (digits) restarted 1 time within an hour.",
        "x (digits) restarted 2 times within an hour.",
        "x（digits）一小时内重启了 1 次。",
    ),
    "certificate": (
        "The certificate of the site expires in 1 day.", ("The certificate of the site "
                                                         "expires in 2 days."), "站点证书将在 1 天后到期。"
    ),
    "undelivered": (
        "Delivery of 1 e-mail or webhook of the last hour failed.", ("Delivery of 2 e-mails or webhooks of the "
                                                                    "last hour failed."),
        "最近一小时有 1 封邮件或 webhook 被放弃。",
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", COUNTED)
def test_alarm_sentence_counts_one_and_two_in_both_languages(key):
    one, two, chinese = COUNTED[key]

    said = [str(message_of(key, "x", value, {"name": "digits"})) for value in (1.0, 2.0)]
    with translation.override("zh-hans"):
        translated = [str(message_of(key, "x", value, {"name": "digits"})) for value in (1.0, 2.0)]

    assert said == [one, two]
    assert translated == [chinese, chinese.replace("1", "2")]


def test_alarm_sentence_of_a_broken_figure_is_many_and_of_a_missing_one_breaks_nothing():
    assert str(message_of("certificate", "x", 1.52, {})) == "The certificate of the site expires in 1.5 days."
    assert str(message_of("certificate", "x", 1.04, {})) == "The certificate of the site expires in 1 day."
    assert str(message_of("certificate", "x", None, {})) == "The certificate of the site expires in – days."


def test_alarm_rule_counts_its_threshold_on_pages_and_in_the_api(as_olga):
    alarms.ensure_rules()
    AlarmRule.objects.filter(key="certificate").update(threshold=1)

    page = as_olga.get("/alarms/rules/").content.decode()
    row = next(one for one in as_olga.get("/api/v1/alarm-rules/").json()["results"] if one["key"] == "certificate")

    assert "1 day<" in page
    assert row["unit"] == "day"
    assert [RULES[key].unit_of(2) for key in ("certificate", "gpu_hot", "broker_away")] == ["days", "°C", ""]
