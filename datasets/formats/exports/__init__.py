"""Export formats of versions and annotation projects other than COCO: one file each, one line here."""

from __future__ import annotations

from aiplatform.lib.registry import Registry
from datasets.formats.exports.export import Drawn, ExportFormat, Piece, Source
from datasets.formats.exports.voc import VOC
from datasets.formats.exports.yolo import YOLO, YOLO_OUTLINES

__all__ = ["FORMATS", "Drawn", "ExportFormat", "Piece", "Source"]

FORMATS: Registry[ExportFormat] = Registry("export format")
FORMATS.register(YOLO, YOLO_OUTLINES, VOC)
