"""Serializers of answers: the same answers as Django REST framework gives, for less work."""

import pytest
from rest_framework import serializers

from accounts.api.serializers import MeOut
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.wording import message
from tests.factories import work
from workers.core.models import JobEvent, NodeEvent
from workers.jobs.api.serializers import EventOut, JobDetailOut
from workers.resources.nodes.api.serializers import NodeEventOut, NodeOut

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(alice, cluster):
    node = work.node(gpus=2)
    job = work.job(alice, cluster, state="running", message=message("job.idle", idle_s=60.0))
    work.hold(job, node.devices.filter(kind="gpu").first())
    return {
        MeOut: alice,
        NodeOut: node,
        JobDetailOut: job,
        EventOut: JobEvent.objects.create(job=job, attempt=1, event="placed", state="running"),
        NodeEventOut: NodeEvent.objects.create(node=node, event="joined"),
    }


@pytest.mark.parametrize("kind_of_answer", [MeOut, NodeOut, JobDetailOut, EventOut, NodeEventOut])
def test_answers_are_those_of_the_framework(kind_of_answer, rows):
    row = rows[kind_of_answer]

    answer = kind_of_answer(row).data

    assert answer == serializers.Serializer.to_representation(kind_of_answer(row), row)


def test_answers_show_a_message_as_code_and_facts(rows):
    assert JobDetailOut(rows[JobDetailOut]).data["message"] == {"code": "job.idle", "facts": {"idle_s": 60.0}}


def test_answers_build_the_fields_of_a_model_once(rows, monkeypatch):
    first = NodeOut(rows[NodeOut]).data

    def fail(*args):
        pytest.fail("built again")

    monkeypatch.setattr(serializers.ModelSerializer, "build_standard_field", fail)

    assert NodeOut(rows[NodeOut]).data == first


def test_answers_of_two_serializers_share_no_field(rows):
    class Named(OutMixin, serializers.ModelSerializer):
        class Meta:
            model = type(rows[NodeOut])
            fields = ["name"]

    one, other = Named(rows[NodeOut]), Named(rows[NodeOut])

    assert one.fields["name"] is not other.fields["name"]
