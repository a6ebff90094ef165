"""What an image is called: never as the pictures of a dataset are."""

from __future__ import annotations

from django.utils import translation

from workers.images.fields import ImageChoice
from workers.jobs.output import phase_words


def test_image_of_a_job_is_no_picture_in_chinese():
    with translation.override("zh-hans"):
        assert str(ImageChoice().label) == "镜像"
        assert dict(phase_words.phases())["image"] == "镜像"
