"""Large images looked at in tiles: where tiles lie, and how answers to them become one answer to the image.

Sliced inference (Akyon et al. 2022). NumPy and Pillow alone: trainings score with it, and services and evaluations,
which find it copied beside them, answer with it, so that all of them say the same about an image.
"""
