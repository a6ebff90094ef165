"""Pictures that a service answered wrongly: kept, and sent back to annotation with its answers as a first draft."""
