"""Commands as files that other programs run by their paths, as MXNet's `tools/im2rec.py` is run.

They have a folder of their own, where nothing hides a module of Python's.
"""
