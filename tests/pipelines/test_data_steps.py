"""Steps that make data, wait for people, search and compare; their imports and jobs end as a test says."""

import json
from datetime import timedelta

import pytest

from aiplatform.lib.errors import Invalid
from annotation.services import exports, review, work
from datasets.models import Dataset, Import
from datasets.services import imports
from inference.evaluation.models import Evaluation
from inference.pipelines import checks, expressions, graph, loop, runs, trigger_firings
from inference.pipelines.models import PipelineRun, StepRun
from inference.pipelines.steps import long_running
from inference.registry import aliases
from tests.factories import annotation as annotated
from tests.factories import datasets as data
from tests.factories import models
from tests.factories import work as jobs
from tests.inference import judged
from tests.pipelines.made import again, begun, command, end, pipeline, states, step
from tests.studies import helpers as studies
from training.studies import advancing
from training.studies.models import Study
from workers.core.clock import now
from workers.core.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def dataset(name="cells"):
    return {"kind": "dataset", "with": {"dataset": name}}


def looked(run):
    """Time passes, and the run is looked at."""
    StepRun.objects.filter(run=run, state="started", job=None).update(look_at=now() - timedelta(seconds=1))
    loop.advance_run(run.pk)
    run.refresh_from_db()


def imported(run, *names):
    """Run the imports that these steps requested."""
    for name in names:
        imports.run(step(run, name).kept["import"])
    looked(run)


def numbers(run, name):
    return step(run, name).outputs["figures"]["values"]


def test_data_is_chosen_split_and_merged_and_the_next_run_takes_the_same(alice):
    data.version(data.dataset(alice, "cells"), images=8)
    data.version(data.dataset(alice, "more"), images=2, task="none")
    steps = {
        "cells": dataset(), "more": dataset("more"),
        "some": {"kind": "filter", "with": {"query": "class=cell"}, "from": {"data": "cells.data"}},
        "dealt": {"kind": "split", "with": {"train": 50, "val": 50, "test": 0}, "from": {"data": "some.data"}},
        "all": {"kind": "merge", "with": {"into": "both"}, "from": {"data": ["dealt.data", "more.data"]}},
    }  # fmt: skip
    made = pipeline(alice, steps)
    run = again(made, alice)
    imports.run(step(run, "some").kept["import"])
    assert trigger_firings.ancestry_of(Dataset.objects.get(name="cells_some").newest) == (made.pk,)  # nobody looked yet
    looked(run)
    assert trigger_firings.ancestry_of(Dataset.objects.get(name="cells").newest) == ()
    imported(run, "dealt")
    imported(run, "all")

    assert run.state == "ok"
    assert numbers(run, "some") == {"images": 4, "annotations": 4, "train": 4}
    assert step(run, "some").outputs["data"]["label"] == "cells_some v1"
    assert numbers(run, "dealt") == {"images": 4, "annotations": 4, "train": 2, "val": 2}
    assert step(run, "dealt").outputs["data"]["label"] == "cells_some v2"
    assert numbers(run, "all")["images"] == 5  # one of the two further images is among the four
    assert Dataset.objects.get(name="both").owner == alice
    second = again(made, alice)
    assert {name: states(second)[name] for name in ("some", "dealt", "all")} == dict.fromkeys(
        ("some", "dealt", "all"), "cached"
    )


def test_step_waits_while_another_import_of_its_dataset_is_open_and_is_stopped_with_its_own(
    alice, django_capture_on_commit_callbacks
):
    cells = data.version(data.dataset(alice, "cells"), images=4)
    other = imports.start_from(version=cells, rewrite="chosen", facts={"query": "q=1"}, annotated=True, by=alice)
    steps = {"cells": dataset(), "dealt": {"kind": "split", "from": {"data": "cells.data"}}}
    run = begun(alice, steps)
    looked(run)
    assert "import" not in step(run, "dealt").kept

    stopped = begun(alice, {"cells": dataset(), "some": {
        "kind": "filter", "with": {"query": "class=cell"}, "from": {"data": "cells.data"}}})  # fmt: skip
    runs.cancel(stopped)
    with django_capture_on_commit_callbacks(execute=True):
        loop.advance_run(stopped.pk)
    intake = Import.objects.get(pk=step(stopped, "some").kept["import"])
    assert (states(stopped)["some"], intake.state) == ("cancelled", "cancelled")

    imports.run(other.pk)
    looked(run)
    imported(run, "dealt")
    assert (run.state, step(run, "dealt").outputs["data"]["label"]) == ("ok", "cells v3")


def test_data_of_others_is_not_changed_and_what_is_wrong_is_said_before_the_run(alice, bob):
    shared = data.dataset(bob, "open", visibility="public")
    data.version(shared, images=4)
    run = begun(alice, {"open": dataset("bob/open"), "dealt": {"kind": "split", "from": {"data": "open.data"}}})
    assert "You cannot edit" in str(step(run, "dealt").message)

    steps = {
        "open": dataset("bob/open"),
        "some": {"kind": "filter", "with": {"query": "size=3"}, "from": {"data": "open.data"}},
        "dealt": {"kind": "split", "with": {"train": 50}, "from": {"data": "open.data"}},
        "study": {"kind": "study", "from": {"data": "open.data"},
                  "with": {"preset": "none", "space": ["x = 5 .. 1"], "objectives": ["loss"]}},
        "wait": {"kind": "people", "with": {"project": "nothing"}},
        "judge": {"kind": "evaluate", "from": {"data": "open.data", "model": "study.model"}},
        "better": {"kind": "compare", "from": {"figures": "judge.figures"}, "with": {"champion": "a@b@c"}},
    }  # fmt: skip
    problems = checks.problems(graph.parse({"steps": steps}), alice)
    assert {(problem.step, problem.field) for problem in problems} == {
        ("some", "query"), ("dealt", "train"), ("study", "preset"), ("wait", "project"), ("better", "champion"),
    }  # fmt: skip


def test_model_annotates_what_nobody_has_and_leaves_the_rest(alice, tmp_path):
    cells = data.version(data.dataset(alice, "cells"), images=2)
    data.version(data.dataset(alice, "new"), images=4, task="none")
    model = models.model_version(alice, tmp_path)
    reds = next(entry["id"] for entry in model.classes if entry["name"] == "red")
    steps = {
        "cells": dataset(), "new": dataset("new"), "model": {"kind": "input", "with": {"model": "cells:1"}},
        "all": {"kind": "merge", "with": {"into": "all"}, "from": {"data": ["cells.data", "new.data"]}},
        "draft": {"kind": "annotate", "with": {"min_score": 0.5}, "from": {"data": "all.data", "model": "model.model"}},
    }  # fmt: skip
    run = begun(alice, steps)
    imported(run, "all")
    job = step(run, "draft").job
    prediction = job.prediction
    listed = [json.loads(line) for line in prediction.listing.read_text().splitlines()]
    assert listed == ["a/2.png", "a/3.png"]
    chunks = jobs.run_dir(job, 1).outputs / "chunks"
    chunks.mkdir(parents=True)
    size = {"width": 40, "height": 30}
    answers = [{"class_id": reds, "score": score, "box": [1, 2, 11, 12]} for score in (0.9, 0.2)]
    lines = [{}, *({"n": n, "path": path, "predictions": answers, **size} for n, path in enumerate(listed))]
    (chunks / "0000000.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (chunks.parent / "summary.json").write_text(json.dumps({"done": 2, "total": 2, "complete": True}))
    end(job)
    loop.advance_run(run.pk)
    imported(run, "draft")

    assert run.state == "ok"
    made = Dataset.objects.get(name="all").newest
    assert numbers(run, "draft") == {"images": 4, "annotations": 4, "answered": 2, "train": 4}
    stands = [[made.class_names[shape[0]] for shape in asset.shapes] for asset in made.assets.order_by("path")]
    assert sorted(stands) == [["cell"], ["plate"], ["red"], ["red"]]
    assert "Draft by model cells v1, batch prediction p0_1_draft" in str(made.story)
    assert cells.dataset.versions.count() == 1
    assert prediction.made.get().dataset == made.dataset

    done = begun(alice, {"cells": dataset(), "model": steps["model"], "draft": {
        "kind": "annotate", "from": {"data": "cells.data", "model": "model.model"}}})  # fmt: skip
    assert (states(done)["draft"], step(done, "draft").job, numbers(done, "draft")["answered"]) == ("ok", None, 0)


def accept(task, by):
    annotated.draw(task, by)
    work.submit(task=task, by=by)
    review.judge(task=task, by=by, verdict="accepted")


def test_people_are_waited_for_and_only_new_images_count(alice):
    smears = annotated.annotation_set(alice)
    people = {"kind": "people", "with": {"project": "Blood", "at_least": 2}}
    made = pipeline(alice, {"wait": people})
    run = again(made, alice)
    first, second, third = smears.tasks.order_by("number")
    accept(first, alice)
    looked(run)
    assert (states(run)["wait"], "export" in step(run, "wait").kept, Job.objects.count()) == ("started", False, 0)

    accept(second, alice)
    looked(run)
    exports.convert(step(run, "wait").kept["export"])
    looked(run)
    assert run.state == "ok"
    assert numbers(run, "wait") == {"images": 3, "annotations": 2, "new_images": 2, "train": 3}
    assert step(run, "wait").outputs["data"]["label"] == f"{smears.source.dataset} v2"

    later = again(made, alice)
    looked(later)
    accept(third, alice)
    looked(later)
    assert "export" not in step(later, "wait").kept  # one new image, of two that are waited for
    runs.cancel(later)
    loop.advance_run(later.pk)
    assert states(later)["wait"] == "cancelled"


def test_people_who_take_too_long_end_the_wait_as_it_says(alice):
    smears = annotated.annotation_set(alice)
    accept(smears.tasks.get(number=1), alice)
    params = {"project": "Blood", "until": "all", "hours": 1}
    steps = {
        "strict": {"kind": "people", "with": params},
        "mild": {"kind": "people", "with": params | {"at_expiry": "go_on"}},
    }
    run = begun(alice, steps)
    for row in StepRun.objects.filter(run=run):
        StepRun.objects.filter(pk=row.pk).update(kept=row.kept | {"expires": (now() - timedelta(hours=1)).isoformat()})
    looked(run)

    assert str(step(run, "strict").message) == "1 of 3 new images were annotated in time."
    exports.convert(step(run, "mild").kept["export"])
    looked(run)
    assert (states(run), numbers(run, "mild")["new_images"]) == ({"strict": "failed", "mild": "ok"}, 1)


def test_study_gives_its_best_trial_and_stops_with_the_run(alice):
    data.version(data.dataset(alice, "pets"), task="classification")
    steps = {"pets": dataset("pets"), "hunt": {"kind": "study", "from": {"data": "pets.data"}, "with": {
        "preset": "classify", "space": ["lr = 0.001 .. 0.1 log"], "max_trials": 2, "gpus": 0, "params": {"epochs": 2},
        "objectives": [{"key": "val/accuracy", "direction": "maximize"}], "request": {"seed": 1},
    }}}  # fmt: skip
    run = begun(alice, steps)
    study = Study.objects.get()
    assert (study.owner, study.seed, study.request["params"]) == (alice, 1, {"epochs": 2})
    advancing.advance(study.pk)
    looked(run)
    assert states(run)["hunt"] == "started"
    for trial, value in zip(study.trials.order_by("number"), (0.7, 0.9), strict=True):
        studies.complete(trial, value, key="val/accuracy")
    advancing.advance(study.pk)
    looked(run)
    assert run.state == "ok"
    metrics = numbers(run, "hunt")
    assert (metrics["val/accuracy"], metrics["trials"], metrics["completed"]) == (0.9, 2, 2)
    assert step(run, "hunt").outputs["figures"]["trial"] == 1

    stopped = begun(alice, steps, use_cache=False)
    runs.cancel(stopped)
    loop.advance_run(stopped.pk)
    assert (states(stopped)["hunt"], Study.objects.order_by("-pk")[0].state) == ("cancelled", "stopped")


@pytest.fixture
def compare(alice):
    """A comparison of figures in a run, as far as it comes without a job; its figures, and its row."""

    def compared(evaluation, **params):
        steps = {"one": command(), "two": {"kind": "compare", "with": params, "from": {"figures": "one.figures"}}}
        run = begun(alice, steps)
        outputs = {"figures": {"type": "figures", "evaluation": evaluation.pk, "values": {}}}
        StepRun.objects.filter(run=run, step="one").update(state="ok", outputs=outputs)
        PipelineRun.objects.update(is_due=True)
        loop.advance_run(run.pk)
        long_running.do_aside(step(run, "two").pk)
        loop.advance_run(run.pk)
        row = step(run, "two")
        return row.outputs["figures"]["values"] if row.outputs else {}, row

    return compared


def holds(rule, values):
    return expressions.parse(rule).value(values)


def test_candidate_is_compared_with_the_champion_image_by_image(alice, compare, tmp_path):
    champion = judged.evaluation(alice, tmp_path, task="classification")
    other = models.model_version(alice, tmp_path / "other", name="other", task="classification")
    candidate = judged.judged(alice, other, champion.version)
    aliases.assign(version=champion.model_version, name="champion", by=alice)
    named = f"{champion.model_version.model.name}@champion"
    judged.rewrite(champion, [True] * 60 + [False] * 40)
    judged.rewrite(candidate, [True] * 75 + [False] * 25)

    done, _row = compare(candidate, champion=named)
    assert holds("difference.accuracy.low > 0 and better.accuracy == 1 and p < 0.05 and champion.exists == 1", done)
    assert holds("accuracy == 0.75 and images == 100 and difference.accuracy > 0.14 and worse.accuracy == 0", done)
    judged.rewrite(candidate, [True] * 61 + [False] * 39)
    assert not holds("difference.accuracy.low > 0", compare(candidate, champion=named)[0])
    assert not holds("difference.accuracy.low > 0 or better.accuracy > 0", compare(champion, champion=named)[0])

    Evaluation.objects.filter(pk=champion.pk).delete()
    _none, row = compare(candidate, champion=named)
    again_ = Evaluation.objects.get(job=row.job)
    assert row.state == "started"
    assert (again_.model_version, again_.version, again_.split, again_.params) == (
        champion.model_version, candidate.version, candidate.split, candidate.params,
    )  # fmt: skip


def test_first_candidate_passes_where_there_is_no_champion_yet(alice, compare, tmp_path):
    candidate = judged.evaluation(alice, tmp_path, task="classification")

    with pytest.raises(Invalid, match="Model net_classification@champion not found"):
        compare(candidate, champion="net_classification@champion")
    _none, row = compare(candidate, champion="net_clasification@champion", first=True)
    assert row.state == "failed"  # a champion of a model that nobody has

    done, row = compare(candidate, champion="net_classification@champion", first=True)
    assert "passes as the first one" in str(row.message)
    assert holds("champion.exists == 0 and difference.accuracy.low > 0 and accuracy > champion.accuracy", done)
    assert holds("classification_loss < champion.classification_loss" if "classification_loss" in
                 candidate.metrics else "p == 0", done)  # fmt: skip
