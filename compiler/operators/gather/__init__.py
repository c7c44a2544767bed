"""Reading and writing at indices: take, pick, Embedding, one_hot, gather and scatter."""
