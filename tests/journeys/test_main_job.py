"""From a bare folder to a model in use, through `manage.py up` and the REST API, while processes are killed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from aiplatform.cli.demo import digits
from aiplatform.cli.demo.main_job import MainJob, connect
from aiplatform.client.errors import ClientError
from tests.journeys.up import PASSWORD, Browser, Up, call, first_admin, running, until

pytestmark = pytest.mark.journey


def person(up: Up, admin: str, name: str, role: str, *, clusters: list[int]) -> str:
    """Have the administrator make a person; return that person's token."""
    _status, roles = call(up.url, admin, "GET", "roles/")
    ids = {row["name"]: row["id"] for row in roles["results"]}
    body = {
        "username": name,
        "nickname": name.title(),
        "roles": [ids[role]],
        "clusters": clusters,
        "password": PASSWORD,
    }
    status, answer = call(up.url, admin, "POST", "users/", body)
    assert status == 201, answer
    status, answer = call(up.url, "", "POST", "auth/token/", {"username": name, "password": PASSWORD})
    if status != 201:  # the first password must be changed by its owner
        browser = Browser(up.url)
        page = browser.post("/login/", username=name, password=PASSWORD)
        assert "password" in page
        browser.post("/account/password/", current=PASSWORD, password=PASSWORD + "x", again=PASSWORD + "x")
        status, answer = call(up.url, "", "POST", "auth/token/", {"username": name, "password": PASSWORD + "x"})
    assert status == 201, answer
    return answer["token"]


def score_against_itself(path: str) -> float:
    """AP of a COCO file taken as its own detections, by pycocotools."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = COCO(path)
    found = truth.loadRes(
        [
            {"image_id": a["image_id"], "category_id": a["category_id"], "bbox": a["bbox"], "score": 1.0}
            for a in truth.dataset["annotations"]
        ]
    )
    judge = COCOeval(truth, found, "bbox")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    return float(judge.stats[0])


def test_platform_leads_from_images_to_a_model_whatever_is_killed(tmp_path):
    with running(tmp_path / "data") as up:
        admin = first_admin(up)
        _status, clusters = call(up.url, admin, "GET", "clusters/")
        alice = person(up, admin, "alice", "User", clusters=[clusters["results"][0]["id"]])
        anna = person(up, admin, "anna", "Annotator", clusters=[])
        bob = person(up, admin, "bob", "User", clusters=[])
        main = MainJob(connect(up.url, alice), tmp_path, lambda text: print(text, flush=True))
        made = digits.draw({"train": 12, "val": 4, "test": 4}, classes=(0, 1, 2))
        plain = digits.draw({"": 3}, classes=(0, 1, 2), seed=11)
        folder = digits.write(tmp_path / "digits", made, annotated=True)

        # 3. bring data in; a stranger does not see it, an annotator has no business there
        data = main.bring_in("digits", "Digits on grounds", folder)
        raw = main.bring_in("plain", "Digits without boxes", digits.write(tmp_path / "plain", plain, annotated=False))
        assert data["report"]["images"] == 20
        assert call(up.url, bob, "GET", f"datasets/{data['dataset']}/")[0] == 404
        assert call(up.url, anna, "GET", "datasets/")[0] == 403

        # 4. and 5. draw, convert to COCO, freeze; the web server dies in between
        assert up.kill("aiplatform.cli.web")
        up.wait(r"web\d* +│ exited with -9", 120)
        until(lambda: call(up.url, alice, "GET", "me/")[0] == 200, 60, "The web server's return")
        drawn = main.annotate(raw["version"], plain, project_name="digits")
        assert drawn["shapes"] == sum(len(picture.boxes) for picture in plain)
        assert score_against_itself(drawn["coco"]) == pytest.approx(1.0)

        # 6. train; pause; everything but the program itself dies; continue; finish early
        params = {
            "steps": 100_000,
            "budget_minutes": 30,
            "checkpoint_minutes": 0.02,
            "batch_size": 4,
            "width": 96,
            "height": 64,
        }
        asked = {"name": "digits", "version": data["version"], "preset": "detect", "params": params, "cpus": 1}
        status, job = call(up.url, alice, "POST", "training/jobs/", asked)
        assert status == 201, job
        route = f"training/jobs/{job['id']}/"

        def state(*wanted: str) -> dict | None:
            _status, row = call(up.url, alice, "GET", route)
            assert row["state"] not in {"failed", "lost"}, (row, log_of(up, row))
            return row if row["state"] in wanted else None

        until(lambda: state("running"), 60, "The training's start")
        until(lambda: checkpoints(up, alice, route), 120, "A first checkpoint")
        assert call(up.url, alice, "POST", f"{route}pause/", {})[0] in {200, 202}
        until(lambda: state("paused"), 30, "The pause")
        for word in ("manage.py\0agent", "manage.py\0scheduler", "celery", "valkey", "aiplatform.cli.web"):
            assert up.kill(word) >= 1, word
        # the wish may have been taken by a server that died before it could answer
        until(
            lambda: call(up.url, alice, "POST", f"{route}continue/", {})[0] in {200, 202} or state("running"),
            120,
            "Continuing",
        )
        until(lambda: state("running"), 60, "Going on")
        assert call(up.url, bob, "POST", f"{route}stop/", {})[0] == 404
        until(lambda: curve(up, alice, route), 60, "A loss curve")

        # the job's process supervisor dies too: a new attempt goes on from the checkpoint
        kill_supervisor(up, state("running")["job"], 1)
        until(lambda: (row := state("running")) and row["attempt"] == 2, 60, "The second attempt")
        until(
            lambda: "restored" in log_of(up, state("running")),
            90,
            "Going on from it",
        )
        assert call(up.url, alice, "POST", f"{route}finish/", {})[0] in {200, 202}
        done = until(lambda: state("finished_early", "succeeded"), 180, "The early end")

        # 7. registered with its lineage, evaluated on the test split
        model = main.model_of(done)
        assert call(up.url, bob, "GET", f"model-versions/{model['id']}/")[0] == 404
        judged = main.evaluate(model["id"], data["version"], split="test")
        assert 0 <= judged["metrics"]["ap50"] <= 1

        # 8. served: an image goes in, predictions come out; strangers are kept out; stopped and started again
        service = main.serve(model["id"], "digits")
        picture = next(item for item in made if item.split == "test")
        answer = main.predict(service["slug"], folder / "images" / picture.name)
        assert answer["image"] == {"width": digits.WIDTH, "height": digits.HEIGHT}
        assert isinstance(answer["predictions"], list)
        with pytest.raises(ClientError):
            MainJob(connect(up.url, bob), tmp_path, print).predict(service["slug"], folder / "images" / picture.name)
        assert call(up.url, alice, "POST", f"services/{service['id']}/stop/", {})[0] in {200, 202}
        until(lambda: call(up.url, alice, "GET", f"services/{service['id']}/")[1]["state"] == "stopped", 60, "Stopping")

        # 9. what is granted counts from the very next request, a limit from the next start; the operator stops the job
        share, cluster = {"person": "bob", "level": "use"}, f"clusters/{clusters['results'][0]['id']}/"
        assert call(up.url, alice, "PUT", f"shares/dataset/{data['dataset']}/", share)[0] == 200
        asked["name"] = "long"
        refused = call(up.url, bob, "POST", "training/jobs/", asked)
        assert (refused[0], refused[1]["code"]) == (403, "not_a_member"), refused
        assert call(up.url, admin, "PATCH", cluster, {"jobs_per_user": 1})[0] == 200
        assert call(up.url, admin, "POST", f"{cluster}members/", {"user": "bob"})[0] == 201
        bobs = []
        for _turn in range(2):
            status, made = call(up.url, bob, "POST", "training/jobs/", asked)
            assert status == 201, made
            bobs.append(made["job"])

        def seen(field: str) -> list:
            return [call(up.url, admin, "GET", f"jobs/{job}/")[1][field] for job in bobs]

        until(lambda: seen("state") == ["running", "queued"] and seen("wait_code")[1] == "user_jobs", 60, "The first")
        assert call(up.url, admin, "PATCH", cluster, {"jobs_per_user": None})[0] == 200
        until(lambda: seen("state") == ["running", "running"], 60, "The start of what waited for the limit")
        assert call(up.url, admin, "POST", "jobs/stop/", {"jobs": bobs})[0] == 200
        until(lambda: seen("state") == ["stopped", "stopped"], 60, "The operator's stop")
        assert seen("reason") == ["operator", "operator"]
        assert processes_left(tmp_path / "data") == []


def log_of(up: Up, row: dict | None) -> str:
    if not row:
        return ""
    path = up.folder / "jobs" / str(row["job"]) / str(row["attempt"]) / "log.txt"
    return path.read_text(errors="replace") if path.exists() else ""


def checkpoints(up: Up, token: str, route: str) -> list:
    answer = call(up.url, token, "GET", f"{route}checkpoints/")[1]
    return answer["results"] if isinstance(answer, dict) and "results" in answer else answer


def curve(up: Up, token: str, route: str) -> list:
    answer = call(up.url, token, "GET", f"{route}metrics/")[1]
    return [key for key in answer["keys"] if "loss" in key]


def kill_supervisor(up: Up, job: int, attempt: int) -> None:
    import os
    import signal

    record = json.loads((up.folder / "jobs" / str(job) / str(attempt) / "supervisor.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)


def processes_left(root: Path) -> list[str]:
    """Processes of jobs below `root` once those that are ending have ended, a minute at most."""
    from tests.running import processes_of

    deadline = time.monotonic() + 60
    while processes_of(root) and time.monotonic() < deadline:
        time.sleep(0.2)
    return list(processes_of(root).values())
