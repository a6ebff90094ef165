"""What a node sees of itself: cards by a probe, processor, memory, disk and net by /proc."""
