"""Functions of a program's own, written in Python, that become parts of graphs: how they are read and checked."""
