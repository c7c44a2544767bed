"""Matrix products: dot, batch_dot, FullyConnected, and packed weights."""
