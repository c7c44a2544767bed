"""Networks of GluonCV and GluonNLP, run as these packages make them, and what comes out.

    python -m mxc.as_mxnet package_networks.py NAME ...     # for MXNet 1.9.1 without `-m mxc.as_mxnet`

prints a line of JSON for each network: its name and, of each output, the shape, some numbers and the sum of all. What
MXNet 1.9.1 prints is package_networks.jsonl (tests/test_packages.py), with the environment variable
MXNET_MKLDNN_ENABLED=0 for GluonCV's networks and hybridised ELMo, of which some fail there with oneDNN, but for those
over numbers of 8 bits, which need it and MXNET_SUBGRAPH_BACKEND=NONE. Parameters and inputs are drawn by NumPy, so they
are the same everywhere.
"""
import json
import sys
import types
import warnings
import zlib

import mxnet as mx
import numpy as np

IMAGE = (1, 3, 224, 224)
# Of GluonCV's networks: the inputs, and whether the numbers are compared. They are not where they are detections in the
# order of their scores, which are near to each other where a network was not trained.
VISION = {
    **dict.fromkeys(("resnet18_v1", "resnet18_v2", "resnet18_v1b_0.89", "resnet18_v1b", "resnest14", "se_resnet18_v1",
                     "mobilenet0.25", "mobilenetv2_0.25", "mobilenetv3_small", "densenet121", "squeezenet1.0",
                     "shufflenet_v2", "googlenet", "dla34", "hrnet_w18_small_v1_c"), ([IMAGE], True)),
    "inceptionv3": ([(1, 3, 299, 299)], True), "xception": ([(1, 3, 299, 299)], True),
    "cifar_resnet20_v1": ([(1, 3, 32, 32)], True), "cifar_resnext29_32x4d": ([(1, 3, 32, 32)], True),
    "fcn_resnet50_voc": ([(1, 3, 480, 480)], True), "deeplab_resnet50_ade": ([(1, 3, 480, 480)], True),
    "icnet_resnet50_citys": ([(1, 3, 480, 480)], True), "hrnet_w18_small_v1_s": ([(1, 3, 480, 480)], True),
    "simple_pose_resnet18_v1b": ([(1, 3, 256, 192)], True), "mobile_pose_mobilenetv3_small": ([(1, 3, 256, 192)], True),
    "siamrpn_alexnet_v2_otb15": ([(1, 3, 127, 127), (1, 3, 287, 287)], True),
    "i3d_inceptionv1_kinetics400": ([(1, 3, 32, 224, 224)], True),
    "r2plus1d_resnet18_kinetics400": ([(1, 3, 16, 112, 112)], True),
    "ssd_300_mobilenet0.25_voc": ([(1, 3, 300, 300)], False), "yolo3_mobilenet0.25_coco": ([(1, 3, 416, 416)], False),
    "center_net_resnet18_v1b_dcnv2_voc": ([(1, 3, 512, 512)], False),
    "faster_rcnn_fpn_resnet50_v1b_coco": ([(1, 3, 384, 512)], False),
}
# Of GluonCV's graphs over numbers of 8 bits: the input. Their functions also make the network that the graph was made
# of, and ask it for its classes alone; it is left out, for some need weights that are downloaded.
QUANTIZED = {
    **dict.fromkeys(("mobilenet1.0_int8", "resnet50_v1_int8"), IMAGE),
    **dict.fromkeys(("resnet18_v1b_kinetics400_int8", "resnet50_v1b_kinetics400_int8"), (7, 3, 224, 224)),
    "vgg16_ucf101_int8": (3, 3, 224, 224),
    **dict.fromkeys(("inceptionv3_ucf101_int8", "inceptionv3_kinetics400_int8"), (3, 3, 299, 299)),
    **dict.fromkeys((f"simple_pose_resnet{name}_int8" for name in ("18_v1b", "50_v1b", "50_v1d", "101_v1b", "101_v1d")),
                    (1, 3, 256, 192)),
    **dict.fromkeys((f"{name}_resnet101_{data}_int8" for name in ("fcn", "psp", "deeplab") for data in ("voc", "coco")),
                    (1, 3, 480, 480)),
    "ssd_300_vgg16_atrous_voc_int8": (1, 3, 300, 300),
    **dict.fromkeys((f"ssd_512_{name}_voc_int8" for name in ("mobilenet1.0", "resnet50_v1", "vgg16_atrous")),
                    (1, 3, 512, 512)),
}
# Of GluonNLP's: the vocabulary's class, and the call. Each call gives the network, a function of a shape that draws
# words, and a function that makes arrays.
LANGUAGE = {
    "bert_12_768_12": lambda net, words, array: net(
        words(2, 16), array([[0] * 8 + [1] * 8] * 2), array([16, 9]), array([[1, 3], [2, 4]])),
    "distilbert_6_768_12": lambda net, words, array: net(words(2, 16), array([16, 9])),
    "awd_lstm_lm_600": lambda net, words, array: net(words(12, 3), net.begin_state(batch_size=3)),
    "standard_lstm_lm_200": lambda net, words, array: net(words(12, 3), net.begin_state(batch_size=3)),
    "big_rnn_lm_2048_512": lambda net, words, array: net(words(5, 3), net.begin_state(batch_size=3, func=mx.nd.zeros)),
    "elmo_2x1024_128_2048cnn_1xhighway": lambda net, words, array: net(
        words(2, 7, 50, limit=260), net.begin_state(mx.nd.zeros, batch_size=2), array([[1] * 7, [1] * 4 + [0] * 3])),
    # the same network without a mask, which is hybridised
    "elmo_2x1024_128_2048cnn_1xhighway/unmasked": lambda net, words, array: net(
        words(2, 7, 50, limit=260), net.begin_state(mx.nd.zeros, batch_size=2)),
}
EAGER = ("standard_lstm_lm_200", "elmo_2x1024_128_2048cnn_1xhighway")  # MXNet refuses to hybridise these as they are


def leaves(value):
    """The arrays of nested lists."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [value]


def give(net):
    """Give every parameter values that its path tells, of a size that keeps the outputs' in bounds."""
    for path, param in net._collect_params_with_prefix().items():
        known = param.shape is not None and all(extent > 0 for extent in param.shape)
        if not known or (param.grad_req == "null" and not path.endswith(("mean", "var"))):
            continue
        random = np.random.RandomState(zlib.crc32(path.encode()))
        if path.endswith(("var", "gamma")):
            values = random.uniform(0.8, 1.2, param.shape)
        else:
            fan = np.prod(param.shape[1:]) if len(param.shape) > 1 else 400
            values = random.standard_normal(param.shape) / np.sqrt(fan)
        param.set_data(mx.nd.array(values, dtype=param.dtype))


def vision(name):
    """A network of GluonCV, and the call of it."""
    from gluoncv import model_zoo

    try:
        net = model_zoo.get_model(name, pretrained=False, pretrained_base=False)
    except TypeError:  # a network without a base
        net = model_zoo.get_model(name, pretrained=False)
    inputs = [mx.nd.array(np.random.RandomState(i).uniform(0, 1, shape)) for i, shape in enumerate(VISION[name][0])]
    return net, lambda: net(*inputs)


def quantized(name):
    """A graph of GluonCV over numbers of 8 bits, and the call of it."""
    from gluoncv.model_zoo import model_zoo

    make, model_zoo.get_model = model_zoo.get_model, lambda *_, **__: types.SimpleNamespace(classes=())
    try:
        net = make(name)
    finally:
        model_zoo.get_model = make
    data = mx.nd.array(np.random.RandomState(0).uniform(0, 1, QUANTIZED[name]))
    return net, lambda: net(data)


def language(name):
    """A network of GluonNLP, and the call of it."""
    import gluonnlp

    words = gluonnlp.data.count_tokens([f"word{i}" for i in range(997)])
    vocabulary = gluonnlp.vocab.BERTVocab(words) if "bert" in name else gluonnlp.Vocab(words)
    options = {} if name.startswith("elmo") else {"vocab": vocabulary}
    net, _ = gluonnlp.model.get_model(name.partition("/")[0], dataset_name=None, pretrained=False, **options)

    def draw(*shape, limit=900):
        return mx.nd.array(np.random.RandomState(3).randint(4, limit, shape))

    return net, lambda: LANGUAGE[name](net, draw, mx.nd.array)


def short(array):
    """The shape, and some of the numbers with the sum of all."""
    values = array.asnumpy().astype("float64").ravel()
    return [list(array.shape), [float(f"{v:.5g}") for v in (*values[:: values.size // 5 + 1], values.sum())]]


def outputs(name):
    """What a network gives: hybridised, with the same parameters everywhere."""
    net, call = next(make for names, make in ((VISION, vision), (QUANTIZED, quantized), (LANGUAGE, language))
                     if name in names)(name)
    net.initialize()
    if name not in EAGER:
        net.hybridize()
    call()  # tells the shapes of the parameters
    give(net)
    made = [leaf + 0 for leaf in leaves(call())]
    compared = VISION[name][1] if name in VISION else not name.startswith("ssd")
    assert all(np.isfinite(array.asnumpy()).all() for array in made), name
    return [short(array) if compared else list(array.shape) for array in made]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for each in sys.argv[1:]:
        print(json.dumps([each, outputs(each)]), flush=True)
