"""Channels into jobs: who can be asked, and what becomes of odd answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import tempfile
import threading
from pathlib import Path

import pytest
from django.utils import translation

from tests.cases import case_table
from tests.running import wait_for as until
from tests.workers.launched import node, placed, reachable
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution import launch
from workers.execution.exec import channels, socket_paths
from workers.execution.exec.channels import ChannelRefused, Way
from workers.supervisor import handover, records, sandbox

__all__ = ["node", "placed", "reachable"]  # fixtures
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("exec servers of jobs")]
CODES = ("not_running", "paused", "no_exec_server", "unreachable", "refused")


def test_session_by_either_call(reachable):
    way = channels.way_to(reachable)
    request = {"act": "session", "command": "echo $AIP_JOB_ID"}

    with channels.connect(way, request) as channel:
        said = channel.makefile("rb").read()
    read = asyncio.run(_read(way, request))

    assert said == read
    assert f"{reachable.pk}\n".encode() in said


async def _read(way, request):
    reader, writer = await channels.open_channel(way, request)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_refusal_of_the_server_has_its_words(reachable):
    with pytest.raises(ChannelRefused) as caught:
        channels.connect(channels.way_to(reachable), {"act": "port", "port": 1})

    assert caught.value.code == "refused"
    assert caught.value.message == "The job rejected the request: nothing of this job listens on port 1."


def test_way_to_what_cannot_be_reached(reachable, kind):
    def code(job):
        with pytest.raises(ChannelRefused) as caught:
            channels.way_to(job)
        return caught.value.code

    Job.objects.filter(pk=reachable.pk).update(state=JobState.PAUSED)
    assert code(Job.objects.get(pk=reachable.pk)) == "paused"
    Job.objects.filter(pk=reachable.pk).update(state=JobState.QUEUED)
    assert code(Job.objects.get(pk=reachable.pk)) == "not_running"
    Job.objects.filter(pk=reachable.pk).update(state=JobState.RUNNING)
    job = Job.objects.get(pk=reachable.pk)
    with pytest.raises(ChannelRefused, match="not running"):
        channels.way_to(job, rank=1)
    kind.exec_server = False
    assert code(job) == "no_exec_server"
    kind.exec_server = True
    Attempt.objects.update(sandbox_tier=sandbox.CONTAINER)
    assert channels.way_to(job).path
    records.write(RunDir.for_attempt(job.pk, 1).path / handover.WAYS, {"why": handover.NO_PYTHON})
    assert code(job) == "no_python"
    records.write(RunDir.for_attempt(job.pk, 1).path / handover.WAYS, {"why": handover.TIMED_OUT})
    assert code(job) == "late"


def test_other_kinds_have_no_server(placed):
    job, attempt = placed(["sleep", "600"])
    launch.start(attempt.pk)
    run = RunDir.for_attempt(job.pk, 1)
    ticket = records.read(run.path / records.LAUNCH)
    records.write_request(run.path, "kill")
    until(lambda: records.read(run.path / records.EXIT))

    assert ticket["exec_socket"] == ""


@contextlib.contextmanager
def answering(answer: bytes, *, closes=True):
    """A way to somebody who answers every request so."""
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))
        listener.listen()

        def serve():
            with contextlib.suppress(OSError):
                one, _ = listener.accept()
                with one:
                    one.sendall(answer)
                    one.recv(65536)
                    if not closes:
                        one.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Way(path)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)


ODD = [b"", b"{}\n", b"[]\n", b"7\n", b"no json\n", b"\xff\n", b"{\"ok\": true}", b"[" * 20_000 + b"]" * 20_000 + b"\n",
       b"x" * 100_000 + b"\n", json.dumps({"error": ["odd"] * 500}).encode() + b"\n"]  # fmt: skip


@case_table("answer", ODD, ids=lambda answer: repr(answer[:12]))
def test_odd_answer_refuses(answer):
    with answering(answer) as way, pytest.raises(ChannelRefused):
        channels.connect(way, {"act": "session"})
    with answering(answer) as way, pytest.raises(ChannelRefused):
        asyncio.run(channels.open_channel(way, {"act": "session"}))


def test_silent_job_is_waited_for_and_not_for_ever():
    with answering(b"", closes=False) as way, pytest.raises(ChannelRefused) as caught:
        channels.connect(way, {"act": "session"}, patience_s=0.2)
    assert caught.value.code == "unreachable"
    with answering(b"", closes=False) as way, pytest.raises(ChannelRefused) as caught:
        asyncio.run(channels.open_channel(way, {"act": "session"}, patience_s=0.2))
    assert caught.value.code == "unreachable"


@pytest.mark.parametrize("code", CODES)
def test_refusals_are_sentences_in_the_readers_language(code):
    english = ChannelRefused(code, "nothing listens").message
    with translation.override("zh-hans"):
        chinese = ChannelRefused(code, "nothing listens").message

    assert english.endswith((".", "?"))
    assert chinese != english


def test_socket_paths_are_short_enough_for_the_kernel(settings):
    settings.RUN_DIR = Path("/" + "long/" * 40)

    assert len(str(socket_paths.for_rank(10**9, 10**4, 100))) <= 107
    assert socket_paths.folder() == socket_paths.folder()


def test_earlier_sockets_of_a_job_are_forgotten(settings, tmp_path):
    settings.RUN_DIR = tmp_path
    socket_paths.folder().mkdir(parents=True)
    for name in ("4-1-0", "4-2-0", "41-1-0"):
        (socket_paths.folder() / name).touch()

    socket_paths.forget_earlier(4, 2)

    assert sorted(path.name for path in socket_paths.folder().iterdir()) == ["4-2-0", "41-1-0"]
