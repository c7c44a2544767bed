"""The rewrite rules of `simplify`, by what they are about."""
