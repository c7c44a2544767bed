"""What MXNet 1.9.1 says that operators take: the operators, and the script that asks.

With MXNet's Python:  make_operator_arguments.py        writes operator_arguments.json
"""
from pathlib import Path

ANSWERS = Path(__file__).with_name("operator_arguments.json")
TEXT = """
Activation BatchNorm BlockGrad Cast Concat Convolution Custom Deconvolution Dropout Embedding Flatten FullyConnected
LRN LayerNorm LeakyReLU MakeLoss Pad Pooling RNN ROIPooling Reshape SequenceMask SliceChannel SoftmaxOutput SwapAxis
UpSampling _arange _contrib_MultiBoxDetection _contrib_box_nms _eye _minus _mul_scalar _ones _zeros adam_update add_n
argmax batch_dot broadcast_add clip concat dot elemwise_add exp expand_dims khatri_rao mean norm one_hot pick repeat
sgd_mom_update slice slice_axis softmax split stack take tile topk transpose where zeros_like nope _mxc_key
"""
CASES = TEXT.split()


def answer(mx, name):
    """(number, names, types), or that there is no such operator."""
    try:
        return list(mx.operator.get_operator_arguments(name))
    except mx.MXNetError:
        return "refused"


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
