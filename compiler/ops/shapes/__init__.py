"""Shape rules: def NAME(params, ins, outs) -> (ins, outs), both directions, partial knowledge (0: unknown, None: rank)."""
