"""Files of people who mean no good, or are just being written, brought in as models."""

import errno
import os
from pathlib import Path

import pytest
from django.conf import settings
from onnx import TensorProto, helper

from aiplatform.lib import disk, file_names, files
from aiplatform.lib.errors import DomainError
from datasets.files import homes
from inference.registry import imports, outputs_panel
from inference.registry.formats.declared import Declared
from tests.factories import work
from tests.inference import foreign
from tests.inference.foreign import LOGITS, PETS
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db
SAID = Declared(task="classification", labels=PETS, pixels="unit")


@pytest.fixture
def home(alice):
    return homes.home_of(alice)


def refused(function, *args):
    with pytest.raises(DomainError) as caught:
        function(*args)
    return caught.value


@pytest.mark.parametrize("path", ["x" * 300, "a/" * 300 + "b", "net.onnx/deeper"])
def test_paths_that_no_disk_has_are_refused(alice, home, path):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    assert refused(imports.from_home, alice, path).status < 500


@pytest.mark.parametrize("name", [b"m\\odel", b"mod\xe8le", "modèle\n".encode()])
def test_folders_of_any_name_can_be_brought_in(alice, home, name):
    folder = home / os.fsdecode(name)
    foreign.net(folder / "net.onnx", {"answer": LOGITS})

    brought = imports.from_home(alice, file_names.shown(name))
    version = imports.import_model(user=alice, brought=brought, declared=SAID, name="net")

    assert version.task == "classification"


def test_strange_names_are_said_so_that_people_can_read_them(alice, home):
    for name in (b"one\xe8.pt", b"two\xe8.pt"):
        (home / os.fsdecode(name)).write_bytes(b"x")

    message = refused(imports.from_home, alice, "").message

    message.encode()
    assert "one" in message


def test_tree_of_empty_folders_is_given_up_in_time(alice, home, monkeypatch):
    for number in range(200):
        (home / str(number)).mkdir()
    monkeypatch.setattr(imports, "LOOK_S", 0.0)

    assert refused(imports.from_home, alice, "").blamed == "path"


def test_outputs_that_take_too_long_to_look_through_are_offered(alice, cluster, monkeypatch):
    trained = work.job(alice, cluster, name="own-loop", state="succeeded")
    foreign.net(RunDir.for_attempt(trained.pk, 1).outputs / "deep" / "net.onnx", {"answer": LOGITS})
    monkeypatch.setattr(outputs_panel, "LOOK_S", 0.0)

    assert outputs_panel.context(trained, alice) == {}


def test_file_that_grows_while_it_is_copied_ends_at_the_limit(alice, home, monkeypatch):
    (home / "net.onnx").write_bytes(b"x" * 1000)
    brought = imports.from_home(alice, "net.onnx")
    monkeypatch.setattr(imports, "MAX_BYTES", 500)

    with pytest.raises(DomainError) as raised:
        brought.bring(home / "into")

    assert raised.value.code == "model_refused"
    assert not (home / "into" / "net.onnx").exists()


def test_sparse_file_larger_than_the_disk_is_refused_before_it_is_copied(alice, home, monkeypatch):
    with (home / "net.onnx").open("wb") as file:
        file.truncate(4 << 20)
    monkeypatch.setattr(files, "free_bytes", lambda _path: 1 << 20)

    with pytest.raises(disk.DiskFull):
        imports.from_home(alice, "net.onnx").bring(home / "into")


def test_closed_file_is_refused(alice, home, monkeypatch):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    brought = imports.from_home(alice, "net.onnx")

    def closed(*_args):
        raise PermissionError(errno.EACCES, "closed")

    monkeypatch.setattr(files, "open_beneath", closed)
    with pytest.raises(DomainError):
        brought.bring(home / "into")


def test_version_that_another_worker_made_meanwhile_leaves_no_folder(alice, home):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    def made(_version):
        raise RuntimeError("another was faster")

    with pytest.raises(RuntimeError):
        imports.import_model(
            user=alice, brought=imports.from_home(alice, "net.onnx"), declared=SAID, name="net", made=made
        )

    root = Path(settings.DATA_ROOT) / "models"
    assert not [path for path in root.rglob("*") if path.is_file()]


def test_model_with_a_weight_of_300_dimensions_is_answered_with_400(api, home):
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**62] * 300)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight])
    (home / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())

    answer = api.post("/api/v1/models/", {"name": "net", "path": "net.onnx"}, format="json")

    assert answer.status_code == 400
    assert "dimensions" in answer.json()["detail"]
