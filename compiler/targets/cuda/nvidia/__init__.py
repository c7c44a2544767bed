"""NVIDIA's libraries in the place of mxc's kernels: cuBLASLt for products, cuDNN for convolutions (the extra `cuda`).

`forms.py` says which kernels are calls of a library, and which; `cublaslt.py` and `cudnn_graphs.py` make the calls;
`choice.py` takes them where they are faster, which `trial.py` measures. Nothing of it has run on a GPU (docs/cuda.md).
"""
