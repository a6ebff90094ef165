"""The demo's data set is exact, seeded and the same everywhere."""

import json

from aiplatform.cli.demo import digits


def test_demo_digits_boxes_lie_inside_and_hug_ink(tmp_path):
    made = digits.draw({"train": 3, "test": 2}, classes=(0, 1, 2))
    again = digits.draw({"train": 3, "test": 2}, classes=(0, 1, 2))

    assert [picture.boxes for picture in made] == [picture.boxes for picture in again]
    assert {picture.split for picture in made} == {"train", "test"}
    for picture in made:
        assert picture.boxes
        for _name, x, y, w, h in picture.boxes:
            assert x >= 0
            assert y >= 0
            assert x + w <= digits.WIDTH
            assert y + h <= digits.HEIGHT
            assert w >= 4
            assert h >= 12


def test_demo_digits_write_counts_coco_from_one_and_names_splits(tmp_path):
    made = digits.draw({"train": 2, "val": 1}, classes=(3, 4))

    folder = digits.write(tmp_path, made, annotated=True)
    coco = json.loads((folder / "annotations.json").read_text())

    assert [image["id"] for image in coco["images"]] == [1, 2, 3]
    assert [annotation["id"] for annotation in coco["annotations"]] == list(range(1, len(coco["annotations"]) + 1))
    assert [image["split"] for image in coco["images"]] == ["train", "train", "val"]
    assert len(list((folder / "images").glob("*.jpg"))) == 3
