"""What a task offers to the programs: prediction, scoring, pages. Data classes and functions only."""
