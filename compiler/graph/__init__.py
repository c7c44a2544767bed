"""Graphs: nodes that apply operators to entries (a node's outputs), as text, as MXNet's JSON, and checked.

Begin with `graph.py` (Node, Entry, Graph, GraphBuilder), then `text.py`, in which tests write graphs. `json_ir.py` and
`legacy.py` read symbol files. Passes and operators' rules write new nodes with `building.py` and `gradient_rule.py`,
and ask `options.py`, `phases.py` and `purity.py`; all layers above may import every file here.
"""
