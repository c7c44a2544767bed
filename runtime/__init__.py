"""The runtime: contexts, arrays, the engine and the executor."""
