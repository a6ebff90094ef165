"""Shares of cards by MPS on a machine's page: allowed by an operator, with who uses them and who cannot."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from aiplatform.lib.wording import message
from tests.browser.conftest import in_both_looks
from tests.factories import work
from workers.core.models import Node


@pytest.fixture
def node(alice, bob, cluster):
    """A machine with one card that three jobs share; MPS could not take the third."""
    made = work.node("gpu-01", gpus=1)
    card = made.devices.get(kind="gpu")
    for name, owner in (("digits", alice), ("cells", alice), ("words", bob)):
        job = work.job(owner, cluster, name=name, state="running", gpus_per_node=1, share=2)
        work.hold(job, card, share=2)
        card.refresh_from_db()
        kept = {"mps": True} if owner == alice else {"mps_refusal": message("mps.full", card=0, most=48)}
        job.attempts.get().allocations.update(**kept)
    return made


@in_both_looks
def test_operator_allows_mps_and_sees_who_shares_a_card(
    open_as, olga, site, node, accessible, fits, shot, width, dark, language
):
    page = open_as(olga, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/cluster/nodes/{node.pk}/")
    page.locator("details.menu:has(form[action$='/do/mps-on/']) > summary").press("Enter")
    page.locator("form[action$='/do/mps-on/'] button").press("Enter")
    page.wait_for_load_state()
    expect(page.locator("form[action$='/do/mps-off/']")).to_have_count(1)
    accessible(page)
    facts = {"obstacles": [message("mps.exclusive", card=1).as_json()], "daemons": [{"owner": 1, "programs": 2}]}
    gain = {"card": 0, "clients": 4, "alone": 1000.0, "together": 2630.0}
    Node.objects.filter(pk=node.pk).update(facts={"mps": facts}, mps_gain=gain)

    page.reload()

    expect(page.locator("#node-mps-table tbody tr")).to_have_count(3)
    expect(page.locator("#node-mps-table")).to_contain_text("48")
    expect(page.get_by_text("2.63")).to_be_visible()
    expect(page.get_by_text("nvidia-smi -c DEFAULT")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"machine-mps-{width}", full=True)
