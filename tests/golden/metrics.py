"""Programs with metrics, written once for MXNet and mxc: the values that they show after each step, or what is raised.

With MXNet's Python, `metrics.py` writes what MXNet 1.9.1 says to metrics.json; tests/test_metrics.py compares mxc's.
A case is an expression over the names of `_scope`.
"""
# ruff: noqa: E501, B905 (a case is a line; MXNet's Python may be older than `strict`)
import copy
import math
import sys
import warnings
from collections import OrderedDict
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import answers

PATH = Path(__file__).with_suffix(".json")
# Metrics by what they compare: classes with scores of each, numbers with numbers, scores alone.
CLASSES = ("Accuracy()", "TopKAccuracy(top_k=2)", "F1()", "F1(average='micro')", "MCC()", "MCC(average='micro')",
           "PCC()", "PCC(has_global_stats=False)", "CrossEntropy()", "NegativeLogLikelihood()", "Perplexity(None)",
           "Perplexity(ignore_label=1)", "Perplexity(0, axis=1)")
NUMBERS = ("MAE()", "MSE()", "RMSE()", "PearsonCorrelation()", "PearsonCorrelation(average='micro')", "Loss()",
           "Torch()", "Caffe()", "CustomMetric(gap)")
EVERY = (*CLASSES, *NUMBERS, "CompositeEvalMetric(['acc', 'mse'])")
STEPS = {
    # what a program usually does, in several batches of one epoch and of the next
    "usual": (CLASSES, "(c(1, 2, 6), p(2, 6, 2)), (c(3, 2, 4), p(4, 4, 2)), 'reset_local', (c(5, 2, 3), p(6, 3, 2)), "
                       "'reset', (c(7, 2, 5), p(8, 5, 2))"),
    "many classes": (CLASSES, "(c(1, 5, 6), p(2, 6, 5)), (c(3, 5, 4), p(4, 4, 5)), 'reset_local', "
                              "(c(5, 4, 7), p(6, 7, 4))"),
    "more classes later": (CLASSES, "(c(1, 2, 9), p(2, 9, 2)), (c(3, 4, 9), p(4, 9, 4)), (c(5, 3, 9), p(6, 9, 3))"),
    "one class": (CLASSES, "(a([1, 1]), a([[0.1, 0.9], [0.2, 0.8]])), (a([0]), a([[0.9, 0.1]]))"),
    "ties": (CLASSES, "(a([0, 1, 1]), a([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]]))"),
    "labels of integers": (CLASSES, "(c(1, 2, 6, dtype='int32'), p(2, 6, 2)), (c(1, 2, 6, dtype='int64'), p(2, 6, 2)), "
                                    "(c(1, 2, 6, dtype='uint8'), p(2, 6, 2)), (c(1, 2, 6, dtype='int8'), p(2, 6, 2))"),
    "float16": (CLASSES, "(c(1, 2, 6, dtype='float16'), p(2, 6, 2, dtype='float16'))"),
    "float64": (CLASSES, "(c(1, 2, 6, dtype='float64'), p(2, 6, 2, dtype='float64'))"),
    "labels of fractions": (CLASSES, "(a([0.2, 0.9, 1.7]), p(2, 3, 2)), (a([-0.5, 0, 1]), p(2, 3, 2))"),
    "negative labels": (CLASSES, "(a([0, -1, 1]), p(2, 3, 2)), (a([0, 0, 1]), p(2, 3, 2))"),
    "labels beyond": (CLASSES, "(a([0, 5, 1]), p(2, 3, 2)), (a([0, 0, 1]), p(2, 3, 2))"),
    "labels NaN": (CLASSES, "(a([0, nan, 1]), p(2, 3, 2)), (a([0, 0, 1]), p(2, 3, 2))"),
    "scores NaN": (CLASSES, "(a([0, 1, 1]), a([[nan, 0.5], [0.5, nan], [nan, nan]])), (a([0, 0, 1]), p(2, 3, 2))"),
    "scores infinite": (CLASSES, "(a([0, 1, 1]), a([[inf, 0.5], [0.5, -inf], [-inf, inf]]))"),
    "scores zero": (CLASSES, "(a([0, 1, 1]), a([[0, 1], [1, 0], [0, 0]]))"),
    "labels with an axis": (CLASSES, "(c(1, 2, 6, 1), p(2, 6, 2)), (c(1, 2, 1, 6), p(2, 6, 2))"),
    "labels one-hot": (CLASSES, "(a([[0, 1], [1, 0]]), p(2, 2, 2)), (a([[0, 1], [1, 0]]), a([[0, 1], [0, 1]]))"),
    "scores of one class": (CLASSES, "(c(1, 2, 6), p(2, 6, 1)), (c(1, 2, 6), p(2, 6, 2))"),
    "scores of a vector": (CLASSES, "(c(1, 2, 6), a([0.1, 0.9, 0.4, 0.6, 0.5, 0]))"),
    "scores of classes": (CLASSES, "(c(1, 2, 6), c(2, 2, 6)), (c(1, 2, 6), c(2, 2, 6, dtype='int32'))"),
    "pictures": (CLASSES, "(c(1, 2, 2, 3, 4), r(2, 2, 2, 3, 4)), (c(1, 2, 2, 3, 4), r(2, 2, 3, 4, 2))"),
    "sequences": (CLASSES, "(c(1, 2, 4, 3), p(2, 12, 2)), (c(1, 2, 4, 3), p(2, 12, 2).reshape((4, 3, 2)))"),
    "too few labels": (CLASSES, "(c(1, 2, 5), p(2, 6, 2)), (c(1, 2, 6), p(2, 6, 2))"),
    "too many labels": (CLASSES, "(c(1, 2, 7), p(2, 6, 2)), (c(1, 2, 6), p(2, 6, 2))"),
    "numbers": (NUMBERS, "(r(1, 6), r(2, 6)), (r(3, 4), r(4, 4)), 'reset_local', (r(5, 3), r(6, 3)), 'reset', "
                         "(r(7, 5), r(8, 5))"),
    "columns": (NUMBERS, "(r(1, 6), r(2, 6, 1)), (r(3, 6, 1), r(4, 6)), (r(1, 6, 1), r(2, 6, 1))"),
    "tables": (NUMBERS, "(r(1, 6, 3), r(2, 6, 3)), (r(1, 6, 3), r(2, 6, 3)), (r(1, 2, 3, 4), r(2, 2, 3, 4))"),
    "broadcast": (NUMBERS, "(r(1, 6), r(2, 6, 3)), (r(1, 6, 1), r(2, 6, 3)), (r(1, 1, 3), r(2, 6, 3)), (r(1, 3), r(2, 3))"),
    "equal numbers": (NUMBERS, "(a([1, 1, 1]), a([1, 1, 1])), (a([1, 2, 3]), a([1, 2, 3])), (a([1, 2, 3]), a([3, 2, 1]))"),
    "integers": (NUMBERS, "(c(1, 9, 6, dtype='int32'), c(2, 9, 6, dtype='int32')), (c(1, 9, 6), c(2, 9, 6, dtype='int32'))"),
    "bytes": (NUMBERS, "(c(1, 9, 6, dtype='uint8'), c(2, 9, 6, dtype='uint8'))"),
    "half numbers": (NUMBERS, "(r(1, 6, dtype='float16'), r(2, 6, dtype='float16'))"),
    "double numbers": (NUMBERS, "(r(1, 6, dtype='float64'), r(2, 6, dtype='float64')), (r(1, 6), r(2, 6, dtype='float64'))"),
    "one number": (NUMBERS, "(a([1]), a([3])), (a([2]), a([2.5]))"),
    "NaN": (NUMBERS, "(a([1, nan, 2]), a([0, 1, 2])), (a([1, 1, 2]), a([0, 1, nan])), (a([1, 3, 2]), a([0, 1, 2]))"),
    "infinities": (NUMBERS, "(a([1, inf, 2]), a([0, 1, 2])), (a([1, 1, 2]), a([0, 1, -inf]))"),
    "fewer labels": (NUMBERS, "(r(1, 5), r(2, 6)), (r(1, 6), r(2, 6))"),
    "lists": (EVERY, "([c(1, 2, 6)], [p(2, 6, 2)]), ([c(1, 2, 6)], p(2, 6, 2)), (c(1, 2, 6), [p(2, 6, 2)])"),
    "two outputs": (EVERY, "([c(1, 2, 6), c(3, 2, 6)], [p(2, 6, 2), p(4, 6, 2)])"),
    "two outputs of their shapes": (EVERY, "([c(1, 2, 6), c(3, 2, 4)], [c(2, 2, 6), c(4, 2, 4)])"),
    "two outputs, one label": (EVERY, "([c(1, 2, 6)], [p(2, 6, 2), p(4, 6, 2)]), ([c(1, 2, 6)], [p(2, 6, 2)])"),
    "one output, two labels": (EVERY, "([c(1, 2, 6), c(3, 2, 6)], [p(2, 6, 2)])"),
    "second output wrong": (EVERY, "([c(1, 2, 6), c(3, 2, 5)], [p(2, 6, 2), p(4, 6, 2)]), ([c(1, 2, 6)], [p(2, 6, 2)])"),
    "nothing": (EVERY, ""),
    "no outputs": (EVERY, "([], []), ([], [p(2, 6, 2)]), ([c(1, 2, 6)], [])"),
    "empty": (EVERY, "(a([]), a(np_array([[0, 0]])[:0])), (a([]), a([])), (c(1, 2, 3), p(1, 3, 2))"),
    "None": (EVERY, "(None, None), (None, p(2, 6, 2)), (c(1, 2, 6), None)"),
    "None in lists": (EVERY, "([None], [p(2, 6, 2)]), ([c(1, 2, 6)], [None])"),
    "tuples": (EVERY, "((c(1, 2, 6),), (p(2, 6, 2),))"),
    "reset first": (EVERY, "'reset', 'reset_local', (c(1, 2, 6), p(2, 6, 2)), 'reset_local', 'reset_local', 'reset'"),
    "by name": (EVERY, "by_name({'softmax_label': c(1, 2, 6)}, {'softmax_output': p(2, 6, 2)})"),
    "by several names": (EVERY, "by_name({'a': c(1, 2, 6), 'b': c(3, 2, 6)}, {'x': p(2, 6, 2), 'y': p(4, 6, 2)})"),
    "by no name": (EVERY, "by_name({}, {})"),
    "a copy": (EVERY, "(c(1, 2, 6), p(2, 6, 2)), 'copy', (c(3, 2, 6), p(4, 6, 2))"),
}
OTHERS = """
after(m.Accuracy(axis=0), (c(1, 2, 6), r(2, 4, 6)))
after(m.Accuracy(axis=-1), (c(1, 2, 6), r(2, 6, 4)))
after(m.Accuracy(axis=2), (c(1, 3, 2, 5), r(2, 2, 5, 3)))
after(m.Accuracy(axis=3), (c(1, 2, 6), r(2, 6, 4)))
after(m.Accuracy(axis=None), (c(1, 2, 1), r(2, 1, 4)))
after(m.TopKAccuracy(1))
after(m.TopKAccuracy())
after(m.TopKAccuracy(top_k=0))
after(m.TopKAccuracy(top_k=2), (c(1, 9, 20), p(2, 20, 9)), (c(3, 9, 20), p(4, 20, 9)))
after(m.TopKAccuracy(top_k=5), (c(1, 3, 6), p(2, 6, 3)))
after(m.TopKAccuracy(top_k=2), (c(1, 3, 6), c(2, 3, 6)))
after(m.TopKAccuracy(top_k=2), (c(1, 3, 6), r(2, 6, 2, 3)))
after(m.TopKAccuracy(top_k=2), (a([0, 1, 2, 0]), a([[nan, 1, 2], [1, nan, 2], [3, 2, nan], [nan, nan, 1]])))
after(m.TopKAccuracy(top_k=2), (c(1, 3, 5), p(2, 6, 3)), (c(1, 3, 7), p(2, 6, 3)))
after(m.TopKAccuracy(top_k=2.0), (c(1, 3, 6), p(2, 6, 3)))
after(m.TopKAccuracy(top_k='2'), (c(1, 3, 6), p(2, 6, 3)))
after(m.Perplexity(ignore_label=0, axis=0), (c(1, 3, 6), p(2, 6, 3).T))
after(m.Perplexity(ignore_label=0), (a([0, 0]), p(2, 2, 3)))
after(m.Perplexity(ignore_label=-1), (a([-1, 0, 2]), p(2, 3, 3)), 'reset_local', (a([1, -1]), p(2, 2, 3)))
after(m.Perplexity(None), (a([0, 1]), a([[0, 1], [1, 0]])))
after(m.Perplexity(None), (a([0, 1]), a([[-1, 1], [1, -2]])))
after(m.Perplexity())
after(m.Perplexity('1'), (c(1, 3, 6), p(2, 6, 3)))
after(m.CrossEntropy(eps=0.1), (c(1, 3, 6), p(2, 6, 3)))
after(m.CrossEntropy(eps=0), (a([0]), a([[0, 1]])))
after(m.NegativeLogLikelihood(eps=0.1, name='n'), (c(1, 3, 6), p(2, 6, 3)))
after(m.F1(average='other'), (c(1, 2, 6), p(2, 6, 2)))
after(m.MCC(average='other'), (c(1, 2, 6), p(2, 6, 2)))
after(m.F1('f', average='micro'), ([c(1, 2, 6), c(3, 2, 6)], [p(2, 6, 2), p(4, 6, 2)]), 'reset_local', (c(1, 2, 6), p(2, 6, 2)))
after(m.MCC('f', average='micro'), ([c(1, 2, 6), c(3, 2, 6)], [p(2, 6, 2), p(4, 6, 2)]), 'reset_local', (c(1, 2, 6), p(2, 6, 2)))
after(m.F1(), (a([1, 2, 2]), p(1, 3, 2)), (a([1, 1, 0]), p(1, 3, 2)))
after(m.F1(), (a([0, 0]), a([[1, 0], [1, 0]])), (a([0, 0]), a([[0, 1], [1, 0]])), (a([1, 1]), a([[1, 0], [1, 0]])))
after(m.MCC(), (a([0, 0]), a([[1, 0], [1, 0]])), (a([0, 0]), a([[0, 1], [1, 0]])), (a([1, 1]), a([[1, 0], [1, 0]])))
after(m.PCC(), (a([0, 0]), a([[1, 0], [1, 0]])), (a([0, 0]), a([[0, 1], [1, 0]])), (a([1, 1]), a([[1, 0], [1, 0]])))
after(m.PCC(), (a([0, 2, 1, 2]), a([0, 2, 2, 1])), (a([3]), a([3])))
after(m.PearsonCorrelation(average='other'), (r(1, 6), r(2, 6)), (r(3, 6), r(4, 6)))
after(m.PearsonCorrelation(average='micro'), (r(1, 6), r(2, 6)), (r(3, 9), r(4, 9)), 'reset_local', (r(5, 6), r(6, 6)), 'reset_micro', (r(7, 6), r(8, 6)))
after(m.PearsonCorrelation(average='micro'), ([r(1, 6), r(3, 6)], [r(2, 6), r(4, 6)]), 'reset', (r(5, 2, 3), r(6, 2, 3)))
after(m.Loss(), (None, r(1, 6)), ([], [r(1, 6), r(2, 3, 4)]), ('ignored', r(1, 2)), (0, [a([5])]))
after(m.Loss(), (None, c(1, 9, 6, dtype='int32')), (None, r(1, 4, dtype='float16')), (None, r(1, 4, dtype='float64')))
after(m.Loss(), (None, r(1, 100, 100)), (None, a([nan, 1])))
after(m.Loss(output_names=['l']), by_name({}, {'x': r(1, 3), 'l': r(2, 3)}), by_name({}, {'x': r(1, 3)}))
after(m.CustomMetric(gap), (r(1, 6), r(2, 6)))
after(m.CustomMetric(gap, name='g'), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: 1), (r(1, 6), r(2, 6)), 'reset_local', (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: (3, 4)), (r(1, 6), r(2, 6)), (r(1, 6), r(2, 6)), 'reset_local', (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: (3, 4, 5)), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: [3, 4]), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: 'text'), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: None), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: nan), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: 1 / 0), (r(1, 6), r(2, 6)), (r(1, 6), r(2, 6)))
after(m.CustomMetric(lambda l, p: abs(l - p).sum(), name=3), (r(1, 6), r(2, 6)))
after(m.CustomMetric(gap, allow_extra_outputs=True), ([r(1, 6)], [r(2, 6), r(3, 6)]), ([r(1, 6), r(2, 6)], [r(3, 6)]))
after(m.CustomMetric(gap, 'x', True), ([], [r(3, 6)]))
after(m.CustomMetric(1), (r(1, 6), r(2, 6)))
after(m.np(gap), (r(1, 6), r(2, 6)))
after(m.np(gap, name='g', allow_extra_outputs=True), ([r(1, 6)], [r(2, 6), r(3, 6)]))
after(m.np(lambda l, p: type(l).__name__ == 'ndarray' and p.size), (r(1, 6), r(2, 6)))
m.np(gap).name
m.np(lambda l, p: 0).name
m.np(3)
m.CustomMetric(max).name
m.CustomMetric(lambda l, p: 0).name
m.np(gap).get_config()
after(m.CompositeEvalMetric(), (c(1, 2, 6), p(2, 6, 2)))
after(m.CompositeEvalMetric([m.Accuracy(), m.F1(), m.Loss()]), (c(1, 2, 6), p(2, 6, 2)), 'reset_local', (c(3, 2, 6), p(4, 6, 2)), 'reset')
after(m.CompositeEvalMetric([m.CompositeEvalMetric(['acc', 'mcc']), 'ce']), (c(1, 2, 6), p(2, 6, 2)), 'reset_local', (c(3, 2, 6), p(4, 6, 2)))
after(m.CompositeEvalMetric(['acc', m.CustomMetric(gap)]), (c(1, 2, 6), p(2, 6, 2)))
after(m.CompositeEvalMetric(['acc', 'acc']), (c(1, 2, 6), p(2, 6, 2)))
after(m.CompositeEvalMetric(['acc', 'mse'], name='both', output_names=['x'], label_names=['a']), by_name({'a': c(1, 2, 6), 'b': c(3, 2, 6)}, {'x': c(2, 2, 6), 'y': p(4, 6, 2)}))
after(m.CompositeEvalMetric([m.Accuracy(output_names=['x'], label_names=['a']), m.MSE(output_names=['y'], label_names=['b'])]), by_name({'a': c(1, 2, 6), 'b': r(3, 6)}, {'x': p(2, 6, 2), 'y': r(4, 6)}))
after(m.CompositeEvalMetric([m.Accuracy(output_names=['x'], label_names=['a'])], output_names=['x', 'y'], label_names=['a']), by_name({'a': c(1, 2, 6), 'b': r(3, 6)}, {'x': p(2, 6, 2), 'y': r(4, 6)}))
after(m.CompositeEvalMetric(['acc'], label_names=['a', 'gone']), by_name({'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.CompositeEvalMetric(['acc'], output_names=['x', 'gone']), by_name({'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.CompositeEvalMetric('acc'), (c(1, 2, 6), p(2, 6, 2)))
after(m.CompositeEvalMetric(['no such']))
after(m.CompositeEvalMetric([3]))
after(m.Accuracy(output_names=['x']), by_name({'a': c(1, 2, 6)}, {'y': r(2, 6, 3), 'x': p(2, 6, 2)}))
after(m.Accuracy(label_names=['a']), by_name({'b': c(3, 2, 6), 'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.Accuracy(output_names=['x', 'y'], label_names=['b', 'a']), by_name({'a': c(1, 2, 6), 'b': c(3, 2, 6)}, {'y': p(2, 6, 2), 'x': p(4, 6, 2)}))
after(m.Accuracy(output_names=['gone']), by_name({'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.Accuracy(label_names=['gone']), by_name({'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.Accuracy(output_names='x'), by_name({'a': c(1, 2, 6)}, {'x': p(2, 6, 2)}))
after(m.Accuracy(), (a([[1, 2], [3, 4]]), a([[1, 2], [4, 3]])))
after(m.Accuracy(), (a([2 ** 24 + 1], 'int64'), a([2 ** 24], 'int64')), (a([3e9]), a([3e9])), (a([inf]), a([-inf])))
after(m.Accuracy(), (np_array([1, 0]), p(2, 2, 2)))
after(m.MSE(), (np_array([1, 0]), r(2, 2)))
after(m.EvalMetric('own'), (c(1, 2, 6), p(2, 6, 2)))
after(m.EvalMetric('own', output_names=['o'], label_names=['l'], has_global_stats=True, x=3))
m.EvalMetric('own', output_names=['o'], label_names=['l'], x=3).get_config()
m.EvalMetric(3).name
m.EvalMetric()
m.Accuracy(axis=2, label_names=['l']).get_config()
m.Accuracy(names=1)
m.TopKAccuracy(top_k=3).get_config()
m.F1().get_config()
m.MCC().get_config()
m.PCC().get_config()
m.CrossEntropy(eps=3).get_config()
m.NegativeLogLikelihood().get_config()
m.Perplexity(3, axis=2).get_config()
m.MAE('x').get_config()
m.MSE('x', ['o'], ['l']).get_config()
m.RMSE().get_config()
m.PearsonCorrelation().get_config()
m.Loss().get_config()
m.Torch().get_config()
m.Caffe().get_config()
m.CustomMetric(gap).get_config()
m.CompositeEvalMetric().get_config()
m.CompositeEvalMetric(['acc', m.MSE()]).get_config()
m.TopKAccuracy(top_k=3).name
m.TopKAccuracy(top_k=3, name='best').name
str(m.Accuracy())
str(m.CompositeEvalMetric(['acc', 'mse']))
str(grown())
str(m.create('top_k_accuracy', top_k=5))
repr(type(m.create('acc')).__name__)
[type(m.create(n, **k)).__name__ for n, k in names]
m.create('ACC').name
m.create('no such')
m.create('')
m.create(None)
m.create(3)
m.create([])
m.create('perplexity')
m.create('perplexity', None).name
m.create('perplexity', ignore_label=3).get_config()
m.create('acc', axis=2).get_config()
m.create('acc', 2).get_config()
m.create('acc', bad=2)
m.create(['acc', 'mse']).get()
m.create(['acc', ['mse', 'ce']]).get()
m.create(['acc', m.MSE('x')]).get()
m.create(('acc', 'mse'))
m.create([gap, 'acc']).get()
m.create(m.Accuracy(name='mine')).name
m.create(m.Accuracy(name='mine'), 3)
m.create(m.Accuracy)
m.create(gap).get()
m.create(gap, name='g').get()
m.create(gap, 'g', True).get()
m.create(lambda l, p: 0).get()
m.create('["acc", {"axis": 2}]').get_config()
m.create('{"metric": "acc", "axis": 2}').get_config()
m.create({'metric': 'acc', 'axis': 2}).get_config()
m.create(**m.Accuracy(axis=2).get_config()).axis
m.create(metric='acc').name
m.create()
m.create('composite', metrics=['acc']).get()
m.create('custommetric', gap).get()
m.CompositeEvalMetric(['acc']).get_metric(0).name
m.CompositeEvalMetric(['acc']).get_metric(-1).name
[type(m.CompositeEvalMetric(['acc']).get_metric(1)).__name__]
[type(m.CompositeEvalMetric([]).get_metric(0)).__name__]
added('acc').get()
added(m.MSE()).get()
added(gap).get()
added(['acc', 'mse']).get()
added('no such')
[list(x.shape) for x in sum(m.check_label_shapes(r(1, 2), r(1, 2), True), [])]
shapes(m.check_label_shapes([r(1, 2)], r(1, 2), True))
shapes(m.check_label_shapes((r(1, 2),), (r(1, 2),), wrap=True))
shapes(m.check_label_shapes(r(1, 3, 2), r(1, 3, 4)))
m.check_label_shapes(r(1, 3, 2), r(1, 2, 4))
m.check_label_shapes(r(1, 3, 2), r(1, 3, 4), shape=True)
m.check_label_shapes(r(1, 3, 2), r(1, 3, 4), wrap=True, shape=True)
m.check_label_shapes([1, 2], [1])
list(m.check_label_shapes([1, 2], [3, 4]))
m.check_label_shapes([1, 2], [1, 2], shape=True)
m.check_label_shapes(None, None)
own('mine')
own(None)
m.register(int)
m.register('x')
named('first', 'second')
m.alias('x')(int)
counted('sum_metric', 'num_inst', 'global_sum_metric', 'global_num_inst')
plain().get_global()
plain().get_global_name_value()
"""
CASES = [f"after(m.{metric}{', ' if steps else ''}{steps})" for name, (metrics, steps) in STEPS.items()
         for metric in metrics] + OTHERS.strip().splitlines()


def _shown(metric):
    """What a metric shows of itself."""
    found = [metric.get(), metric.get_global()]
    if isinstance(found[0][0], str):
        found += [metric.num_inst, metric.global_num_inst, metric.sum_metric, metric.global_sum_metric]
    return answers.plain(found)


def gap(label, pred):
    return float(abs(label.sum() - pred.sum()))


# long: many short functions, which cases call by name
def _scope(mx):
    """The names of a case's expression. m: the module. a, r, c, p: arrays of given numbers, of random ones, of classes,
    and of probabilities, whose rows add up to 1; their first number is the seed. after: what a metric shows at first and
    after each step. by_name: a step with dictionaries."""
    def a(values, dtype="float32"):
        return mx.nd.array(np.array(values, "float64"), dtype=dtype)

    def r(seed, *shape, dtype="float32"):
        return a(np.random.RandomState(seed).uniform(-1, 1, shape), dtype)

    def c(seed, classes, *shape, dtype="float32"):
        return a(np.random.RandomState(seed).randint(0, classes, shape), dtype)

    def p(seed, rows, classes, dtype="float32"):
        values = np.random.RandomState(seed).uniform(0.05, 1, (rows, classes))
        return a(values / values.sum(1, keepdims=True), dtype)

    def after(metric, *steps):
        found = [answers.raised(partial(_shown, metric))]
        for step in steps:
            if step == "copy":
                metric = copy.deepcopy(metric)
                said = None
            elif isinstance(step, str):
                said = answers.raised(getattr(metric, step))
            elif isinstance(step, OrderedDict):
                said = answers.raised(partial(metric.update_dict, step["labels"], step["outputs"]))
            else:
                said = answers.raised(partial(metric.update, *step))
            shown = answers.raised(partial(_shown, metric))
            found.append(shown if said is None else [said, shown])
        return found

    def by_name(labels, outputs):
        return OrderedDict(labels=OrderedDict(labels), outputs=OrderedDict(outputs))

    def added(metric):
        made = mx.metric.CompositeEvalMetric(name="sum")
        made.add(metric)
        return made

    def shapes(pair):
        return [[list(x.shape) for x in part] if isinstance(part, (list, tuple)) else list(part.shape) for part in pair]

    def own(name):
        class Mine(mx.metric.EvalMetric):
            def __init__(self, scale=1, **kwargs):
                super().__init__("mine", scale=scale, **kwargs)
                self.scale = scale

            def update(self, labels, preds):
                for label, pred in zip(labels, preds):
                    self.sum_metric += self.scale * float((label - pred).sum().asscalar())
                    self.num_inst += 1

        made = mx.metric.create((mx.metric.register(Mine, name) and name) or "mine", scale=3)
        made.update([a([1, 2])], [a([3, 5])])
        made.update([a([1, 2])], [a([3, 5])])
        return [made.get(), made.get_global(), made.get_config(), str(made)]

    def named(*names):
        class Other(mx.metric.Accuracy):
            pass

        mx.metric.alias(*names)(Other)
        return [type(mx.metric.create(name)).__name__ for name in names]

    def grown():
        metric = mx.metric.Accuracy()
        metric.update([c(1, 2, 8)], [p(2, 8, 2)])
        return metric

    def counted(*names):
        metric = grown()
        metric.sum_metric += 2
        metric.num_inst += 2
        return [getattr(metric, name) for name in names]

    def plain():
        metric = mx.metric.EvalMetric("plain")
        metric.sum_metric, metric.num_inst = 3.0, 2
        return metric

    names = [("acc", {}), ("accuracy", {}), ("top_k_accuracy", {"top_k": 2}), ("top_k_acc", {"top_k": 2}),
             ("TopKAccuracy", {"top_k": 2}), ("f1", {}), ("mcc", {}), ("mae", {}), ("mse", {}), ("rmse", {}), ("ce", {}),
             ("crossentropy", {}), ("nll_loss", {}), ("negativeloglikelihood", {}), ("pearsonr", {}),
             ("pearsoncorrelation", {}), ("pcc", {}), ("loss", {}), ("torch", {}), ("caffe", {}), ("composite", {}),
             ("compositeevalmetric", {})]
    return {"m": mx.metric, "nan": math.nan, "inf": math.inf, "gap": gap, "np_array": np.array, "a": a, "r": r, "c": c,
            "p": p, "after": after, "by_name": by_name, "added": added, "shapes": shapes, "own": own, "named": named,
            "grown": grown, "counted": counted, "plain": plain, "names": names}


def answer(mx, case):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return answers.raised(lambda: answers.plain(eval(case, _scope(mx))))


if __name__ == "__main__":
    print(f"{len(answers.run(__file__, PATH, CASES, answer))} cases")
