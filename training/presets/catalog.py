"""The presets one can choose from, in the order pages show them. No torch here: the web reads this file too."""

from __future__ import annotations

from . import (
    anomaly_card,
    classify_card,
    detect_card,
    embed_card,
    hog_detect_card,
    hog_svm_card,
    instances_card,
    keypoints_card,
    segment_card,
    tag_card,
)
from .preset import Preset

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        detect_card.CARD,
        classify_card.CARD,
        segment_card.CARD,
        keypoints_card.CARD,
        embed_card.CARD,
        hog_svm_card.CARD,
        anomaly_card.CARD,
        instances_card.CARD,
        tag_card.CARD,
        hog_detect_card.CARD,
    )
}
