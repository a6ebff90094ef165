"""A new kind of shape is registered, and nothing else of the product changes.

tests/browser/test_a_new_shape_kind.py goes on with the annotator.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from annotation.models import Shape
from annotation.services import exports
from datasets import shapes
from datasets.formats import detect, size_checks
from datasets.formats.listing import Listing
from datasets.models import Asset
from tests.architecture.code import APPS, ROOT, modules_with, text
from tests.conftest import signed_in
from tests.datasets.pictures import picture, put
from tests.factories import annotation as make
from tests.factories.shapes import Point

BASE = "/api/v1/annotation/projects/"

#: Files beside a kind's own that may name it, and why. Adding a kind touches none of them.
NAMED_IN = {
    "aiplatform/cli/demo/digits.py": "writes a COCO file as a program that knows only the format would",
    "aiplatform/cli/demo/main_job.py": "a client of the API: it says which kind it draws",
    "training/presets/masks.py": "reads annotations.json in a run, where the kinds are not",
    "inference/kit/task_kinds/segmentation/truth_maps.py": "the same in an evaluation",
}


@pytest.fixture
def point():
    with shapes.KINDS.temporarily(Point()):
        yield shapes.get("point")


@pytest.fixture
def task(alice):
    return make.first_task(alice)


@pytest.fixture
def labels(task):
    return f"{BASE}{task.set.project_id}/datasets/{task.set_id}/labels/"


@pytest.fixture
def edits(task):
    return f"{BASE}{task.set.project_id}/tasks/{task.pk}/shapes/"


def converted(task, alice) -> Any:
    export = exports.start(annotation_set=task.set, by=alice)
    exports.convert(export.pk)
    export.refresh_from_db()
    return export


def test_registered_kind_goes_from_the_api_into_coco_and_back(api, alice, point, task, labels, edits, tmp_path):
    label = api.post(labels, {"name": "tip", "supercategory": "part", "shape": "point"}, format="json").json()
    drawn = [
        make.put(task, kind="point", label=label["id"], rings=[ring]) for ring in ([5.00004, 6], [0, 30], [40.0, 0.5])
    ]

    answer = api.post(edits, {"events": drawn}, format="json")
    listed = api.get(edits).json()["shapes"]
    export = converted(task, alice)
    data = json.loads(export.file.read_text())
    entry, *_others = data["annotations"]

    assert (answer.status_code, label["shape"]) == (200, "point")
    assert [(s["kind"], s["rings"]) for s in listed] == [
        ("point", [[5, 6]]), ("point", [[0, 30]]), ("point", [[40, 0.5]]),
    ]  # fmt: skip
    assert Shape.objects.filter(kind="point", area=0, width=0, height=0).count() == 3
    assert (export.state, export.annotations, export.left_out) == ("success", 3, 0)
    assert (entry["bbox"], entry["area"], entry["segmentation"]) == ([5, 6, 0, 0], 0, [])
    assert entry["attributes"] == {"shape": "point", "rings": [[5, 6]]}

    folder = tmp_path / "another place"
    put(folder, {image["file_name"]: picture() for image in data["images"]})
    put(folder, {"annotations.json": export.file.read_text()})
    parsed = detect.read(Listing.scan(folder), "coco")
    for image in parsed.images:
        size_checks.fit_to_image(image, 40, 30, parsed.problems)

    kept = [shape.as_dict() for shape in parsed.shapes()]
    assert dict(parsed.problems.counts) == {}
    assert [shape["kind"] for shape in kept] == ["point"] * 3
    assert [shape["attributes"]["rings"] for shape in kept] == [[[5, 6]], [[0, 30]], [[40, 0.5]]]


def test_registered_kind_stands_in_the_dataset_version_and_its_gallery(api, alice, point, task, edits):
    event = make.put(task, kind="point", rings=[[5, 6], [7, 8]])
    assert api.post(edits, {"events": [event]}, format="json").status_code == 200

    version = converted(task, alice).version
    page = signed_in(alice).get(f"/datasets/{version.dataset_id}/v{version.number}/").content.decode()

    coco_id = task.set.labels.get(name="cat").coco_id
    stored = json.loads((version.path / "annotations.json").read_text())["annotations"]
    assert Asset.objects.get(version=version, path=task.asset.path).shapes == [
        [coco_id, "point", [5, 6]], [coco_id, "point", [7, 8]],
    ]  # fmt: skip
    assert [(entry["attributes"], entry["area"]) for entry in stored] == [
        ({"shape": "point", "rings": [[5, 6], [7, 8]]}, 0)
    ]
    assert '<path color="#4353d6" class="is-open" d="M3,6a2,2 0 1,0 4,0a2,2 0 1,0 -4,0"/>' in page


def test_registered_kind_judges_its_own_shapes(api, point, task, edits):
    def answer(**fields: Any) -> Any:
        return api.post(edits, {"events": [make.put(task, kind="point", **fields)]}, format="json").json()

    assert answer(rings=[[]])["detail"] == "A point is x and y."
    outside = answer(rings=[[5, 6], [41, 6]])
    assert (outside["flaw"], outside["path"]) == ("outside", "events[0].rings[1]")
    assert Shape.objects.count() == 0


def test_unregistered_kind_is_refused_and_the_kinds_there_are_named(api, task, labels, edits):
    drawn = api.post(edits, {"events": [make.put(task, kind="point", rings=[[5, 6]])]}, format="json")
    asked = api.post(labels, {"name": "tip", "supercategory": "part", "shape": "point"}, format="json")

    assert (drawn.status_code, drawn.json()["path"]) == (400, "events[0].kind")
    assert drawn.json()["detail"] == "A shape must be one of: bbox, polygon."
    assert asked.status_code == 400


def test_registered_kind_can_be_chosen_for_a_class(alice, point, task):
    url = f"/annotation/projects/{task.set.project_id}/datasets/{task.set_id}/classes/"

    page = signed_in(alice).get(url).content.decode()

    assert '<option value="point">Point</option>' in page


def test_kind_of_coco_annotation_is_the_one_it_names_where_that_fits(point, tmp_path):
    ring = [1, 1, 9, 1, 9, 9]
    notes: list[dict[str, Any]] = [
        {"segmentation": [ring], "attributes": {"shape": "point"}},  # another program's word: no rings beside it
        {"segmentation": [], "bbox": [5, 6, 0, 0], "attributes": {"shape": "point", "rings": [[5, 6]]}},
        {"segmentation": [], "bbox": [1, 1, 3, 3], "attributes": {"shape": "star"}},
        {"segmentation": [], "bbox": [5, 6, 0, 0], "attributes": {"shape": "point", "rings": [["x", 6]]}},
    ]
    put(tmp_path, {"0.png": picture(), "a.json": json.dumps(_file(notes))})

    parsed = detect.read(Listing.scan(tmp_path), "coco")

    assert [shape.kind for shape in parsed.shapes()] == ["polygon", "point", "bbox"]
    assert [problem.path for problem in parsed.problems.listed] == ["annotations[3].attributes.rings[0][0]"]


def _file(notes: list[dict[str, Any]]) -> dict[str, Any]:
    entries = [{"id": n, "image_id": 1, "category_id": 1} | note for n, note in enumerate(notes, 1)]
    images = [{"id": 1, "file_name": "0.png"}]
    return {"images": images, "categories": [{"id": 1, "name": "a"}], "annotations": entries}


def test_shapes_register_refuses_two_kinds_of_one_name():
    with pytest.raises(ValueError, match="polygon"):
        shapes.register(shapes.get("polygon"))


# --- who names the kinds


def _names() -> set[str]:
    return {name for kind in shapes.drawable() for name in (kind.name, kind.tool)}


def _own_files() -> set[str]:
    files = {
        (f"datasets/shapes/{k.tool}.py", f"annotation/static/annotation/shapes/{k.tool}.js") for k in shapes.drawable()
    }
    return {file for pair in files for file in pair}


def _words_of_python(source: str) -> Iterator[str]:
    """String literals, but for fields of COCO files and of models' answers that are called like a kind."""
    fields: set[int] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            fields.add(id(node.slice))
        elif isinstance(node, ast.Dict):
            fields |= {id(key) for key in node.keys}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and node.args:
            fields.add(id(node.args[0]))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("COCOeval"):
            fields |= {id(argument) for argument in node.args}  # "bbox": boxes are compared, not masks
        elif isinstance(node, ast.keyword) and node.arg == "icon":
            fields.add(id(node.value))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in fields or node.value not in {"bbox", "box", "polygon"}:
            yield node.value


def _words_of_text(source: str, *, keys: bool) -> Iterator[str]:
    """Quoted words of JavaScript and templates; with `keys` also those before a colon, as in {box: …}."""
    code = re.sub(r"(?m)^\s*(//|\*|/\*).*$", "", source)
    yield from re.findall(r"[\"'`]([a-z]+)[\"'`]", code)
    if keys:
        yield from re.findall(r"(?m)\b([a-z]+): ", code)


def _named(names: set[str]) -> dict[str, set[str]]:
    """Files of the product → the names of kinds in them."""
    paths = modules_with("|".join(names), *APPS, "aiplatform")
    found = {path: set(_words_of_python(text(path))) & names for path in paths}
    for app in [*APPS, "aiplatform", "templates"]:
        for path in [*(ROOT / app).rglob("*.js"), *(ROOT / app).rglob("*.html")]:
            found[path] = set(_words_of_text(path.read_text(), keys=app == "annotation")) & names
    return {path.relative_to(ROOT).as_posix(): words for path, words in found.items() if words}


def test_shape_kind_names_stand_in_their_own_files_only():
    found = _named(_names())

    assert _names() == {"bbox", "box", "polygon"}
    assert found.keys() - _own_files() - NAMED_IN.keys() == set(), found
    assert NAMED_IN.keys() <= found.keys()
    assert len(NAMED_IN) <= 4


def test_shape_kinds_have_a_module_an_icon_and_a_key_of_their_own():
    icons = (ROOT / "aiplatform/static/base/icons.svg").read_text()
    keys = (ROOT / "annotation/static/annotation/keys.js").read_text()
    taken = {
        key for entry in re.findall(r"(?:keys|also): \[([^\]]*)\]", keys) for key in re.findall(r'"([^"]+)"', entry)
    }

    assert len(taken) > 30
    for kind in shapes.drawable():
        assert (ROOT / f"annotation/static/annotation/shapes/{kind.tool}.js").is_file()
        assert f'id="{kind.icon}"' in icons
        assert kind.key not in taken, f"{kind.name}: {kind.key} does something else already"
        assert kind.hint
    drawn = [kind.key for kind in shapes.drawable()]
    assert len(set(drawn)) == len(drawn)
