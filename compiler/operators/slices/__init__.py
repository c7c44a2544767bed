"""Parts of arrays: slices, splits and what joins them again, Pad, diagonals."""
