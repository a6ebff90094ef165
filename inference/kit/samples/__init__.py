"""Labelled images of a run: ground truth, groups, the split that a training learned from, the run contract."""
