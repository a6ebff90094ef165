"""Operators look at annotation in Django admin, and change nothing that services own."""

import pytest
from django.test import Client
from django.urls import reverse

from annotation.services import exports
from tests.factories import annotation as make

SHOWN = ["annotationproject", "annotationset", "imagetask", "shape", "export"]


@pytest.fixture
def as_root(olga):
    olga.is_staff = olga.is_superuser = True
    olga.save()
    client = Client()
    client.force_login(olga)
    return client


def test_annotation_admin_site_opens_every_table(as_root, alice):
    task = make.first_task(alice)
    make.draw(task, alice)
    exports.start(annotation_set=task.set, by=alice)

    for model in SHOWN:
        page = as_root.get(reverse(f"admin:annotation_{model}_changelist"))
        assert page.status_code == 200, model
        row = page.context["cl"].result_list[0]
        assert as_root.get(reverse(f"admin:annotation_{model}_change", args=[row.pk])).status_code == 200, model


def test_annotation_admin_site_leaves_shapes_to_the_journal(as_root):
    for model in ["imagetask", "shape", "export"]:
        assert as_root.get(reverse(f"admin:annotation_{model}_add")).status_code == 403
