"""A model from elsewhere is tried on pictures: the right way comes first. The real program, alone in its run."""

import pytest

from inference.formats.declared import Declared
from tests.inference import seeing, tried

pytestmark = pytest.mark.django_db
PICTURES = [seeing.picture(), seeing.picture(seed=1)]


@pytest.mark.parametrize("layout", seeing.LAYOUTS)
def test_layout_pixels_and_resize_are_found_by_pictures_alone(alice, tmp_path, layout):
    pixels, resize = ("bytes", "letterbox") if layout == "yolox" else ("unit", "letterbox")
    path = seeing.model(tmp_path / "net.onnx", layout, pixels, resize)
    task = tried.submitted(alice, path, pictures=PICTURES, declared=Declared(labels=seeing.CLASSES))

    log = tried.ran(task)

    first = tried.best(task)[0]
    assert (first.task, first.layout, first.pixels, first.resize) == ("detection", layout, pixels, resize), log
