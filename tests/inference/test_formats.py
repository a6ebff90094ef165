"""What may come into the registry, and what is refused in plain words."""

import json
import pickle
import resource
import struct

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from inference.registry.formats import onnx as reader
from inference.registry.formats import safetensors
from inference.registry.formats.folder import survey
from inference.registry.formats.onnx import RefusedModel
from tests.inference import tiny
from tests.inference.weights import safetensors_file, tensor


def saved(tmp_path, graph, **more):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], **more)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def value(name, shape=("n", 4)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def test_onnx_reader_sums_up_a_sound_model(tmp_path):
    summary = reader.inspect(tiny.detector(tmp_path) / "model.onnx")

    assert [t.name for t in summary.inputs] == ["images"]
    assert summary.inputs[0].shape == [-1, 3, 64, 64]
    assert [t.name for t in summary.outputs] == ["boxes", "scores"]
    assert summary.opset == 17
    assert summary.operators["AveragePool"] == 1


def test_onnx_reader_agrees_with_onnx_itself(tmp_path):
    path = tiny.classifier(tmp_path) / "model.onnx"

    summary = reader.inspect(path)

    graph = onnx.load(path).graph
    assert summary.nodes == len(graph.node)
    assert summary.parameters == sum(int(np.prod(t.dims)) for t in graph.initializer)


@pytest.mark.parametrize("where", ["/etc/passwd", "../../secret", "weights.bin", "a/../../b", "", "C:\\x"])
def test_onnx_reader_refuses_weights_outside_the_file(tmp_path, where):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=where)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x")], [value("y")], [tensor])

    with pytest.raises(RefusedModel, match="other files"):
        reader.inspect(saved(tmp_path, graph))


def test_onnx_reader_refuses_outside_weights_hidden_in_an_attribute(tmp_path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    nodes = [helper.make_node("Constant", [], ["w"], value=tensor), helper.make_node("Add", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")])

    with pytest.raises(RefusedModel, match="other files"):
        reader.inspect(saved(tmp_path, graph))


def test_onnx_reader_refuses_sizes_the_file_cannot_hold_without_memory(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[10**6, 10**6])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x")], [value("y")], [tensor])

    with pytest.raises(RefusedModel, match=r"values, more than the file can contain."):
        reader.inspect(saved(tmp_path, graph))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_onnx_reader_refuses_a_cyclic_graph(tmp_path):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("b")])

    with pytest.raises(RefusedModel, match="cyclic"):
        reader.inspect(saved(tmp_path, graph))


def test_onnx_reader_refuses_operators_of_foreign_libraries(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Evil", ["x"], ["y"], domain="evil.ops")], "g", [value("x")], [value("y")]
    )

    with pytest.raises(RefusedModel, match=r"comes from an external library; export without it."):
        reader.inspect(saved(tmp_path, graph))


@pytest.mark.parametrize("dims", [[2**62] * 300, [2**61 - 1] * 20 + [0], [1] * 65, [2**40, 2**40], [-1]])
def test_onnx_reader_refuses_a_weight_of_impossible_shape(tmp_path, dims):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x")], [value("y")], [tensor])

    with pytest.raises(RefusedModel):
        reader.inspect(saved(tmp_path, graph))


def test_onnx_reader_refuses_more_fields_than_a_model_has(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_FIELDS", 1000)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08" * 1001)  # ir_version, again and again

    with pytest.raises(RefusedModel, match="more than 1,000 fields"):
        reader.inspect(path)


def test_onnx_reader_knows_names_of_outer_graphs_alone(tmp_path):
    def conditional(uses):
        inner = helper.make_graph([helper.make_node("Neg", [uses], ["r"])], "inner", [], [value("r")])
        node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
        return helper.make_graph([node], "g", [value("x"), value("c", ())], [value("y")])

    assert reader.inspect(saved(tmp_path, conditional("x"))).nodes == 3
    with pytest.raises(RefusedModel, match=r"” before it is computed; the graph is cyclic or truncated."):
        reader.inspect(saved(tmp_path, conditional("y")))


@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 64, b"\xff" * 64, b"PK\x03\x04" + b"\x00" * 60, b"\x3a\xff\xff\xff\x0f"]
)
def test_onnx_reader_refuses_what_is_no_onnx(tmp_path, data):
    path = tmp_path / "model.onnx"
    path.write_bytes(data)

    with pytest.raises(RefusedModel):
        reader.inspect(path)


def test_safetensors_inspect_counts_a_sound_file(tmp_path):
    path = safetensors_file(tmp_path, {"a": tensor(0, 16, [4]), "b": tensor(16, 24, [2])}, bytes(24))

    assert safetensors.inspect(path) == (2, 6)


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"a": tensor(0, 16, [4]), "b": tensor(8, 16, [2])}, bytes(16)),
        ({"a": tensor(0, 16, [4]), "b": tensor(20, 28, [2])}, bytes(28)),
        ({"a": tensor(0, 16, [4])}, bytes(99)),
        ({"a": tensor(0, 16, [2**40])}, bytes(16)),
        ({"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, bytes(16)),
        ({"a": tensor(0, 0, [2**61 - 1] * 60 + [0])}, b""),
        ({"a": tensor(0, 0, [0] * 65)}, b""),
        (b'{"a": {"dtype": "F32", "shape": [' + b"9" * 5000 + b', 0], "data_offsets": [0, 0]}}', b""),
        ({"a": 1}, b""),
        (b"[]", b""),
        (b"{", b""),
    ],
)
def test_safetensors_inspect_refuses_files_that_lie(tmp_path, header, data):
    with pytest.raises(RefusedModel):
        safetensors.inspect(safetensors_file(tmp_path, header, data))


def test_safetensors_inspect_refuses_a_header_of_two_to_the_63(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 63) + b"{}")

    with pytest.raises(RefusedModel, match=r"The safetensors header declares more bytes than the file has."):
        safetensors.inspect(path)


def test_safetensors_inspect_refuses_a_header_longer_than_any_models(tmp_path):
    header = b" " * (safetensors.MAX_HEADER_BYTES + 1)

    with pytest.raises(RefusedModel, match="larger than 8 MiB"):
        safetensors.inspect(safetensors_file(tmp_path, header, b""))


@pytest.mark.parametrize("name", ["model.pt", "weights.pkl", "sub/deep/model.joblib", "x.PTH", "model.pt2"])
def test_survey_refuses_pickles_and_never_opens_them(tmp_path, name):
    marker = tmp_path / "opened"

    class Trap:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    tiny.classifier(tmp_path / "in")
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(Trap()))

    with pytest.raises(RefusedModel, match="can execute code when it is opened"):
        survey(tmp_path / "in")
    assert not marker.exists()


def test_survey_reads_a_described_model(tmp_path):
    tiny.detector(tmp_path / "a/b")
    (tmp_path / "a/b/README.md").write_text("hello")

    summary = survey(tmp_path)

    assert summary.task == "detection"
    assert set(summary.files) == {"model.onnx", "model.json", "README.md"}
    assert [c["name"] for c in summary.classes] == list(tiny.COLOURS)


def test_survey_refuses_a_description_that_contradicts_the_model(tmp_path):
    tiny.detector(tmp_path)
    described = json.loads((tmp_path / "model.json").read_text())
    described["output"]["boxes"] = "rectangles"
    (tmp_path / "model.json").write_text(json.dumps(described))

    with pytest.raises(RefusedModel, match="rectangles"):
        survey(tmp_path)


def test_survey_accepts_onnx_alone_and_weights_alone_for_what_they_are(tmp_path):
    tiny.identity(tmp_path / "onnx")
    (tmp_path / "weights").mkdir()
    safetensors_file(tmp_path / "weights", {"a": tensor(0, 16, [4])}, bytes(16))

    assert survey(tmp_path / "onnx").task == "tensor"
    assert survey(tmp_path / "weights").task == "weights"


def test_survey_refuses_nothing_and_too_much(tmp_path):
    (tmp_path / "none").mkdir()
    tiny.identity(tmp_path / "two/a")
    tiny.identity(tmp_path / "two/b")

    with pytest.raises(RefusedModel, match="No model found"):
        survey(tmp_path / "none")
    with pytest.raises(RefusedModel, match="more than one"):
        survey(tmp_path / "two")
