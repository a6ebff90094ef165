"""Where MPS may be switched on: by page, API and command alike."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from aiplatform.lib import wording
from tests.conftest import signed_in
from tests.factories import work
from workers.core.models import Node
from workers.resources.nodes import mps_policy

pytestmark = pytest.mark.django_db


@pytest.fixture
def node():
    return work.node(gpus=2)


def test_mps_is_allowed_by_no_way_on_a_node_that_says_it_cannot(node, olga):
    Node.objects.update(mps=False, facts={"mps": {"obstacles": [wording.message("mps.no_program").as_json()]}})
    browser, page = signed_in(olga), f"/cluster/nodes/{node.pk}/"

    api = browser.post(f"/api/v1/nodes/{node.pk}/mps-on/")
    browser.post(f"{page}do/mps-on/")
    with pytest.raises(CommandError):
        call_command("node", "mps-on", node.name)

    assert (api.status_code, api.json()["code"]) == (409, "mps_impossible")
    assert not Node.objects.get().mps


def test_mps_is_not_allowed_on_a_node_without_gpus(node):
    node.devices.all().delete()

    with pytest.raises(mps_policy.MpsImpossible):
        mps_policy.allow(node)
