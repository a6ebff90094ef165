"""Tables of annotation: projects, sets, classes, image tasks, shapes, edits, exports."""

from annotation.models.exports import Export, targets
from annotation.models.projects import AnnotationProject, AnnotationSet, LabelClass, ProjectMember
from annotation.models.shapes import ImageTask, Review, Shape, ShapeEvent

__all__ = [
    "AnnotationProject",
    "AnnotationSet",
    "Export",
    "ImageTask",
    "LabelClass",
    "ProjectMember",
    "Review",
    "Shape",
    "ShapeEvent",
    "targets",
]
