"""What the verbs send and how they end."""

from __future__ import annotations

import json

import pytest

from aiplatform.client.commands import resources
from aiplatform.client.commands.submitting import seconds
from aiplatform.client.errors import ClientError
from tests.cli.platform_double import Uploads

pytestmark = pytest.mark.sockets("a platform's double")

JOBS = "/api/v1/training/jobs/"


@pytest.fixture
def bccd(platform):
    """Dataset `bccd` with versions 1 (plain) and 2, 3 (annotated)."""
    platform.answers("GET /api/v1/datasets/", {"next": None, "results": [{"id": 4, "name": "bccd"}]})
    rows = [
        {"id": 11, "number": 1, "annotated": False},
        {"id": 12, "number": 2, "annotated": True},
        {"id": 13, "number": 3, "annotated": True},
    ]
    platform.answers("GET /api/v1/datasets/4/versions/", {"next": None, "results": rows})


def test_submit_command_sends_typed_values_and_prints_the_id(aip, platform, bccd, capsys):
    platform.answers(f"POST {JOBS}", {"id": 7, "state": "queued"}, status=201)

    code = aip(
        "train", "submit", "cells", "--data", "bccd", "--preset", "detect", "--gpus", "2", "-p", "lr=0.01",
        "-p", "epochs=3", "-p", "flip=true", "-p", "note=a b", "-p", "code='7'",
        "--max-runtime", "1h30m", "--extra=-keep:100",
    )  # fmt: skip

    [request] = platform.asked(f"POST {JOBS}")
    assert code == 0
    assert capsys.readouterr().out == "7\n"
    assert len(request.headers["idempotency-key"]) >= 16
    assert request.json() == {
        "name": "cells", "version": 13, "preset": "detect", "nodes": 1, "gpus_per_node": 2,
        "params": {"lr": 0.01, "epochs": 3, "flip": True, "note": "a b", "code": "7"}, "max_runtime_s": 5400,
        "extra": "-keep:100",
    }  # fmt: skip


def test_submit_command_takes_a_named_version(aip, platform, bccd):
    platform.answers(f"POST {JOBS}", {"id": 7, "state": "queued"}, status=201)

    aip("train", "submit", "cells", "--data", "bccd:2", "--preset", "detect")

    assert platform.asked(f"POST {JOBS}")[0].json()["version"] == 12


def test_submit_command_of_own_code_scores_on_raw_data_as_it_learns_from_it(aip, platform):
    platform.answers("GET /api/v1/datasets/", {"next": None, "results": [{"id": 4, "name": "raw"}]})
    platform.answers(
        "GET /api/v1/datasets/4/versions/", {"next": None, "results": [{"id": 21, "number": 1, "annotated": False}]}
    )
    platform.answers(f"POST {JOBS}", {"id": 7, "state": "queued"}, status=201)

    assert aip("train", "submit", "own", "--command", "true", "--data", "raw", "--eval-data", "raw") == 0

    sent = platform.asked(f"POST {JOBS}")[0].json()
    assert (sent["version"], sent["eval_version"]) == (21, 21)


def test_submit_command_exits_5_for_a_dataset_one_cannot_see(aip, platform, capsys):
    platform.answers("GET /api/v1/datasets/", {"next": None, "results": []})

    assert aip("train", "submit", "cells", "--data", "secret", "--preset", "detect") == 5
    assert "No dataset named secret is visible to you." in capsys.readouterr().err


def test_submit_command_packs_and_uploads_own_code_first(aip, platform, tmp_path):
    uploads = Uploads(platform)
    platform.answers(f"POST {JOBS}", {"id": 7, "state": "queued"}, status=201)
    code = tmp_path / "mine"
    (code / ".git").mkdir(parents=True)
    (code / "train.py").write_text("print(1)")

    assert aip("train", "submit", "own", "--data", "13", "--code", code, "--start", "train.py") == 0

    sent = platform.asked(f"POST {JOBS}")[0].json()
    assert (sent["code_upload"], sent["start_file"]) == ("u1", "train.py")
    assert bytes(uploads.data["u1"][:2]) == b"\x1f\x8b"


@pytest.mark.parametrize(
    "wrong",
    [
        ("--preset", "detect", "--code", ".", "--start", "a.py"),
        ("--code", "."),
        (),
        ("--preset", "detect", "-p", "lr"),
        ("--preset", "detect", "--max-runtime", "soon"),
    ],
)
def test_submit_command_refuses_half_a_submission_before_sending(aip, platform, wrong):
    assert aip("train", "submit", "own", "--data", "13", *wrong) == 2
    assert platform.seen == []


@pytest.mark.parametrize(("end", "code"), [("succeeded", 0), ("finished_early", 0), ("failed", 6), ("stopped", 6)])
def test_wait_option_exits_as_the_job_ended(aip, platform, end, code):
    states = [{"id": 7, "state": "queued"}, {"id": 7, "state": "running"}, {"id": 7, "state": end}]
    platform.answers(f"GET {JOBS}7/", *states)

    assert aip("train", "wait", "7") == code


def test_wait_option_of_an_evaluation_ends_once_figures_can_be_read(aip, platform, capsys):
    over = {"id": 5, "state": "succeeded", "published": False, "metrics": {}}
    platform.answers("POST /api/v1/evaluations/", {"id": 5, "state": "queued"}, status=201)
    platform.answers("GET /api/v1/evaluations/5/", over, over | {"published": True, "metrics": {"ap50": 0.9}})

    assert aip("evaluate", "start", "3", "--data", "13", "--wait") == 0
    assert "0.9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "split"),
    [([], "auto"), (["--split", "val"], "val"), (["--split", "all"], ""), (["--set", "4"], None)],
)
def test_evaluate_start_takes_the_split_that_the_page_takes(aip, platform, options, split):
    platform.answers("POST /api/v1/evaluations/", {"id": 5, "state": "queued"}, status=201)

    assert aip("evaluate", "start", "3", "--data", "13", *options) == 0
    assert platform.asked("POST /api/v1/evaluations/")[0].json().get("split") == split


def test_wait_option_outlives_a_restart_of_the_platform(aip, platform):
    left = [503, 503, 200, 503, 200]  # of whether it has folds, and of its end

    def restarting(_):
        return left.pop(0), {"id": 7, "state": "succeeded", "detail": "Starting."}

    platform.routes[f"GET {JOBS}7/"] = restarting

    assert aip("train", "wait", "7") == 0


def test_pause_command_with_wait_ends_when_paused(aip, platform):
    platform.answers(f"POST {JOBS}7/pause/", {"id": 7, "state": "running"}, status=202)
    platform.answers(f"GET {JOBS}7/", {"id": 7, "state": "running"}, {"id": 7, "state": "paused"})

    assert aip("train", "pause", "7", "--wait") == 0


def test_logs_command_prints_a_followed_log_once_from_end_to_end(aip, platform, capsys):
    log = "step 1\nstep 2 \u2713\nstep 3\n"

    def part(request):
        offset = int(request.query["offset"])
        have = 7 if len(platform.seen) < 3 else len(log)
        text = log[offset : min(have, offset + 9)]
        ended = len(platform.seen) > 5
        return 200, {"text": text, "next_offset": offset + len(text), "size": have, "ended": ended}

    platform.routes[f"GET {JOBS}7/log/"] = part

    assert aip("train", "logs", "-f", "7") == 0
    assert capsys.readouterr().out == log


def test_restore_command_sends_only_what_changes(aip, platform):
    platform.answers(f"POST {JOBS}7/restore/", {"id": 7, "state": "queued"}, status=202)

    aip("train", "restore", "7")
    aip("train", "restore", "7", "--checkpoint", "step-000120", "--gpus", "2", "-p", "lr=0.001")

    first, second = (request.json() for request in platform.asked(f"POST {JOBS}7/restore/"))
    assert first == {}
    assert second == {"checkpoint": "step-000120", "gpus_per_node": 2, "params": {"lr": 0.001}}


def test_remove_commands_remove_nothing_without_confirmation(aip, platform, bccd, capsys):
    assert aip("datasets", "delete", "bccd") == 2
    assert not [request for request in platform.seen if request.method == "DELETE"]
    assert "--yes" in capsys.readouterr().err


def test_predict_command_posts_the_image_as_it_is(aip, platform, tmp_path, capsys):
    platform.answers("GET /api/v1/services/3/", {"id": 3, "slug": "cells", "state": "ready"})
    platform.answers("POST /serve/cells/predict", {"detections": []})
    (tmp_path / "a.png").write_bytes(b"png bytes")

    assert aip("serve", "predict", "3", tmp_path / "a.png") == 0

    [request] = platform.asked("POST /serve/cells/predict")
    assert (request.body, request.headers["content-type"]) == (b"png bytes", "image/png")
    assert json.loads(capsys.readouterr().out) == {"detections": []}


def test_predict_command_begins_with_the_best_score_unless_one_is_chosen(aip, platform, tmp_path):
    platform.answers("GET /api/v1/services/3/", {"id": 3, "slug": "cells", "state": "ready", "best_score": 0.41})
    platform.answers("POST /serve/cells/predict", {"detections": []})
    (tmp_path / "a.png").write_bytes(b"png bytes")

    assert aip("serve", "predict", "3", tmp_path / "a.png") == 0
    assert aip("serve", "predict", "3", tmp_path / "a.png", "--min-score", "0.2") == 0

    asked = [request.query for request in platform.asked("POST /serve/cells/predict")]
    assert asked == [{"score_threshold": "0.41"}, {"score_threshold": "0.2"}]


def test_seconds_reads_times_as_people_write_them():
    assert [seconds(text) for text in ("2h30m", "90m", "45", "1d", "10s")] == [9000, 5400, 45, 86400, 10]
    with pytest.raises(ClientError):
        seconds("tomorrow")


def test_annotation_command_turns_labels_into_a_version(aip, platform, capsys):
    base = "/api/v1/annotation/projects/2/"
    platform.answers(f"GET {base}datasets/", {"next": None, "results": [{"id": 5, "name": "cells"}]})
    platform.answers(f"POST {base}exports/", {"id": 9, "state": "converting"}, status=202)
    platform.answers(
        f"GET {base}exports/9/", {"id": 9, "state": "converting"}, {"id": 9, "state": "success", "version": 31}
    )

    assert aip("annotation", "freeze", "2") == 0
    assert capsys.readouterr().out == "31\n"
    assert platform.asked(f"POST {base}exports/")[0].json() == {"dataset": 5, "make_version": True}


def test_annotation_export_command_that_fails_exits_6(aip, platform, capsys):
    base = "/api/v1/annotation/projects/2/"
    platform.answers(f"GET {base}datasets/", {"next": None, "results": [{"id": 5, "name": "cells"}]})
    platform.answers(f"POST {base}exports/", {"id": 9, "state": "converting"}, status=202)
    platform.answers(f"GET {base}exports/9/", {"id": 9, "state": "failed", "detail": "No image is annotated."})

    assert aip("annotation", "export", "2") == 6
    assert "No image is annotated." in capsys.readouterr().err


def test_nodes_command_drains_by_name_and_removes_only_when_sure(aip, platform, capsys):
    platform.answers("GET /api/v1/nodes/", {"next": None, "results": [{"id": 3, "name": "gpu-03"}]})
    for verb, state in (("drain", "draining"), ("remove", "removed")):
        platform.answers(f"POST /api/v1/nodes/3/{verb}/", {"name": "gpu-03", "state": state})

    assert aip("nodes", "drain", "gpu-03") == 0
    assert aip("nodes", "remove", "gpu-03") != 0  # nobody at a terminal said yes
    assert platform.asked("POST /api/v1/nodes/3/remove/") == []
    assert aip("nodes", "remove", "gpu-03", "--yes") == 0
    assert "gpu-03 is draining." in capsys.readouterr().err


def test_nodes_command_prints_a_token_alone(aip, platform, capsys):
    platform.answers("POST /api/v1/nodes/tokens/", {"id": 1, "token": "join_abc"}, status=201)

    assert aip("nodes", "token") == 0
    assert capsys.readouterr().out == "join_abc\n"


def test_queue_command_prints_in_order_with_reasons(aip, platform, capsys):
    row = {
        "position": 1, "number": 7, "name": None, "kind": "Training", "owner": "Bob", "cluster": "lab",
        "asks_for": "2/8 GPU", "priority": 100, "urgent": True, "sentence": "Waits for cards.", "eta": None,
    }  # fmt: skip
    platform.answers("GET /api/v1/jobs/queue/", {"waiting": [row], "total": 4})

    assert aip("queue", "--mine") == 0

    printed = capsys.readouterr()
    assert "4 queued in total." in printed.err
    assert "Waits for cards." in printed.out
    assert platform.seen[-1].query == {"mine": "True"}


@pytest.mark.parametrize(("said", "sent"), [("7", 7), ("urgent", 100)])
def test_priority_command_changes_a_waiting_job(aip, platform, said, sent):
    platform.answers("POST /api/v1/jobs/7/priority/", {"id": 7}, status=202)

    assert aip("priority", "7", said) == 0
    assert platform.seen[-1].json() == {"priority": sent}
    assert aip("priority", "7", "high") == 2


def test_submitting_commands_all_request_machines_alike(aip, platform):
    for route in ("training/jobs/", "evaluations/", "services/"):
        platform.answers(f"POST /api/v1/{route}", {"id": 7, "state": "queued"}, status=201)
    asked = ("--gpus", "1", "--share", "2", "--cpus", "2", "--memory", "1.5", "--urgent", "--preemptible")
    asked += ("--max-disk", "20GiB")
    for words in (
        ("train", "submit", "small", "--data", "13", "--preset", "detect"),
        ("evaluate", "start", "3", "--data", "13"),
        ("serve", "create", "small", "--model", "3"),
    ):
        assert aip(*words, *asked) == 0

        sent = platform.seen[-1].json()
        expected = {"gpus_per_node": 1, "share": 2, "cpus": 2.0, "memory_mib": 1536, "priority": 100}
        expected["max_disk_bytes"] = 20 << 30
        assert {name: sent[name] for name in expected} == expected
        assert sent["preemptible"] is True


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20GiB", 20 << 30), ("20G", 20 << 30), ("20gb", 20 * 10**9), ("1.5TiB", 3 << 39), ("500 MB", 500 * 10**6),
        ("1048576", 1 << 20), ("7B", 7),
    ],
)  # fmt: skip
def test_sizes_are_read_in_binary_and_decimal_units(text, size):
    assert resources.size(text, "--max-disk") == size


@pytest.mark.parametrize("text", ["much", "20 GiB left", "-1GiB", "1e9", "20XB", " "])
def test_size_that_is_none_is_refused(aip, capsys, text):
    assert aip("serve", "create", "small", "--model", "3", f"--max-disk={text}") == 2
    assert "write it as 20GiB, 500MB or 1TiB." in capsys.readouterr().err


def test_upload_command_knows_the_formats_of_the_platform():
    from aiplatform.client.commands import importing
    from datasets.api.serializers import FORMATS

    assert importing.FORMATS == FORMATS


def test_train_show_takes_a_name_and_names_the_ids_of_several(aip, platform, capsys):
    rows = [{"id": 7, "name": "cells"}, {"id": 8, "name": "cells 2"}]
    platform.answers(f"GET {JOBS}", {"next": None, "results": rows})
    platform.answers(f"GET {JOBS}7/", {"id": 7, "name": "cells", "state": "queued"})

    assert aip("train", "show", "cells") == 0
    platform.answers(f"GET {JOBS}", {"next": None, "results": [rows[0], rows[0] | {"id": 9}]})
    assert aip("train", "show", "cells") == 2

    said = capsys.readouterr()
    assert "cells" in said.out
    assert "use one of the ids 7, 9." in said.err


def test_split_command_sends_the_shares_and_says_where_it_is_made(aip, platform, bccd, capsys):
    platform.answers("POST /api/v1/versions/13/split/", {"id": 5, "dataset": 4, "state": "committing"}, status=202)

    code = aip("datasets", "split", "bccd", "--shares", "70/20/10", "--seed", "3", "--group", "prefix")

    [request] = platform.asked("POST /api/v1/versions/13/split/")
    assert code == 0
    assert request.json() == {
        "train": 70, "val": 20, "test": 10, "seed": 3, "group": "prefix", "stratify": True,
    }  # fmt: skip
    assert "import 5 of dataset 4" in capsys.readouterr().err


def test_split_command_shows_what_each_split_would_get(aip, platform, bccd, capsys):
    images = {"train": 255, "val": 73, "test": 36}
    platform.answers("POST /api/v1/versions/12/split/", {"images": images, "classes": {}, "groups": 364, "moved": 9})

    assert aip("datasets", "split", "bccd:2", "--dry-run") == 0
    assert capsys.readouterr().out.split() == ["train", "255", "val", "73", "test", "36"]
    assert aip("datasets", "split", "bccd", "--shares", "70/30") == 2
