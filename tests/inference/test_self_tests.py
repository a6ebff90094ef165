"""Samples with known answers: made where a model is judged, carried by packages, compared where they run."""

from __future__ import annotations

import copy
import io
import json
import zipfile

import pytest

from inference.delivery.edge import fleet, labels, packages
from inference.evaluation.kind import EvaluationKind
from inference.kit.models import selftest, standalone
from inference.registry.models import ModelVersion
from inference.registry.selftest import self_tests
from tests.inference import judged
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db
BOX = {"class_id": 1, "name": "red", "score": 0.8, "box": [10, 10, 30, 30]}


def answer(*rows, task="detection", side=100):
    return {"task": task, "image": {"width": side, "height": side}, "predictions": list(rows)}


@pytest.mark.parametrize(
    ("rows", "kind", "largest"),
    [
        ([BOX | {"score": 0.805}], selftest.SCORE, 0.005),
        ([BOX | {"box": [10, 10, 30, 32]}], selftest.BOX, 0.02),
        ([BOX | {"class_id": 2}], selftest.CLASS, 0.5),
        ([], selftest.MISSING, 0.5),
        ([BOX, BOX | {"box": [60, 60, 90, 90], "score": 0.304}], selftest.EXTRA, 0.004),
        ([BOX | {"score": float("nan")}], selftest.SCORE, selftest.WORST),
        ([{"box": []}], selftest.FORM, selftest.WORST),
    ],
)
def test_difference_of_boxes_counts_what_is_no_close_call(rows, kind, largest):
    difference = selftest.difference(answer(BOX), answer(*rows), {"score_threshold": 0.3, "max_detections": 50})

    assert (difference.kind, difference.largest) == (kind, pytest.approx(largest))


def test_difference_of_classes_vectors_points_and_areas():
    red, blue = ({"class_id": n, "name": str(n), "score": s} for n, s in ((1, 0.6), (2, 0.4)))
    turned = [blue | {"score": 0.6}, red | {"score": 0.4}]
    close = selftest.difference(answer(red, blue), answer(red | {"score": 0.595}, blue), {})
    other = selftest.difference(answer(red, blue), answer(*turned), {})
    vector = [red | {"vector": [0.6, 0.8], "neighbours": []}]
    moved = [red | {"vector": [0.6, 0.7], "score": 0.4, "neighbours": []}]
    point = [red | {"keypoints": [{"name": "nose", "x": 10, "y": 10, "score": 0.9}]}]
    away = [red | {"keypoints": [{"name": "nose", "x": 15, "y": 10, "score": 0.9}]}]
    area = [red | {"share": 0.3, "box": [0, 0, 9, 9], "mask": {}}]

    assert (close.kind, close.largest) == (selftest.SCORE, pytest.approx(0.005))
    assert (other.kind, other.largest) == (selftest.CLASS, pytest.approx(0.2))
    assert selftest.difference(answer(*vector), answer(*moved), {}).kind == selftest.VECTOR
    assert selftest.difference(answer(*point), answer(*away), {}) == selftest.Difference(0.05, selftest.POINT)
    assert selftest.difference(answer(*area), answer(), {}) == selftest.Difference(0.3, selftest.MISSING)


@pytest.fixture
def version(alice, tmp_path):
    """A version that was evaluated on pictures of a dataset of alice's."""
    evaluation = judged.evaluation(alice, tmp_path)
    EvaluationKind().ended(evaluation.job, evaluation.job.attempts.get())
    return ModelVersion.objects.get(pk=evaluation.model_version_id)


def test_package_carries_samples_and_run_py_tells_a_machine_that_answers_otherwise(api, version, tmp_path, capsys):
    answer = api.get(f"/api/v1/model-versions/{version.pk}/package/")
    folder = tmp_path / "package"
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        archive.extractall(folder)
    written = json.loads((folder / "selftest" / "answers.json").read_text())
    names = [sample["picture"] for sample in written["samples"]]
    sums = (folder / "SHA256SUMS").read_text()

    good = standalone.main(folder / "model", ["--check"])
    spoilt = copy.deepcopy(written)
    spoilt["samples"][2]["answer"]["predictions"][0]["score"] += 0.05
    (folder / "selftest" / "answers.json").write_text(json.dumps(spoilt))
    capsys.readouterr()
    bad, output = standalone.main(folder / "model", ["--check"]), capsys.readouterr().out
    (folder / "selftest" / "answers.json").unlink()
    bare = standalone.main(folder / "model", ["--check"])

    assert names == ["1.png", "2.png", "3.jpg", "4.jpg"]
    assert all(sample["answer"]["predictions"] for sample in written["samples"])
    assert all(f"selftest/{name}" in sums for name in (*names, "answers.json"))
    assert sum((folder / "selftest" / name).stat().st_size for name in names) < 1 << 20
    assert (good, bad, bare) == (0, 3, 2)
    result = {"sample": 3, "kind": "score", "largest": 0.05, "samples": 4, "tolerance": 0.01, "same": False}
    assert json.loads(output) == result
    assert "came without answers" in capsys.readouterr().err


def test_pictures_go_along_only_where_the_owner_lets_them_and_the_reader_may_see_the_data(
    api, client, alice, bob, version
):
    client.force_login(alice)
    page = f"/models/{version.model_id}/"
    content = client.get(page).content.decode()

    assert (self_tests.for_package(version, alice).samples, self_tests.for_package(version, alice).pictures) == (4, 2)
    assert (self_tests.for_package(version, bob).samples, self_tests.for_package(version, bob).pictures) == (2, 0)
    assert "2 of them are images of colours_detection v1" in content
    assert api.get(f"/api/v1/model-versions/{version.pk}/").json()["self_test"]["pictures"] == 2
    first = packages.for_version(version, by=alice)
    assert packages.for_version(version, by=alice) == first
    answer = api.patch(
        f"/api/v1/models/{version.model_id}/", {"packages_pictures": False}, content_type="application/json"
    )
    assert answer.json()["packages_pictures"] is False
    version.refresh_from_db()
    assert self_tests.for_package(version, alice).pictures == 0
    assert packages.for_version(version, by=alice) != first
    assert "Synthetic images only" in client.get(page).content.decode()
    client.post(f"{page}edit/", {"description": "", "visibility": "private", "packages_pictures": "on"})
    assert self_tests.for_package(ModelVersion.objects.get(pk=version.pk), alice).pictures == 2


def test_samples_of_a_job_are_kept_only_where_they_are_sound_and_its_owner_may_change_the_model(alice, bob, version):
    evaluation = version.evaluations.get()
    file = RunDir.for_attempt(evaluation.job_id, 1).outputs / "selftest.json"
    good = json.loads(file.read_text())
    before = self_tests.file_of(version).read_bytes()
    lies = [
        b"[" * 3000,
        json.dumps(good | {"samples": [{"picture": "PHN2Zz4=", "asked": {}, "answer": answer()}]}).encode(),
        json.dumps(good | {"samples": [{"seed": 10**9, "asked": {}, "answer": answer()}]}).encode(),
        json.dumps(good | {"samples": [good["samples"][0] | {"asked": {"top_k": -1}}]}).encode(),
    ]

    for lie in lies:
        file.write_bytes(lie)
        self_tests.keep_evaluated(evaluation)
    file.write_text(json.dumps(good | {"samples": good["samples"][:1]}))
    evaluation.job.owner = bob
    self_tests.keep_evaluated(evaluation)
    assert self_tests.file_of(version).read_bytes() == before
    evaluation.job.owner = alice
    self_tests.keep_evaluated(evaluation)

    assert version.self_test.samples == 1


def test_release_goes_on_with_the_bytes_that_it_began_with(alice, version):
    group = fleet.create(user=alice, name="Gates")
    first = fleet.release(group=group, version=version, share=10, by=alice).wanted
    version.self_test.delete()
    version = ModelVersion.objects.get(pk=version.pk)

    assert fleet.release(group=group, version=version, share=50, by=alice).wanted == first
    assert fleet.release(group=group, version=version, share=50, by=alice).wanted != first
    group.refresh_from_db()
    assert group.before is None


def test_device_whose_answers_differ_is_told_of_in_words_and_halts_the_release(client, alice, version):
    group = fleet.create(user=alice, name="Gates")
    device, code = fleet.add_device(group=group, name="gate-1", by=alice)
    own = client.post("/api/v1/edge/enrol", {"code": code}, content_type="application/json").json()
    fleet.release(group=group, version=version, share=100, by=alice)
    facts = {"sample": 3, "samples": 4, "kind": selftest.BOX, "largest": 0.25, "tolerance": 0.01}

    def report(**more):
        body = {"outcome": "answers_differ", "differs": facts | more}
        headers = {"Authorization": f"Edge {own['token']}"}
        return client.post("/api/v1/edge/report", body, content_type="application/json", headers=headers).status_code

    assert report() == 204
    client.force_login(alice)
    pages = [client.get(path).content.decode() for path in (f"/edge/{group.pk}/", f"/edge/devices/{device.pk}/")]
    group.refresh_from_db()

    assert group.halted
    assert all("Sample 3 of 4: a box differs by 25 % of the image, at most 1 % is allowed." in page for page in pages)
    assert report(kind="<b>") == 204
    device.refresh_from_db()
    assert (device.outcome, device.differs) == ("answers_differ", {})
    assert all(labels.describe_difference(facts | {"kind": kind}) for kind in selftest.KINDS)
