"""Training visualisation: curves, images, histograms, texts, graphs and vectors of any runs."""
