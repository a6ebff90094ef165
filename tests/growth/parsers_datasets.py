"""Readers of data sets: texts of annotations in any encoding, names of images, folders that may hold masks."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets.formats import brush_rle, detect, encodings
from datasets.formats.listing import Listing
from tests.growth import registry
from tests.growth.parsers_text import JSON
from tests.growth.registry import Input, Parser, encoded, numbered, repeated

FOLDER = Path(tempfile.mkdtemp(prefix="growth-datasets-"))
_numbers = itertools.count()


def read_with(format_name: str, file: str, **others: bytes) -> Callable[[bytes], object]:
    """Read a data set of one image whose annotations are what is given."""

    def parse(data: bytes) -> object:
        root = FOLDER / str(next(_numbers))
        for name, content in {file: data, "a.png": b"", **others}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        try:
            return detect.FORMATS.get(format_name).read(Listing(root, files=[file, *others, "a.png"], images=["a.png"]))
        finally:
            shutil.rmtree(root)

    return parse


def coco(**changed: str) -> Mapping[str, Input]:
    """Files that repeat an entry of one list."""
    lists = {"images": '{"id":1,"file_name":"a.png"}', "categories": '{"id":1,"name":"a"}', "annotations": ""}

    def inputs(key: str, template: str) -> Input:
        others = ",".join(f'"{name}":[{text}]' for name, text in lists.items() if name != key)
        return numbered(template + ",", "{" + others + f',"{key}":[', "0]}")

    return {name: inputs(key, template) for name, (key, template) in _COCO.items()} | changed


_COCO = {
    "images": ("images", '{{"id":{},"file_name":"x/a{}.png"}}'.replace("a{}", "a")),
    "images of one id": ("images", '{{"id":1,"file_name":"a.png","x":{}}}'),
    "categories": ("categories", '{{"id":{},"name":"a"}}'),
    "boxes": ("annotations", '{{"id":{},"image_id":1,"category_id":1,"bbox":[1,1,2,2]}}'),
    "the same box": ("annotations", '{{"id":1,"image_id":1,"category_id":1,"bbox":[1,1,2,{}]}}'),
    "texts as ids": ("annotations", '{{"id":"a{}","image_id":"1","category_id":"1","bbox":[1,1,2,2]}}'),
    "unknown images": ("annotations", '{{"id":{0},"image_id":{0},"category_id":1,"bbox":[1,1,2,2]}}'),
}
LIMIT = 48_000  # larger files are read by the import worker; the growth is measured up to here


def register(parser: Parser) -> None:
    """Data sets are read by workers alone."""
    registry.register(replace(parser, runs_in=registry.JOB))


register(
    Parser(
        "COCO of a data set",
        read_with("coco", "a.json"),
        {**encoded(coco()), **encoded({
            "points": repeated("1,2,", '{"images":[{"id":1,"file_name":"a.png"}],"categories":[{"id":1,"name":"a"}],'
                               '"annotations":[{"id":1,"image_id":1,"category_id":1,"segmentation":[[', "1,2]]}]}"),
        })},
        LIMIT,
        ("datasets.formats.coco", "datasets.formats.coco_file"),
        json.dumps({"images": [], "annotations": [], "categories": []}).encode(),
    )
)  # fmt: skip
register(
    Parser(
        "YOLO labels",
        read_with("yolo", "a.txt"),
        encoded({"lines": numbered("0 0.5 0.5 0.1 0.{}\n"), "one line": repeated("0.1 ", "0 "),
                 "words": repeated("x\n"), "digits": repeated("1", "0 0.5 0.5 0.1 0."), "class": repeated("1")}),
        LIMIT,
        ("datasets.formats.yolo",),
        b"0 0.5 0.5 0.1 0.1\n",
    )
)  # fmt: skip
register(
    Parser(
        "YAML of YOLO",
        read_with("yolo", "data.yaml", **{"a.txt": b"0 0.5 0.5 0.1 0.1"}),
        encoded({"names": numbered("- a{}\n", "names:\n"), "numbered names": numbered("  {}: a\n", "names:\n"),
                 "lists in lists": repeated("["), "aliases": repeated("- *a\n", "x: &a [1]\nnames:\n"),
                 "base 60": repeated("1:", "names: [a]\nx: "), "text": repeated("a", "names: [a]\nx: ")}),
        LIMIT,
        ("datasets.formats.class_lists",),
        b"names: [a]\n",
    )
)  # fmt: skip


def xml(open_tag: str, close_tag: str, inside: str) -> Input:
    return numbered(inside, open_tag, close_tag)


register(
    Parser(
        "Pascal VOC",
        read_with("voc", "a.xml"),
        encoded({
            "objects": xml("<annotation>", "</annotation>", "<object><name>a{}</name></object>"),
            "nested": repeated("<a>", "<annotation>"), "attributes": numbered(' a{}="1"', "<annotation", "/>"),
            "open tag": repeated("a", "<annotation "), "text": repeated("a", "<annotation>", "</annotation>"),
            "spaces before": repeated(" "), "declaration": repeated("a", "<?xml "),
        }),
        LIMIT,
        ("datasets.formats.voc",),
        b"<annotation/>",
    )
)  # fmt: skip
SIZE = '<annotations><image id="0" name="a.png" width="40" height="30">'
END = "</image></annotations>"
CVAT_BOX = '<box label="a" xtl="1" ytl="1" xbr="2" ybr="2">'
register(
    Parser(
        "CVAT for images",
        read_with("cvat", "a.xml"),
        encoded({
            "boxes": xml(SIZE, END, '<box label="a{}" xtl="1" ytl="1" xbr="2" ybr="2"/>'),
            "points": repeated("1,2;", SIZE + '<polygon label="a" points="', '1,2"/>' + END),
            "runs": repeated("1,", SIZE + '<mask label="a" left="0" top="0" width="9" height="9" rle="', '1"/>' + END),
            "attributes": xml(SIZE + CVAT_BOX, "</box>" + END,
                              '<attribute name="n{}">1</attribute>'),
            "labels": xml("<annotations><meta><labels>", "</labels></meta></annotations>",
                          "<label><name>a{}</name></label>"),
        }),
        LIMIT,
        ("datasets.formats.cvat",),
        b"<annotations/>",
    )
)  # fmt: skip
SHAPES = '{"imagePath":"a.png","shapes":['
register(
    Parser(
        "LabelMe",
        read_with("labelme", "a.json"),
        encoded({
            "shapes": numbered('{{"label":"a{}","points":[[1,1],[2,2],[3,1]]}},', SHAPES, "0]}"),
            "one group": numbered('{{"label":"a","group_id":1,"points":[[{},1],[2,2],[3,1]]}},', SHAPES, "0]}"),
            "points": repeated("[1,2],", SHAPES + '{"label":"a","points":[', "[1,1]]}]}"),
            **JSON,
        }),
        LIMIT,
        ("datasets.formats.labelme",),
        b'{"imagePath":"a.png","shapes":[]}',
    )
)  # fmt: skip
TASK = '[{"data":{"image":"a.png"},"annotations":[{"result":['
register(
    Parser(
        "Label Studio",
        read_with("label-studio", "a.json"),
        encoded({
            "tasks": numbered('{{"id":{},"data":{{"image":"a.png"}},"annotations":[{{"result":[]}}]}},', "[", "0]"),
            "results": numbered('{{"id":"{}","type":"rectanglelabels","original_width":9,"original_height":9,"value":'
                                '{{"x":1,"y":1,"width":1,"height":1,"rectanglelabels":["a"]}}}},', TASK, "0]}]}]"),
            "results of one region": numbered('{{"id":"r","value":{{"labels":["a{}"]}}}},', TASK, "0]}]}]"),
            "names of images": numbered('"n{}":"a.png",', '[{"annotations":[],"data":{', '"x":"y"}}]'),
        }),
        LIMIT,
        ("datasets.formats.label_studio",),
        b'[{"data":{"image":"a.png"},"annotations":[]}]',
    )
)  # fmt: skip
register(
    Parser(
        "brush mask",
        lambda data: brush_rle.decode(list(data), 64, 64),
        {"repeated runs": lambda size: (16384).to_bytes(4) + bytes([0x38, 0x88, 0x88]) + b"\x80" * size,
         "literal runs": lambda size: (16384).to_bytes(4) + bytes([0x38, 0x88, 0x88]) + b"\x00" * size},
        LIMIT,
        (),
        (16384).to_bytes(4) + bytes([0x3F, 0xFF, 0xF7]) + bytes([0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0]),
    )
)  # fmt: skip
register(
    Parser(
        "text of unknown encoding",
        encodings.decode,
        {"CJK": lambda size: "红细胞".encode("gb18030") * (size // 6), "bytes": lambda size: b"\xa1\xfe" * (size // 2),
         "Latin": lambda size: "é".encode("cp1252") * size,
         "words": lambda size: "é a ".encode("cp1252") * (size // 4)},
        encodings.MAX_DETECTION_BYTES,
        (),
        b"a",
    )
)  # fmt: skip


def names(count: int, path: str, wanted: str) -> Any:
    images = [path.format(n) for n in range(count)]
    return Listing(FOLDER, files=images, images=images), [wanted.format(n) for n in range(count)]


register(
    Parser(
        "names of images",
        lambda given: [given[0].match(name) for name in given[1]],
        {"one name in many folders": lambda size: names(size // 20, "x/{}/a.png", "x/{}/a.png"),
         "paths of another computer": lambda size: names(size // 20, "x/{}/a.png", "C:\\set\\x\\{}\\a.png"),
         "deep paths": lambda size: names(size // 80, "x/" * 30 + "{}.png", "y/" * 30 + "{}.png"),
         "another ending": lambda size: names(size // 20, "x/{}.png", "x/{}.jpg")},
        LIMIT,
        ("datasets.formats.listing", "datasets.formats.image_names"),
        names(2, "{}.png", "{}.png"),
    )
)  # fmt: skip
