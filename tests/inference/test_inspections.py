"""Model files are read in a sandboxed process; what it answers is checked as anybody's text."""

import json
import os
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from django.utils import translation
from onnx import TensorProto, helper

from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.errors import Invalid
from datasets.files import homes
from inference.registry import inspections
from inference.registry.formats.declared import NOTHING, PIXELS, Declared, Files
from inference.registry.formats.folder import ModelContents
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.formats.onnx import Summary
from inference.registry.inspections import FILES, Bounds, ModelRefused, TooSlow
from inference.registry.inspector import replies
from inference.registry.models import Model, ModelVersion
from tests.factories import models as factory
from tests.inference import foreign, tiny
from tests.inference.foreign import LOGITS, PETS, unopenable
from workers.supervisor import landlock, sandbox, tiers

SAID = Declared(task="classification", labels=PETS, pixels="unit")
needs_bubblewrap = pytest.mark.skipif(tiers.best_tier()[0] < sandbox.BUBBLEWRAP, reason="needs bubblewrap")


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def refusals(function, *args, **kwargs):
    with pytest.raises(ModelRefused) as caught:
        function(*args, **kwargs)
    return caught.value


@pytest.mark.django_db
def test_f18_model_that_no_runtime_opens_is_refused_with_the_runtimes_reason(api, alice):
    unopenable(homes.home_of(alice) / "net.onnx")
    fields = {"name": "net", "path": "net.onnx", "task": "classification", "labels": "a\nb\nc", "pixels": "unit"}

    answer = api.post("/api/v1/models/", fields, format="json")

    assert (answer.status_code, answer.json()["code"]) == (400, "model_refused")
    detail = answer.json()["detail"]
    assert detail.startswith("ONNX Runtime cannot open the model: ")
    assert "opset" in detail.lower() or "ReduceMean" in detail
    assert "/" not in detail.replace("and/or", "")  # no path of the platform
    assert not Model.objects.exists()


@pytest.mark.django_db
def test_f18_same_model_of_an_opset_that_allows_it_is_taken(api, alice):
    unopenable(homes.home_of(alice) / "net.onnx", opset=17)
    fields = {"name": "net", "path": "net.onnx", "task": "classification", "labels": "a\nb\nc", "pixels": "unit"}
    fields["resize"] = "stretch"

    assert api.post("/api/v1/models/", fields, format="json").status_code == 201


@pytest.mark.django_db
@pytest.mark.usefixtures("inspector_processes")
def test_api_imports_a_model_through_the_sandboxed_process(api, alice):
    foreign.net(homes.home_of(alice) / "net.onnx", {"answer": LOGITS})
    unopenable(homes.home_of(alice) / "bad.onnx")
    fields = {"path": "net.onnx", "task": "classification", "labels": "\n".join(PETS), "pixels": "unit"}

    good = api.post("/api/v1/models/", fields | {"name": "good"}, format="json")
    bad = api.post("/api/v1/models/", {"name": "bad", "path": "bad.onnx"}, format="json")

    assert (good.status_code, bad.status_code) == (201, 400)
    assert good.json()["task"] == "classification"
    assert bad.json()["code"] == "model_refused"


@pytest.mark.usefixtures("inspector_processes")
def test_process_unpacks_an_archive_and_says_all_that_is_wrong_in_the_callers_language(work, tmp_path):
    tiny.detector(tmp_path / "x")
    archive = factory.zipped(tmp_path / "x", tmp_path / "x.zip")
    inspections.unpack(archive, "x.zip", work / FILES)
    assert not (work / FILES).exists()  # this process left it packed

    content = inspections.of_import(work, NOTHING)

    assert (content.task, sorted(content.files)) == ("detection", ["model.json", "model.onnx"])
    assert content.files["model.onnx"].read_bytes() == (tmp_path / "x" / "model.onnx").read_bytes()

    other = tmp_path / "other"
    foreign.net(other / FILES / "net.onnx", {"answer": LOGITS})
    with translation.override("zh-hans"), pytest.raises(Invalid) as caught:
        inspections.of_import(other, Declared(task="classification", labels=("one",)))
    assert {error.blamed for error in caught.value.every} == {"labels", "pixels"}
    assert not any("model" in error.message for error in caught.value.every)  # Chinese


@pytest.mark.usefixtures("inspector_processes")
@pytest.mark.parametrize("tier", [sandbox.PLAIN, sandbox.LANDLOCK])
def test_process_restricts_itself_where_no_bubblewrap_is(work, tmp_path, monkeypatch, tier):
    if tier == sandbox.LANDLOCK and landlock.abi() < 1:
        pytest.skip("needs Landlock")
    monkeypatch.setattr(inspections, "_tier", lambda: (tier, ""))
    tiny.detector(work / FILES)

    assert inspections.of_import(work, NOTHING).task == "detection"

    tiny.detector(tmp_path / "elsewhere")
    monkeypatch.setattr(inspections, "_ticket", partial(_of_another_folder, inspections._ticket, work))
    if tier == sandbox.LANDLOCK:
        assert "No model found" in refusals(inspections.of_outputs, tmp_path / "elsewhere").message


def _of_another_folder(ticket, granted, _read, write, uid):
    return ticket([granted], write, uid)


def test_process_waits_for_its_turn_no_longer_than_the_caller(work, monkeypatch):
    monkeypatch.setattr(inspections, "_PROCESSES", threading.BoundedSemaphore(1))
    tiny.detector(work / FILES)

    with inspections._PROCESSES, pytest.raises(TooSlow):
        inspections.of_import(work, NOTHING, bounds=Bounds(0.01, 1000))


@pytest.mark.usefixtures("inspector_processes")
def test_process_refuses_a_damaged_archive_as_before(work, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 no archive at all")
    inspections.unpack(tmp_path / "x.zip", "x.zip", work / FILES)

    with pytest.raises(ArchiveRefused):
        inspections.of_import(work, NOTHING)


PROBE = """
import ctypes, json, os, socket, sys
seen = {}
for name in sys.argv[1:]:
    try:
        seen[name] = open(name).read(9)
    except OSError as error:
        seen[name] = type(error).__name__
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=2)
    seen["network"] = True
except OSError:
    seen["network"] = False
NEW_USER_NAMESPACE = 0x10000000
seen["namespace"] = ctypes.CDLL(None).unshare(NEW_USER_NAMESPACE) == 0
seen["uid"] = os.geteuid()
print(json.dumps(seen))
"""


@needs_bubblewrap
@pytest.mark.sockets("a port of this host that the sandbox must not reach")
def test_process_has_no_network_no_other_files_and_the_filter_of_jobs(work, tmp_path):
    secret, box = tmp_path / "secret", work / "box"
    secret.write_text("secret")
    box.mkdir()
    (box / "model").write_text("model")
    ticket = inspections._ticket([], [box], tiers.NOBODY)
    if ticket.uid:
        sandbox.chown_writable(ticket)
    paths = [
        str(secret),
        str(box / "model"),
        "/etc/shadow",
        str(Path(inspections.settings.BASE_DIR) / "pyproject.toml"),
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:
        ticket.argv = [sys.executable, "-c", PROBE.replace("PORT", str(server.getsockname()[1])), *paths]
        files = sandbox.handed(ticket)
        done = subprocess.run(
            sandbox.wrapped(ticket, files),
            capture_output=True,
            check=True,
            pass_fds=tuple(files.values()),
            env=ticket.env,
        )
        for opened in files.values():
            os.close(opened)

    results = json.loads(done.stdout)
    assert [results[name] for name in paths] == ["FileNotFoundError", "model", "FileNotFoundError", "FileNotFoundError"]
    assert (results["network"], results["namespace"]) == (False, False)
    assert results["uid"] == ticket.uid or not ticket.uid


LIMITED = """
from inference.registry.inspector import limits
limits.restrict(seconds={seconds})
{code}
"""


def limited(code: str, seconds: int = 60) -> "subprocess.CompletedProcess[bytes]":
    program = LIMITED.format(code=code, seconds=seconds)
    at = str(inspections.settings.BASE_DIR)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, cwd=at, env={"PYTHONPATH": at}
    )


def test_limits_end_what_takes_memory_and_time_without_end():
    memory = limited("try:\n    bytearray(3 << 30)\nexcept MemoryError:\n    print('refused')")
    seconds = limited("while True: pass", seconds=1)

    assert memory.stdout == b"refused\n"
    assert seconds.returncode == -24


@pytest.mark.usefixtures("inspector_processes")
def test_process_that_takes_too_long_is_ended_and_named(work):
    tiny.detector(work / FILES)

    with pytest.raises(TooSlow, match=r"longer than 0\.01 s"):
        inspections.of_import(work, NOTHING, bounds=Bounds(0.01, 1000))

    assert (work / FILES / "model.onnx").is_file()  # for the next try


@pytest.mark.parametrize(
    ("code", "reason"), [(-11, "crashed"), (137, "crashed"), (65, "GiB of memory"), (152, "longer")]
)
def test_process_that_ends_without_an_answer_is_an_error_of_the_files(tmp_path, code, reason):
    with (tmp_path / "out").open("wb+") as out, (tmp_path / "err").open("wb+") as err:
        refusal = refusals(inspections._read, code, out, err, inspections.REQUEST)

    assert reason in refusal.message


@pytest.mark.parametrize("reply", [b"", b"{", b"[]", b'"x"', b"[" * 100_000])
def test_reply_that_is_no_object_is_refused(tmp_path, reply):
    (tmp_path / "out").write_bytes(reply)
    with (tmp_path / "out").open("rb") as out, (tmp_path / "err").open("wb+") as err:
        refusals(inspections._read, 0, out, err, inspections.REQUEST)


def test_reply_that_is_longer_than_its_reader_reads_is_not_parsed(tmp_path):
    (tmp_path / "out").write_text(json.dumps({"refusals": [], "x": "a" * 2000}))
    with (tmp_path / "out").open("rb") as out, (tmp_path / "err").open("wb+") as err:
        assert inspections._read(0, out, err, Bounds(60, 3000))["refusals"] == []
        with pytest.raises(TooSlow, match="more than 1 kB"):
            inspections._read(0, out, err, Bounds(60, 1024))


def test_ways_of_a_trial_have_their_labels_once_in_the_reply(tmp_path):
    labels = tuple(f"class {number}" for number in range(1000))
    ways = [Declared(task="classification", labels=labels, pixels=pixels) for pixels in list(PIXELS)[:2]] * 16
    read = Files(FileFacts(labels=labels), Summary(inputs=[], outputs=[]))

    reply = json.loads(json.dumps({"trial": replies.encode_trial(ways, read)}))

    assert len(json.dumps(reply)) < 64 << 10
    assert replies.decode_trial(reply)[0] == ways


@pytest.mark.parametrize("index", [-1, 1, True, "0", None, [0]])
def test_forged_place_of_labels_in_a_trial_is_refused(index):
    declaration = replies.encode_declared(Declared(task="classification", labels=("a",))) | {"labels": index}

    with pytest.raises(replies.BadReply):
        replies.decode_trial({"trial": {"ways": [declaration], "labels": [["a"]], "files": {}}})


FORGED = [
    {"files": {"model.onnx": "/etc/passwd"}}, {"files": {"model.onnx": "../../secret"}},
    {"files": {"../model.onnx": "model.onnx"}}, {"files": {"model.onnx": "a\0b"}},
    {"files": {"labels.txt": "labels.txt"}},
    {"files": []}, {"files": {"model.onnx": 5}}, {"task": "root"}, {"task": ["detection"]}, {"classes": [1]},
    {"classes": [{"name": "\ud800"}]}, {"metrics": {"a": "b"}}, {"facts": {"a": float("nan")}}, {"params": 5},
    {"architecture": "a\0"},
]  # fmt: skip


@pytest.mark.parametrize("change", FORGED, ids=[str(number) for number in range(len(FORGED))])
def test_forged_reply_of_the_process_is_refused(work, monkeypatch, change):
    tiny.detector(work / FILES)
    sound = replies.encode_found(
        ModelContents("detection", files={"model.onnx": work / FILES / "model.onnx"}), work / FILES
    )
    assert replies.decode_found({"found": sound}, work / FILES).task == "detection"
    monkeypatch.setattr(inspections, "_run", lambda *_asked: {"found": sound | change})

    assert "crashed" in refusals(inspections.of_import, work, NOTHING).message


def test_forged_link_in_place_of_a_file_is_not_followed(work, monkeypatch):
    def linked(request, *_limits):
        os.symlink("/etc", request["folder"])
        return {"refusals": [{"code": "model_refused", "text": "no"}]}

    monkeypatch.setattr(inspections, "_run", linked)

    refusals(inspections.of_import, work, NOTHING)

    assert list(work.iterdir()) == []
    assert Path("/etc/passwd").is_file()


@pytest.mark.django_db
def test_operator_that_the_cpu_has_not_is_noted_on_the_page_of_the_version(alice, as_alice, api):
    ends = [helper.make_tensor_value_info(name, TensorProto.UINT16, [4]) for name in "xyz"]
    node = helper.make_node("BitShift", ["x", "y"], ["z"], direction="LEFT")
    graph = helper.make_graph([node], "g", ends[:2], ends[2:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (homes.home_of(alice) / "net.onnx").write_bytes(made.SerializeToString())

    answer = api.post("/api/v1/models/", {"name": "net", "path": "net.onnx"}, format="json")

    assert answer.status_code == 201
    version = ModelVersion.objects.get(pk=answer.json()["id"])
    assert "BitShift" in version.facts["not_on_cpu"]
    assert "BitShift" in as_alice.get(f"/models/{version.model_id}/").content.decode()


@pytest.mark.skipif(tiers.best_tier()[0] < sandbox.OWN_UID, reason="needs a user per job")
@pytest.mark.usefixtures("inspector_processes")
def test_process_reads_what_a_job_left_as_the_user_of_the_job(tmp_path):
    outputs = tmp_path / "outputs" / "model"
    tiny.detector(outputs)
    for path in [outputs, *outputs.iterdir()]:
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.chown(path, 123_456, 123_456)

    content = inspections.of_outputs(outputs)

    assert content.files == {name: outputs / name for name in ("model.onnx", "model.json")}


@pytest.mark.usefixtures("inspector_processes")
def test_process_does_not_open_what_a_job_left_with_a_runtime(tmp_path):
    unopenable(tmp_path / "net.onnx")

    assert inspections.of_outputs(tmp_path).task == "tensor"
