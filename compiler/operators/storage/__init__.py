"""Operators about how arrays are kept: casts between storage types, rows that are retained, counts of what there is.

Begin with `sparse.py`. The forms of other operators on arrays that are kept in parts are in their families; the
gradient of an Embedding with `sparse_grad` is `_mxc_add_rows` of this family.
"""
