"""Commands as files that other programs run by their paths, in a folder where nothing hides a module of Python's."""
