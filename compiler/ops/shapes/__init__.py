"""Shape rules: `def NAME(params, ins, outs) -> (ins, outs)`, both directions (0: unknown size, None: unknown rank)."""
