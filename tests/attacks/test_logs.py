"""What jobs write into their logs: secrets, and floods."""

from __future__ import annotations

import logging
import time

import pytest

from aiplatform.lib import secret_names
from tests.factories import training as factory
from tests.factories import work
from tests.workers.supervised import Run
from training.runs.kind import TrainingKind
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.jobs.output import logs
from workers.supervisor import records, secrecy
from workers.supervisor.logfile import LogFile, marker

KEY = "s3cr3t-k3y-of-alice"
TOKEN = "aip_" + "Zz9-_" * 8 + "abc"


@pytest.fixture
def talkative(alice, cluster):
    """A running job whose ticket names one secret, and a log that holds it."""
    job = work.job(alice, cluster, state="running")
    run = work.run_dir(job)
    records.write(run.path / records.LAUNCH, {"secrets": [KEY]})
    run.log.write_text(f"key={KEY}\nAuthorization: Bearer {TOKEN}\nplain\n")
    return job


def test_h06_job_log_stream_masks_a_secret(talkative):
    whole = logs.piece(talkative).text

    assert whole == f"key={'*' * len(KEY)}\nAuthorization: Bearer {'*' * len(TOKEN)}\nplain\n"


def test_h06_a_secret_of_several_lines_is_masked_line_by_line():
    secret = "-----BEGIN KEY-----\nMIIEvQIBADAN\nab\n-----END KEY-----"

    clean = secrecy.masked(b"a MIIEvQIBADAN\r\n" + secret.replace("\n", "\r\n").encode() + b" ab", [secret])

    assert clean.split() == [b"a", b"*" * 12, b"*" * 19, b"*" * 12, b"ab", b"*" * 17, b"ab"]


def test_h06_job_log_piece_cut_through_a_secret_shows_no_half_of_it(talkative):
    size = logs.piece(talkative).size
    letters = "".join(logs.piece(talkative, offset=at, limit=1).text for at in range(size))

    assert letters == logs.piece(talkative).text


def test_h06_job_log_download_masks_secrets_while_the_job_writes_on(talkative, as_alice):
    answer = as_alice.get(f"/api/v1/jobs/{talkative.pk}/log/raw/")

    text = b"".join(answer.streaming_content).decode()
    assert KEY not in text
    assert TOKEN not in text
    assert text.endswith("plain\n")


def test_h06_job_log_file_itself_is_masked_at_the_end(tmp_path):
    log = LogFile(str(tmp_path / "log.txt"), 1 << 20, [KEY])
    log.note("x" * (1 << 20 >> 1))
    log.note(f"key={KEY}")

    log.close()

    assert KEY not in (tmp_path / "log.txt").read_text()
    assert (tmp_path / "log.txt").read_text().endswith(f"key={'*' * len(KEY)}\n")


def test_h06_mask_file_finds_a_secret_across_two_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(secrecy, "_BLOCK", 10)
    (tmp_path / "log.txt").write_text("0123456" + KEY + "end")

    secrecy.mask_file(tmp_path / "log.txt", [KEY])

    assert (tmp_path / "log.txt").read_text() == "0123456" + "*" * len(KEY) + "end"


@pytest.fixture
def keyed(alice, cluster, tmp_path):
    """A training of own code that was given a key as a parameter and a password as an argument."""
    own = factory.code(alice, tmp_path, train="print(1)")
    arguments = "--password=hunter2hunter2 --epochs 3"
    return factory.training(
        alice, code=own, start_file="train.py", params={"api_key": KEY, "lr": 0.1}, arguments=arguments
    )


@pytest.mark.parametrize("tab", ["", "spec/"])
def test_h06_job_pages_hide_what_is_named_like_a_secret(keyed, as_alice, tab):
    text = as_alice.get(f"/training/{keyed.pk}/{tab}").content.decode()

    assert KEY not in text
    assert "hunter2hunter2" not in text
    assert secret_names.MASK in text


def test_h06_job_api_hides_what_is_named_like_a_secret(keyed, as_alice):
    shown = as_alice.get(f"/api/v1/training/jobs/{keyed.pk}/").json()

    assert shown["params"] == {"api_key": secret_names.MASK, "lr": 0.1}
    assert shown["arguments"] == f"--password={secret_names.MASK} --epochs 3"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("api_key", True), ("WANDB_API_KEY", True), ("hubToken", True), ("db.password", True), ("max_tokens", False),
     ("num_token", False), ("monkey", False), ("key", False), ("lr", False)],
)  # fmt: skip
def test_h06_secret_names_is_secret_knows_names_of_secrets(name, secret):
    assert secret_names.is_secret(name) is secret


def test_h06_training_prepare_still_gives_the_job_the_secret_value(keyed, monkeypatch, tmp_path):
    monkeypatch.setattr("training.runs.kind._still_allowed", lambda *args: [])
    run = RunDir(tmp_path / "run")

    launch = TrainingKind().prepare(keyed.job, Attempt(job=keyed.job, number=1), run)

    assert KEY in run.params.read_text()
    assert set(launch.secrets) == {KEY, "hunter2hunter2"}


def test_h06_server_log_gets_no_second_line_by_a_newline_in_a_name():
    from aiplatform.lib.log_lines import OneLine

    record = logging.LogRecord("x", logging.INFO, "", 0, "user=%s", (f"eve\n2026-01-01 root signed in {TOKEN}",), None)

    line = OneLine("%(levelname)s %(message)s").format(record)

    assert line == f"INFO user=eve\\n2026-01-01 root signed in {TOKEN[:8]}…"


def test_h04_job_log_flood_ends_at_the_quota_for_every_reader(alice, cluster):
    """Readers never see a log shrink: what is cut off was never shown, and the tail comes at the end."""
    job = work.job(alice, cluster, state="running")
    path = work.run_dir(job).path
    flood = "import time\nend = time.monotonic() + 0.6\nwhile time.monotonic() < end: print('line\\n' * 100000, end='')"
    quota = 1_000_000
    run = Run(path, 0, ["/usr/bin/env", "python3", "-c", flood + "\nprint('the last line')"], log_quota_bytes=quota)
    seen = []

    run.start()
    deadline = time.monotonic() + 60
    while not records.read(path / records.EXIT):
        assert time.monotonic() < deadline
        seen.append(logs.size_of(path / "log.txt"))
        time.sleep(0.01)

    assert seen == sorted(seen)
    assert seen[-1] <= quota + len(marker(quota))
    assert run.exit()["code"] == 0
    assert logs.piece(job, tail=100).text.endswith("the last line\n")
    assert (path / "log.txt").stat().st_size < quota + (128 << 10)
