"""`aip run --after … --array …`, `aip follow`, `aip arrays`: what they send and print."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.sockets("a platform's double")

ARRAY = {
    "id": 3, "name": "fold", "indices": "0-9%2", "size": 10, "at_once": 2, "owner": "alice", "cluster": "lab",
    "states": {"running": 2, "queued": 8}, "url": "/arrays/3/",
}  # fmt: skip


def test_run_sends_what_a_job_follows_its_retries_and_its_launcher(aip, platform):
    platform.answers("POST /api/v1/commands/", {"id": 7, "name": "x", "url": "/jobs/7/"}, status=201)

    code = aip(
        "run", "--no-code", "-d", "--after", 12, "--after", 13, "--after-end", 14, "--retries", 3, "--retry-pause", 60,
        "--nodes", 2, "--launcher", "torchrun", "--worker-command", "python help.py", "--", "python", "train.py",
    )  # fmt: skip

    sent = platform.asked("POST /api/v1/commands/")[0].json()
    assert code == 0
    assert (sent["after"], sent["after_end"], sent["retries"], sent["retry_pause_s"]) == ([12, 13], [14], 3, 60)
    assert (sent["launcher"], sent["worker_command"], sent["nodes"]) == ("torchrun", "python help.py", 2)


def test_run_of_an_array_names_it_and_follows_none_of_its_jobs(aip, platform, capfd):
    made = {"id": 7, "name": "fold_0", "url": "/jobs/7/", "array": 3}
    platform.answers("POST /api/v1/commands/", made, status=201)
    platform.answers("GET /api/v1/arrays/3/", ARRAY)

    code = aip("run", "--no-code", "--array", "0-9%2", "--", "true")

    out, err = capfd.readouterr()
    assert (code, out) == (0, "3\n")
    assert "Queued 10 jobs as array 3" in err
    assert platform.asked("POST /api/v1/commands/")[0].json()["array"] == "0-9%2"
    assert not platform.asked("GET /api/v1/jobs/7/")


def test_follow_changes_what_a_waiting_job_follows(aip, platform, capfd):
    platform.answers("POST /api/v1/jobs/20/follow/", {"id": 20, "follows": [{"id": 12}, {"id": 13}]}, status=202)

    aip("follow", 20, "--after", 12, "--after-end", 13, "--outputs-of", 14)

    sent = platform.asked("POST /api/v1/jobs/20/follow/")[0].json()
    assert sent == {"after": [12], "after_end": [13], "outputs_of": [14]}
    assert "Job 20 depends on 12, 13 now." in capfd.readouterr().err


def test_arrays_are_listed_shown_and_stopped(aip, platform, capfd):
    platform.answers("GET /api/v1/arrays/", {"results": [ARRAY], "next": None})
    platform.answers("GET /api/v1/arrays/3/", ARRAY)
    platform.answers("POST /api/v1/arrays/3/stop/", {"requested": 10}, status=202)

    codes = [aip("arrays", "list"), aip("arrays", "show", 3, "--json"), aip("arrays", "stop", 3)]

    out, err = capfd.readouterr()
    assert codes == [0, 0, 0]
    assert "8 queued, 2 running" in out
    assert json.loads(out[out.index("{") :])["size"] == 10
    assert "Requested a stop of 10 jobs of array 3." in err
