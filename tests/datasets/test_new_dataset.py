"""The form of a new dataset, and what its import report lets the user change."""

import pytest

from datasets.models import Dataset, Import
from datasets.services import imports
from tests.datasets.helpers import checked, uploaded, zipped
from tests.datasets.pictures import picture
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


def test_page_needs_only_a_file_and_a_name(as_alice, alice):
    upload = uploaded(alice, zipped({"a.png": picture()}))

    answer = as_alice.post("/datasets/new/", {"name": "Cells", "upload_id": upload.pk})

    row = Dataset.objects.get().imports.get()
    assert answer.headers["Location"] == f"/datasets/{row.dataset_id}/imports/{row.pk}/"
    assert (row.wanted, row.split, row.dataset.visibility) == ("auto", {}, "private")


def test_page_creates_an_empty_dataset_on_request_only(as_alice):
    refused = as_alice.post("/datasets/new/", {"name": "Later"})
    made = as_alice.post("/datasets/new/", {"name": "Later", "empty": "1"})

    assert refused.status_code == 422
    assert made.headers["Location"] == f"/datasets/{Dataset.objects.get().pk}/"
    assert not Dataset.objects.get().imports.exists()


def test_settings_on_the_report_change_the_dataset_and_split_again(as_alice, alice):
    files = {f"{n}.png": picture(colour=(n, 9, 9)) for n in range(10)}
    row = checked(make.dataset(alice, "cells"), zipped(files), annotated=False)
    page = f"/datasets/{row.dataset_id}/imports/{row.pk}/"

    shown = as_alice.get(page).context["settings"]
    as_alice.post(f"{page}settings/", {"split": "", "visibility": "public", "intro": "Blood"})
    unchanged = Import.objects.get().state
    as_alice.post(f"{page}settings/", {"split": "80/10/10", "visibility": "public", "intro": "Blood"})
    waiting = Import.objects.get()
    imports.run(row.pk)
    row.refresh_from_db()

    assert list(shown.fields) == ["split", "visibility", "intro"]
    assert (unchanged, waiting.state) == ("reported", "waiting")
    assert (row.dataset.visibility, row.dataset.intro) == ("public", "Blood")
    assert row.report["splits"] == {"train": 8, "val": 1, "test": 1}
    assert as_alice.get(page).context["settings"].initial["split"] == "80/10/10"


def test_visibility_is_no_setting_of_a_later_version(as_alice, alice):
    version = make.version(make.dataset(alice, "cells"))
    row = checked(version.dataset, zipped({"a.png": picture()}), annotated=False)
    page = f"/datasets/{row.dataset_id}/imports/{row.pk}/"

    assert list(as_alice.get(page).context["settings"].fields) == ["split", "intro"]


def test_confirmation_applies_settings_that_were_not_applied_before(as_alice, alice):
    files = {f"{n}.png": picture(colour=(n, 9, 9)) for n in range(10)}
    row = checked(make.dataset(alice, "cells"), zipped(files), annotated=False)
    page = f"/datasets/{row.dataset_id}/imports/{row.pk}/"

    as_alice.post(f"{page}commit/", {"split": "90/10/0", "visibility": "private", "intro": "Blood"})
    imports.run(row.pk)
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.dataset.intro) == ("done", "Blood")
    assert row.version.splits == {"train": 9, "val": 1}
