"""A clone starts as it is offered."""

from __future__ import annotations

from tests.factories import training as factory

PAGE = "/training/new/"


def test_unchanged_clone_is_accepted(as_alice, alice, machine, cells):
    parent = factory.training(alice, data=cells, name="cells")
    form = as_alice.get(f"{PAGE}?clone={parent.pk}").context["form"]
    sent = {
        field.html_name: field.value()
        for field in form
        if field.value() not in (None, "") and field.value() is not False
    }

    response = as_alice.post(PAGE, sent)

    assert response.status_code == 302, response.context and response.context["form"].errors
    assert (form["min_nodes"].value(), alice.jobs.count()) == (None, 2)
