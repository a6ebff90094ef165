"""`evaluations/N/slices/` and `evaluations/comparison/slices/`: figures of parts of the images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from aiplatform.lib import queries
from inference.evaluation import differences, slices
from inference.evaluation.comparison_api import ComparedValueOut
from inference.evaluation.models import Evaluation
from inference.evaluation.slices import ImageFilter, Slice

PARAMETERS = [
    OpenApiParameter("search", str, description="Also selects images by words in their path."),
    OpenApiParameter("class_id", int, description="Also selects images by a class that they contain."),
    OpenApiParameter("split", str, description="The same: a split of the dataset version."),
]
ASKS = ("search", "class_id", "split")


class SliceOut(serializers.Serializer[Any]):
    by = serializers.CharField(help_text="split, pixels, light, count, object, mark or asked.")
    name = serializers.CharField(help_text="Which part: a split, small, dark, “occluded: true”.")
    images = serializers.IntegerField()
    objects = serializers.IntegerField(allow_null=True, help_text="Of parts by the size of objects.")
    few = serializers.BooleanField(help_text="Fewer than 30 images: the interval is too narrow to rely on.")
    figure = serializers.CharField(allow_null=True)
    values = ComparedValueOut(many=True, help_text="Of each evaluation, in their order.")


class SlicesOut(serializers.Serializer[Any]):
    base = serializers.IntegerField()
    slices = SliceOut(many=True, help_text="The worst of the first evaluation first; what was asked for before all.")


def of_one(request: Request, number: int) -> dict[str, Any]:
    """The parts of one evaluation."""
    user: Any = request.user
    row = slices.find_evaluation(user, number)
    return _slices(request, [row], row)


def compare(request: Request) -> dict[str, Any]:
    """Return the slices of some evaluations, with differences from a base."""
    user: Any = request.user
    query = request.query_params
    rows, base = differences.select_evaluations(
        user, queries.read_ints(query, "evaluation"), base=queries.read_int(query, "base")
    )
    return _slices(request, rows, base)


def _slices(request: Request, rows: Sequence[Evaluation], base: Evaluation) -> dict[str, Any]:
    user: Any = request.user
    query = request.query_params
    image_filter = ImageFilter(
        query.get("search", "")[:100], queries.read_int(query, "class_id"), query.get("split", "")[:10]
    )
    return {
        "base": base.pk,
        "slices": [_slice(part) for part in slices.compute(rows, base, image_filter=image_filter, by=user)],
    }


def _slice(part: Slice) -> dict[str, Any]:
    return {
        "by": part.by, "name": part.name, "images": part.images, "objects": part.objects, "few": part.is_small,
        "figure": part.row.key if part.row else None,
        "values": [dataclasses.asdict(value) for value in part.row.values] if part.row else [],
    }  # fmt: skip
