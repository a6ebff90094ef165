"""The likely cause of a failure, as its page, the API and `aip` say it."""

import time
from datetime import timedelta

import pytest
from django.utils.timezone import now

from aiplatform.lib.wording import message
from tests.cases import case_table
from tests.factories import curves, work
from workers.jobs import transitions
from workers.jobs.output import causes

CERTAIN = {
    "card_memory": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "memory": "[program] over_memory limit_bytes=1073741824 held_bytes=1200000000",
    "over_disk": "[program] over_disk limit_bytes=21474836480 used_bytes=22548578304",
    "over_time": "[program] over_time seconds=60",
    "python_memory": "MemoryError",
    "shared_memory": "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that",
    "disk_full": "OSError: [Errno 28] No space left on device",
    "module_missing": "ModuleNotFoundError: No module named 'timm.models'",
    "program_missing": "/srv/command.sh: line 1: nvidia-smj: command not found",
    "file_missing": "FileNotFoundError: [Errno 2] No such file or directory: '/data/train'",
    "label_range": "RuntimeError: CUDA error: device-side assert triggered",
    "card_unsupported": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "card_lost": "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "mps_failed": "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server",
    "mps_full": "cudaErrorMpsMaxClientsReached: the hardware resources required to create MPS client are exhausted",
    "machines_apart": "[rank1]: [E ProcessGroupNCCL.cpp:475] Watchdog caught collective operation timeout: WorkNCCL",
    "thread_left": "terminate called without an active exception",
    "port_taken": "OSError: [Errno 98] Address already in use",
}


def codes(text):
    return [cause.message.code.removeprefix("cause.") for cause in causes.in_text(text)]


@case_table("code", CERTAIN)
def test_cause_is_read_from_the_line_that_is_certain(code):
    assert codes(f"epoch 1\n{CERTAIN[code]}\nTraceback ends\n") == [code]


@case_table("code", sorted({*CERTAIN} - {"memory", "over_disk", "over_time"}))
def test_cause_is_read_from_the_line_of_one_of_several_processes(code):
    assert codes(f"[rank0]: epoch 1\n[rank3]: {CERTAIN[code]}\n") == [code]


def test_cause_has_a_pattern_and_words_each():
    of_facts = {"mps_shared"}  # a fault that counts for jobs that shared their card alone
    assert set(CERTAIN) == {code for code in causes.LABELS if not code.startswith("cards_")} - of_facts


NEAR = {
    "card_memory": "CUDA out of memory was handled: the batch is halved",
    "memory": "[program] over_memory soon",
    "over_disk": "[program] over_disk soon",
    "over_time": "[program] over_time again",
    "python_memory": "MemoryErrors are caught, std::bad_alloc as well",
    "shared_memory": "DataLoader worker 3 was killed on purpose",
    "disk_full": "it would say No space left on device if it were full",
    "module_missing": "Warning: ModuleNotFoundError: No module named 'apex', going on without",
    "program_missing": "ERROR: dataset.json: not found",
    "file_missing": "skipped: FileNotFoundError: [Errno 2] No such file or directory: '/data/7.png'",
    "label_range": "a device-side assert would mean a wrong label",
    "card_unsupported": "a kernel image is available",
    "card_lost": "no uncorrectable ECC error was seen",
    "mps_failed": "MPS client failed to learn anything",
    "mps_full": "the hardware resources required to create MPS client are there",
    "machines_apart": "no collective operation timeout yet",
    "thread_left": "terminate called without an active exception in a test, as it should be",
    "port_taken": "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 "
    "(errno: 98 - Address already in use).",
}


def test_cause_has_a_near_miss_each():
    assert set(NEAR) == set(CERTAIN)


@case_table(
    "line",
    [
        *NEAR.values(),
        "HTTPError: 404: /api/x: not found",
        "config.yml: line 3: batch: not found",
        "loss 0.3, memory 12 GiB",
        "key not found in cache",
        "retrying: connection refused",
    ],
)
def test_cause_is_not_guessed(line):
    assert codes(f"{line}\nAssertionError\n") == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("sh: 1: trian: not found", "trian"),
        ("sh: trian: not found", "trian"),
        ("/bin/bash: line 3: ./trian: command not found", "./trian"),
        ("/run/7/command.sh: 2: trian: not found", "trian"),
        ("/srv/start: line 9: trian: command not found", "trian"),
    ],
)
def test_missing_program_is_read_as_each_shell_says_it(line, name):
    assert [cause.message.facts for cause in causes.in_text(line)] == [{"name": name}]


@case_table(
    "words", ["CUDA error: ", "CUDA error: MPS ", "DataLoader worker ", "OSError: [Errno 1] ", "/sh", "/a/", "what(): "]
)
def test_cause_is_looked_for_in_a_long_line_in_time(words):
    started = time.process_time()

    causes.in_text((words * causes.MAX_READ_BYTES)[: causes.MAX_READ_BYTES])

    assert time.process_time() - started < 0.5  # 0.05 s, and 2 s where the search is quadratic


def test_causes_of_several_machines_are_read_apart():
    found = causes.in_texts(["starting OSError: ", f"[rank1]: {CERTAIN['port_taken']}", CERTAIN["disk_full"]])

    assert [cause.message.code for cause in found] == ["cause.port_taken", "cause.disk_full"]


def test_causes_come_newest_first_and_each_once():
    assert codes("MemoryError\nMemoryError\nOSError: [Errno 28] No space left on device\n") == [
        "disk_full",
        "python_memory",
    ]


@pytest.fixture
def failed(db, alice, cluster):
    job = work.job(alice, cluster, state="failed", reason="user_code")
    work.run_dir(job).log.write_bytes(b"x\n" * 50_000 + CERTAIN["module_missing"].encode() + b"\n")
    return job


def test_cause_stands_on_the_page_of_a_failed_job_and_in_the_api(failed, as_alice, api):
    pages = [as_alice.get(f"/jobs/{failed.pk}/?tab={tab}").content.decode() for tab in ("overview", "console", "files")]
    answer = api.get(f"/api/v1/jobs/{failed.pk}/causes/").json()

    assert ["Likely cause" in page for page in pages] == [True, True, False]
    assert "The Python package timm.models is missing." in pages[0]
    assert [(row["message"]["code"], row["line"]) for row in answer] == [
        ("cause.module_missing", CERTAIN["module_missing"])
    ]


def test_cause_is_not_sought_in_a_job_that_ended_well(alice, cluster, api):
    job = work.job(alice, cluster, state="succeeded")
    work.run_dir(job).log.write_text(CERTAIN["disk_full"])

    assert api.get(f"/api/v1/jobs/{job.pk}/causes/").json() == []


def test_cause_of_a_job_killed_for_its_memory_needs_no_line(alice, cluster, api):
    job = work.job(alice, cluster, state="failed", reason="out_of_memory")
    work.run_dir(job).log.write_text("step 1\n")

    assert [row["message"]["code"] for row in api.get(f"/api/v1/jobs/{job.pk}/causes/").json()] == ["cause.memory"]


def idle_cards(job, *, percent=8.0, minutes=5, ran=30, cards=1, looks=30):
    """Looks at the cards of a job, 5 s apart."""
    attempt = job.attempts.get()
    type(attempt).objects.filter(pk=attempt.pk).update(started_at=now() - timedelta(minutes=ran))
    at = now() - timedelta(minutes=minutes)
    for card in range(cards):
        points = ((n, percent, at + timedelta(seconds=5 * n)) for n in range(looks))
        curves.report(attempt, f"system/gpu{card}_util", points)


@pytest.mark.parametrize(
    ("looked", "hinted"),
    [
        ({}, True),
        ({"percent": 80.0}, False),
        ({"minutes": 30, "ran": 60}, False),
        ({"ran": 5}, False),  # it only begins
        ({"cards": 8, "looks": 5}, False),  # a few looks at many cards
    ],
)
def test_running_job_hears_that_its_cards_wait_for_data(alice, cluster, as_alice, looked, hinted):
    job = work.job(alice, cluster, state="running")
    idle_cards(job, **looked)

    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()

    assert ("The GPUs computed only 8 % of the time" in page) == hinted
    assert ("Performance hint" in page) == hinted


@pytest.mark.parametrize(
    ("reported", "said"),
    [
        ({"system/cpu": 390.0}, "98 % of the CPU cores were busy"),
        ({"system/cpu": 120.0}, "usually because data loading is too slow"),
        ({"system/cpu": 390.0, "train/data_ms": 60.0, "train/step_ms": 80.0}, "75 % of each step was spent waiting"),
        ({"loader_wait": 0.5}, "50 % of each step was spent waiting"),
        ({"data_time": 0.01, "time": 0.5}, "usually because data loading is too slow"),
    ],
)
def test_running_job_hears_what_its_cards_wait_for(alice, cluster, as_alice, reported, said):
    job = work.job(alice, cluster, state="running", cpus=4)
    idle_cards(job)
    moment = now()
    for key, value in reported.items():
        points = [(look, value, moment - timedelta(seconds=10 * look)) for look in range(30)]
        curves.report(job.attempts.get(), key, points)

    for tab in ("overview", "console", "metrics"):
        page = as_alice.get(f"/jobs/{job.pk}/?tab={tab}").content.decode()
        assert "The GPUs computed only 8 % of the time" in page
        assert said in page


def test_running_job_that_computes_hears_nothing_however_busy_its_cores_are(alice, cluster, as_alice):
    job = work.job(alice, cluster, state="running", cpus=4)
    idle_cards(job, percent=90.0)
    curves.report(job.attempts.get(), "system/cpu", [(look, 400.0) for look in range(30)])

    assert "Performance hint" not in as_alice.get(f"/jobs/{job.pk}/?tab=metrics").content.decode()


@pytest.mark.parametrize("kind", ["environment", "service", "board"])
def test_job_that_holds_its_cards_in_order_to_be_ready_hears_nothing(alice, cluster, kind):
    job = work.job(alice, cluster, state="running", kind=kind)
    idle_cards(job)

    assert causes.list_causes(job) == []


def test_retry_after_a_lack_of_memory_is_told_its_cause_and_not_that_it_is_slow(alice, cluster, as_alice):
    job = work.job(alice, cluster, state="queued", reason="out_of_memory", attempt_number=1)

    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()

    assert "The job exceeded its memory limit." in page
    assert "Likely cause" in page
    assert "Performance hint" not in page


@pytest.fixture
def shared(db, alice, cluster):
    """A failed job that had a quarter of a card, by MPS."""
    job = work.job(alice, cluster, state="failed", reason="user_code")
    work.hold(job, work.node(gpus=1).devices.get(kind="gpu"), share=2)
    job.attempts.get().allocations.update(mps=True)
    work.run_dir(job).log.write_text("epoch 1\nRuntimeError: CUDA error: an illegal memory access was encountered\n")
    return job


def test_cause_of_a_fault_on_a_card_shared_by_mps_may_be_another_job(shared):
    by_mps = causes.list_causes(shared)
    shared.attempts.get().allocations.update(mps=False)

    assert [cause.message.code for cause in by_mps] == ["cause.mps_shared"]
    assert by_mps[0].line.endswith("an illegal memory access was encountered")
    assert causes.list_causes(shared) == []


def test_cause_of_a_job_whose_mps_daemon_ended_is_that(shared):
    work.run_dir(shared).log.write_text("killed\n")
    before = causes.list_causes(shared)
    transitions.note(shared, "mps_lost", message("job.mps_lost"))

    assert before == []
    assert [cause.message.code for cause in causes.list_causes(shared)] == ["cause.mps_failed"]
