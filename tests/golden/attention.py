"""Golden cases of the products of self attention."""
from __future__ import annotations

from golden.cases import Case, case

QK, VALATT = (f"_contrib_interleaved_matmul_selfatt_{name}" for name in ("qk", "valatt"))
OTHER_QK, OTHER_VALATT = (f"_contrib_interleaved_matmul_encdec_{name}" for name in ("qk", "valatt"))


def cases() -> list[Case]:
    made = []
    for label, (length, batch, depth), heads in (("plain", (4, 2, 5), 3), ("one_head", (3, 2, 4), 1),
                                                 ("one", (1, 1, 1), 2)):
        data = (length, batch, heads * 3 * depth)
        made.append(case(QK, label, {"queries_keys_values": data}, {"heads": heads}))
        made.append(case(VALATT, label, {"queries_keys_values": data, "attention": (batch * heads, length, length)},
                         {"heads": heads}))
    made.append(case(QK, "two_axes", {"queries_keys_values": (4, 12)}, {"heads": 2}))
    made.append(case(VALATT, "two_axes", {"queries_keys_values": (4, 12), "attention": (2, 4, 4)}, {"heads": 2}))
    made.append(case(VALATT, "other_length", {"queries_keys_values": (4, 1, 12), "attention": (2, 4, 3)}, {"heads": 2}))
    for label, (length, other, batch, depth), heads in (("plain", (4, 3, 2, 5), 3), ("one_head", (2, 4, 3, 2), 1),
                                                        ("one", (1, 1, 1, 1), 2)):
        queries, rest = (length, batch, heads * depth), (other, batch, heads * 2 * depth)
        made.append(case(OTHER_QK, label, {"queries": queries, "keys_values": rest}, {"heads": heads}))
        made.append(case(OTHER_VALATT, label, {"keys_values": rest, "attention": (batch * heads, length, other)},
                         {"heads": heads}))
    made.append(case(OTHER_QK, "other_depth", {"queries": (4, 1, 4), "keys_values": (4, 1, 12)}, {"heads": 2}))
    made.append(case(OTHER_VALATT, "other_length", {"keys_values": (4, 1, 8), "attention": (2, 4, 3)}, {"heads": 2}))
    return made
