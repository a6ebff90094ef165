"""Collect shapes and tags of formats that call classes by name, and number the classes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aiplatform.lib.wording import message
from datasets.formats.neutral import CLASSES, ClassInfo, ImageItem, Parsed, Shape
from datasets.formats.problems import natural


@dataclass(slots=True)
class NamedClasses:
    """Shapes and tags by class name, until all names are known.

    Args:
        order: names in the order of the file; others follow in natural order.
    """

    order: dict[str, None] = field(default_factory=dict)
    shapes: list[tuple[ImageItem, str, Shape]] = field(default_factory=list)
    tags: list[tuple[ImageItem, str, str]] = field(default_factory=list)

    def add(self, image: ImageItem, label: str, shape: Shape) -> None:
        self.shapes.append((image, label, shape))

    def tag(self, image: ImageItem, label: str, where: str) -> None:
        """Note a class of the image as a whole; `where` is its place in the file."""
        self.tags.append((image, label, where))

    def number(self, parsed: Parsed) -> None:
        """Give classes their ids and images their shapes or their class.

        A data set with shapes has ids from 1, and its tags are skipped. One with tags alone becomes a classification
        with ids from 0; of several tags of an image the first counts, and images without one are left out.
        """
        if self.shapes or not self.tags:
            ids = self._ids([label for _image, label, _shape in self.shapes], first=1)
            for image, label, shape in self.shapes:
                shape.class_id = ids[label]
                image.shapes.append(shape)
            for _image, label, where in self.tags:
                parsed.problems.skip(where, "tag", message("report.tag_beside_shapes", label=label))
        else:
            ids = self._ids([label for _image, label, _where in self.tags], first=0)
            parsed.task = CLASSES
            for image, label, where in self.tags:
                if image.label is None:
                    image.label = ids[label]
                else:
                    parsed.problems.skip(where, "tag", message("report.second_tag", label=label, image=image.path))
            for image in parsed.images:
                if image.label is None:
                    parsed.problems.add(image.source, "image_without_class", message("report.no_tag"))
            parsed.images = [image for image in parsed.images if image.label is not None]
        parsed.classes = [ClassInfo(number, name) for name, number in ids.items()]

    def _ids(self, labels: Sequence[str], *, first: int) -> dict[str, int]:
        names = list(dict.fromkeys([*self.order, *sorted(set(labels), key=natural)]))
        return {name: number for number, name in enumerate(names, first)}
