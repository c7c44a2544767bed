"""Arrays made of numbers and shapes: zeros, ranges, eye, index arrays."""
