"""Region proposals: boxes of interest from scores and offsets of anchors."""
