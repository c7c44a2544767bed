"""Arrays in another shape or order: Reshape, transpose, reverse, tile, broadcast."""
