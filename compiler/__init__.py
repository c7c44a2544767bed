"""The compiler: graphs, operators, passes, kernels, targets, plans and the kernel cache."""
