"""Programs with initializers, written once for MXNet and mxc: what they make of arrays, say of themselves, or raise.

With MXNet's Python, `initializers.py` writes what MXNet 1.9.1 answers to initializers.json;
tests/test_initializers.py compares mxc's. A case is an expression over the names of `_scope`.
"""
# ruff: noqa: E501 (a case is a line)
import json
import pickle
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_suffix(".json")
METHODS = ("_init_weight", "_init_bias", "_init_gamma", "_init_beta", "_init_zero", "_init_one", "_init_default",
           "_init_bilinear", "_init_loc_bias", "_init_quantized_bias", "_init_quantized_weight")
NAMES = ("fc_weight", "fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "bn_running_mean",
         "bn_running_var", "moving_inv_var", "bn_moving_avg", "bn_moving_inv_var", "x_min", "x_max", "data_min", "data_max",
         "upsampling_weight", "upsampling0", "stn_loc_weight", "stn_loc_bias", "fc_weight_quantize",
         "fc_bias_quantize", "rnn_parameters", "lstm_init_c", "lstm_begin_state_0", "weight", "bias", "gamma", "beta",
         "a_Weight", "weights", "data", "softmax_label", "x_alpha", "", "fc_weight_min", "fc_bias_max", "moving_meanx",
         "gamma_weight", "admin", "climax", "min", "max", "weight_quantize", "x_quantize", "weight_gamma", "x_running_avg", "x_scale", "bilinear_weight", "my_parameters_weight")
CASES = [f"{made}({name!r})" for name in NAMES for made in ("told", "told_plain")] + r"""
filled('Zero()', (2, 3))
filled('One()', (2, 3))
filled('Constant(2.5)', (2, 3))
filled('Constant(value=-1)', (4,))
filled('Constant([1, 2, 3])', (2, 3))
filled('Constant(np.array([[1], [2]]))', (2, 3))
filled('Constant(mx.nd.array([1, 2, 3]))', (2, 3))
filled('Constant([1, 2])', (2, 3))
filled('Constant("a")', (2, 3))
filled('Constant(None)', (2, 3))
filled('Bilinear()', (2, 1, 4, 4))
filled('Bilinear()', (1, 2, 3, 3))
filled('Bilinear()', (1, 1, 2, 5))
filled('Bilinear()', (3, 3))
filled('LSTMBias()', (8,))
filled('LSTMBias(forget_bias=3.5)', (12,))
filled('LSTMBias(2.0)', (6,))
filled('LSTMBias(2.0)', (4, 2))
filled('Zero()', (2, 3), 'fc_bias')
filled('Xavier()', (2, 3), 'fc_bias_quantize', None, 'int8')
plain('Xavier()', (1, 1, 4, 4), 'upsampling_weight')
plain('One()', (2, 3), 'stn_loc_weight')
plain('One()', (6,), 'stn_loc_bias')
plain('One()', (2, 3), 'stn_loc_bias')
plain('One()', (4,), 'stn_loc_bias')
plain('Constant(3)', (4,), 'fc_weight')
plain('Constant(3)', (4,), 'bn_moving_mean')
plain('Constant(3)', (4,), 'bn_moving_var')
plain('Constant(3)', (4,), 'bn_what')
filled('One()', (2, 3), 'fc_bias')
filled('Constant(3)', (2, 3), 'fc_bias')
filled('Constant(3)', (2, 3), 'bn_gamma')
filled('Constant(3)', (2, 3), 'bn_moving_var')
filled('One()', (2, 3), 'bn_moving_mean')
filled('One()', (2, 3), 'what')
filled('Xavier()', (2, 3), 'fc_bias')
filled('LSTMBias()', (8,), 'fc_bias')
filled('Bilinear()', (8,), 'fc_bias')
filled('Uniform()', (8,), 'bn_gamma')
filled('Normal()', (8,), 'bn_beta')
filled('Xavier()', (3,))
filled('Xavier(factor_type="no")', (3, 4))
filled('Xavier(rnd_type="no")', (3, 4))
filled('Xavier(magnitude=-1)', (3, 4))
filled('MSRAPrelu()', (3,))
filled('Orthogonal()', (3,))
filled('Orthogonal(rand_type="no")', (3, 4))
filled('Uniform(-1)', (3, 4))
filled('Uniform("a")', (3, 4))
filled('Normal(-1)', (3, 4))
filled('Zero()', (2, 3), 'w', {'__init__': '["constant", {"value": 7}]'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': '["constant", {"value": 7}]'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': 'ones'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': 'One'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': ''})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': 'no such'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': '["no such", {}]'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': '["constant", {}]'})
filled('Zero()', (2, 3), 'fc_bias', {'__init__': '[broken'})
filled('Zero()', (8,), 'fc_weight', {'__init__': '["lstmbias", {"forget_bias": 2.0}]'})
filled('One()', (2, 3), 'fc_weight', {'__lr_mult__': '2', 'shape': '3'})
filled('Initializer()', (2, 3))
filled('Initializer()', (2, 3), 'fc_bias')
filled('Mixed([".*bias", ".*"], [mx.init.One(), mx.init.Zero()])', (2, 3), 'fc_bias')
filled('Mixed([".*bias", ".*"], [mx.init.Constant(3), mx.init.One()])', (2, 3), 'fc_weight')
filled('Mixed(["bias", ".*"], [mx.init.Constant(3), mx.init.One()])', (2, 3), 'fc_bias')
filled('Mixed(["fc_w", ".*"], [mx.init.Constant(3), mx.init.One()])', (2, 3), 'fc_weight')
filled('Mixed([".*bias"], [mx.init.One()])', (2, 3), 'fc_weight')
filled('Mixed([".*bias", "x"], [mx.init.One()])', (2, 3), 'fc_weight')
filled('Mixed(["("], [mx.init.One()])', (2, 3), 'fc_weight')
filled('Mixed([".*"], ["one"])', (2, 3), 'fc_weight')
filled('Mixed([".*"], [mx.init.Zero()])', (2, 3), 'fc_weight', {'__init__': 'ones'})
filled('Load({"fc_weight": mx.nd.ones((2, 3)) * 5})', (2, 3), 'fc_weight')
filled('Load({"arg:fc_weight": mx.nd.ones((2, 3)) * 5})', (2, 3), 'fc_weight')
filled('Load({"aux:fc_weight": mx.nd.ones((2, 3)) * 5})', (2, 3), 'fc_weight')
filled('Load({"fc_weight": mx.nd.ones((2, 2)) * 5})', (2, 3), 'fc_weight')
filled('Load({})', (2, 3), 'fc_weight')
filled('Load({}, mx.init.One())', (2, 3), 'fc_weight')
filled('Load({}, mx.init.One())', (2, 3), 'fc_bias')
filled('Load({"fc_bias": mx.nd.ones((2, 3)) * 5}, default_init=mx.init.One(), verbose=True)', (2, 3), 'fc_bias')
filled('Load({"fc_weight": np.ones((2, 3)) * 5})', (2, 3), 'fc_weight')
filled('Load([mx.nd.ones(3)])', (2, 3), 'fc_weight')
filled('Load(3)', (2, 3), 'fc_weight')
filled('Load("no such file.params")', (2, 3), 'fc_weight')
loaded({'arg:fc_weight': 3, 'aux:bn_moving_mean': 4, 'x': 5})
loaded([3, 4])
sorted(mx.init.Load({'arg:a': mx.nd.ones(1), 'aux:b': mx.nd.ones(1), 'c': mx.nd.ones(1), 'arg:c': mx.nd.ones(1)}).param)
[mx.init.Load({'x': mx.nd.ones(1)}).default_init, mx.init.Load({'x': mx.nd.ones(1)}).verbose]
mx.init.Zero().dumps()
mx.init.One().dumps()
mx.init.Constant(3).dumps()
mx.init.Constant([1, 2]).dumps()
mx.init.Constant(np.array([1.5, 2])).dumps()
mx.init.Constant(mx.nd.array([1.5, 2])).dumps()
mx.init.Uniform().dumps()
mx.init.Uniform(0.5).dumps()
mx.init.Normal().dumps()
mx.init.Orthogonal().dumps()
mx.init.Xavier().dumps()
mx.init.Xavier('gaussian', 'in', 2.34).dumps()
mx.init.MSRAPrelu().dumps()
mx.init.MSRAPrelu('out', 0.1).dumps()
mx.init.Bilinear().dumps()
mx.init.LSTMBias(2.0).dumps()
mx.init.FusedRNN(None, 3, 1, 'lstm').dumps()
mx.init.FusedRNN(mx.init.Xavier(), 3, 1, 'lstm', True, 2.0).dumps()
mx.init.FusedRNN('xavier', 3, 1, 'lstm').dumps()
mx.init.FusedRNN('["constant", {"value": 3}]', 3, 1, 'gru').dumps()
mx.init.Initializer(a=1, b='x').dumps()
mx.init.Xavier() == mx.init.Xavier()
mx.init.Xavier() == mx.init.Xavier(magnitude=4)
mx.init.Xavier() == mx.init.Uniform()
mx.init.Xavier() == 3
mx.init.Zero() == mx.init.Zero()
mx.init.Zero() != mx.init.Zero()
mx.init.MSRAPrelu() == mx.init.MSRAPrelu(slope=0.25)
hash(mx.init.Zero()) > 0
made('zeros')
made('Ones')
made('one')
made('xavier')
made('xavier', magnitude=2)
made('Xavier', 'gaussian', 'in')
made('msraprelu', slope=0.1)
made('["uniform", {"scale": 0.5}]')
made('{"initializer": "uniform", "scale": 0.5}')
made({'initializer': 'uniform', 'scale': 0.5})
made('constant')
made('constant', 3)
made('constant', value=3)
made('no such')
made('')
made(None)
made(3)
made(mx.init.One())
made(mx.init.One(), 3)
made('bilinear')
made('lstmbias')
made('fusedrnn', None, 3, 1, 'lstm')
made('mixed')
made('load')
made('uniform', 1, 2, 3)
[type(mx.init.create(name)).__name__ for name in ('zero', 'zeros', 'one', 'ones', 'uniform', 'normal', 'orthogonal', 'xavier', 'msraprelu', 'bilinear', 'lstmbias')]
fused('lstm', 5, 2, 1)
fused('lstm', 5, 2, 2)
fused('lstm', 5, 2, 2, True)
fused('gru', 3, 2, 1)
fused('gru', 3, 2, 1, True)
fused('rnn_tanh', 3, 2, 1)
fused('rnn_relu', 3, 2, 2, True)
fused_names('lstm', 3, 2, 2, True)
fused_names('gru', 3, 2, 1)
fused_names('rnn_tanh', 3, 2, 1)
fused_global('lstm')
fused_global('gru')
fused_wrong('lstm', (7,))
fused_wrong('no such mode', (84,))
filled('FusedRNN(None, 2, 1, "lstm")', (40,), 'lstm_parameters')
filled('FusedRNN(None, 2, 1, "lstm")', (40,), 'lstm_weight')
described('fc_weight')
described('fc_weight', {'__init__': 'ones'})
described('fc_weight', None, 3)
described('fc_weight', {})
mx.init.InitDesc('a') == 'a' and mx.init.InitDesc('a').endswith('a')
mx.init.InitDesc()
type(pickle.loads(pickle.dumps(mx.init.InitDesc('a', {'b': 'c'})))).__name__
verbose('One()', 'fc_weight')
verbose('Zero()', 'fc_bias')
verbose('Constant(2)', 'bn_gamma')
verbose('Constant(2)', 'bn_moving_var')
verbose('Constant(3)', 'fc_weight', {'__init__': '["constant", {"value": 4}]'})
verbose('Zero()', 'fc_bias', None, 'first')
verbose('One()', 'x_min')
verbose('Zero()', 'x_max')
verbose('One()', 'bn_beta')
verbose('One()', 'fc_bias_quantize')
verbose_plain('One()', 'fc_weight')
mx.init.Zero().set_verbosity(True)._verbose
own()
own_attr()
mx.init.register(int)
mx.init.register('x')
mx.init.alias('a')(int)
aliased('threes', 'three')
wrong_call(3)
wrong_call(None)
wrong_arr('fc_weight', None)
wrong_arr('fc_weight', 3)
spread('Uniform()', (400, 500))
spread('Uniform(0.5)', (400, 500))
spread('Uniform(scale=2)', (40, 50, 5, 5))
spread('Normal()', (400, 500))
spread('Normal(2)', (400, 500))
spread('Xavier()', (400, 500))
spread('Xavier()', (100, 50, 5, 5))
spread('Xavier("gaussian")', (400, 500))
spread('Xavier("gaussian", "in", 2)', (200, 100, 3, 3))
spread('Xavier("uniform", "out", 2.34)', (200, 100, 3, 3))
spread('Xavier(factor_type="in", magnitude=9)', (1000, 200, 1, 1))
spread('MSRAPrelu()', (400, 500))
spread('MSRAPrelu("out", 0.0)', (200, 100, 3, 3))
spread('MSRAPrelu(factor_type="in", slope=1)', (200, 100, 3, 3))
spread('Orthogonal()', (300, 300))
orthogonal('Orthogonal()', (20, 20))
orthogonal('Orthogonal()', (20, 30))
orthogonal('Orthogonal(scale=2)', (30, 20))
orthogonal('Orthogonal(1.0, "normal")', (20, 3, 3, 2))
""".strip().splitlines()


# long: many short functions, which cases call by name
def _scope(mx):
    """The names of a case's expression. told: which method of an initializer a parameter's name leads to. filled: what
    an initializer makes of an array. spread: rough statistics of that."""
    def make(text):
        return eval(f"mx.init.{text}", {"mx": mx, "np": np})

    def teller(found):
        def method(name):
            return lambda self, *args: found.append(name)

        return type("Told", (mx.init.Initializer,), {name: method(name) for name in METHODS})()

    def told(name):
        found = []
        teller(found)(mx.init.InitDesc(name), mx.nd.zeros((2, 2)))
        return found

    def told_plain(name):
        found = []
        teller(found)(name, mx.nd.zeros((2, 2)))
        return found

    def filled(text, shape, name="fc_weight", attrs=None, dtype="float32"):
        array = mx.nd.full(shape, 9, dtype=dtype)
        make(text)(mx.init.InitDesc(name, attrs), array)
        return array.asnumpy().tolist()

    def plain(text, shape, name):
        array = mx.nd.full(shape, 9)
        make(text)(name, array)
        return array.asnumpy().tolist()

    def loaded(values):
        arrays = {k: mx.nd.full((2,), v) for k, v in values.items()} if isinstance(values, dict) else \
            [mx.nd.full((2,), v) for v in values]
        with tempfile.TemporaryDirectory() as folder:
            mx.nd.save(f"{folder}/x.params", arrays)
            found = mx.init.Load(f"{folder}/x.params")
        return {name: found.param[name].asnumpy().tolist() for name in sorted(found.param)}

    def made(*args, **kwargs):
        found = mx.init.create(*args, **kwargs)
        return [type(found).__name__, json.loads(found.dumps())]

    def size(mode, inputs, hidden, layers, bidirectional):
        gates, ways = {"lstm": 4, "gru": 3}.get(mode, 1), 1 + bidirectional
        return sum(gates * hidden * ways * ((inputs if i == 0 else hidden * ways) + hidden + 2) for i in range(layers))

    def fused(mode, inputs, hidden, layers, bidirectional=False):
        class Named(mx.init.Initializer):
            def __call__(self, desc, array):
                array[:] = sum(i * ord(letter) for i, letter in enumerate(desc))

        array = mx.nd.full((size(mode, inputs, hidden, layers, bidirectional),), 9)
        mx.init.FusedRNN(Named(), hidden, layers, mode, bidirectional, 7.0)._init_weight(mx.init.InitDesc("p"), array)
        return array.asnumpy().tolist()

    def fused_names(mode, inputs, hidden, layers, bidirectional=False):
        names = []

        class Named(mx.init.Initializer):
            def __call__(self, desc, array):
                names.append([str(desc), list(array.shape), type(desc).__name__])
                array[:] = len(names)

        array = mx.nd.full((size(mode, inputs, hidden, layers, bidirectional),), 9)
        mx.init.FusedRNN(Named(), hidden, layers, mode, bidirectional)._init_weight(mx.init.InitDesc("p"), array)
        return [sorted(names), len(set(array.asnumpy().tolist()))]

    def fused_global(mode):
        array = mx.nd.full((size(mode, 3, 2, 1, False),), 9)
        desc = mx.init.InitDesc("p_parameters", {"__init__": mx.init.FusedRNN(None, 2, 1, mode).dumps()})
        mx.init.One()(desc, array)
        return array.asnumpy().tolist()

    def fused_wrong(mode, shape):
        mx.init.FusedRNN(mx.init.One(), 3, 1, mode)._init_weight(mx.init.InitDesc("p"), mx.nd.zeros(shape))

    def described(*args):
        found = mx.init.InitDesc(*args)
        return [found, found.attrs, found.global_init, isinstance(found, str)]

    def verbose(text, name, attrs=None, show=None):
        init = make(text).set_verbosity(True, None if show is None else lambda x: str(x.asnumpy().ravel()[0]))
        return answers.logged(lambda: init(mx.init.InitDesc(name, attrs), mx.nd.full((2, 2), 9)))[1]

    def verbose_plain(text, name):
        return answers.logged(lambda: make(text).set_verbosity(True)(name, mx.nd.full((2, 2), 9)))[1]

    def own():
        @mx.init.register
        class Mine(mx.init.Initializer):
            def __init__(self, by=2):
                super().__init__(by=by)
                self.by = by

            def _init_weight(self, _, arr):
                arr[:] = self.by

        array = mx.nd.zeros((2,))
        found = mx.init.create("mine", by=4)
        found(mx.init.InitDesc("fc_weight"), array)
        return [found.dumps(), array.asnumpy().tolist(), mx.init.create(found.dumps()) == found]

    def own_attr():
        class Other(mx.init.Initializer):
            def _init_weight(self, _, arr):
                arr[:] = 6

        mx.init.register(Other)
        array = mx.nd.zeros((2,))
        var = mx.sym.Variable("x_bias", init=Other())
        mx.init.Zero()(mx.init.InitDesc("x_bias", var.attr_dict()["x_bias"]), array)
        return [var.attr("__init__"), array.asnumpy().tolist()]

    def aliased(*names):
        class Threes(mx.init.Constant):
            def __init__(self):
                super().__init__(3)

        mx.init.alias(*names)(Threes)
        return [type(mx.init.create(name)).__name__ for name in names]

    def wrong_call(desc):
        mx.init.One()(desc, mx.nd.zeros((2,)))

    def wrong_arr(name, arr):
        mx.init.One()(mx.init.InitDesc(name), arr)

    def spread(text, shape):
        mx.random.seed(7)
        array = mx.nd.full(shape, 9)
        make(text)(mx.init.InitDesc("fc_weight"), array)
        values = array.asnumpy()
        edge = float(abs(values).max())
        return [float(values.mean()), float(values.std()), edge if values.std() * 1.8 > edge else 0.0]

    def orthogonal(text, shape):
        array = mx.nd.full(shape, 9)
        make(text)(mx.init.InitDesc("fc_weight"), array)
        values = array.asnumpy().reshape(shape[0], -1)
        gram = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
        return [float(gram[0, 0]), float(abs(gram - gram[0, 0] * np.eye(len(gram))).max())]

    return {"mx": mx, "np": np, "pickle": pickle, **{f.__name__: f for f in (
        told, told_plain, filled, plain, loaded, made, fused, fused_names, fused_global, fused_wrong, described, verbose,
        verbose_plain, own, own_attr, aliased, wrong_call, wrong_arr, spread, orthogonal)}}


def answer(mx, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answers.raised(lambda: answers.plain(eval(case, _scope(mx))))


if __name__ == "__main__":
    print(f"{len(answers.run(__file__, PATH, CASES, answer))} cases")
