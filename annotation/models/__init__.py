"""Tables: projects and their sets, classes, images to do, shapes and the journal of edits, exports."""

from annotation.models.exports import Export
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
]
