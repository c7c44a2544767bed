"""What MXNet 1.9.1 tells a monitor of an executor: the cases, and the script that asks.

With MXNet's Python:  make_monitors.py        writes monitors.json
Each case is text for both libraries: a symbol, its arguments' shapes, whether inputs are told, and the mode.
"""
from pathlib import Path

ANSWERS = Path(__file__).with_name("monitors.json")
NETS = """
a + b | a=(2, 3), b=(2, 3)
a + a | a=(2, 3)
-a * 2 + b | a=(2, 3), b=(2, 3)
S.exp(a, name='n') | a=(2, 3)
S.Activation(S.FullyConnected(a, num_hidden=4, name='f'), act_type='relu', name='n') | a=(2, 3)
S.BatchNorm(a, name='n') | a=(2, 3)
S.BatchNorm(a, name='n', output_mean_var=True) | a=(2, 3)
S.BatchNorm(S.Convolution(a, kernel=(1, 1), num_filter=2, name='c'), name='n') | a=(1, 2, 3, 3)
S.SliceChannel(a, num_outputs=3, axis=1, name='n')[1] * 2 | a=(2, 3)
S.Concat(a, b, a, dim=1, name='n') | a=(2, 3), b=(2, 3)
S.add_n(a, b, a, name='n') | a=(2, 3), b=(2, 3)
S.SoftmaxOutput(a, name='n') | a=(2, 3)
S.MakeLoss(a, name='n') | a=(2, 3)
S.RNN(a, b, c, d, mode='lstm', state_size=2, num_layers=1, state_outputs=True, name='n') | a=(2, 1, 3)
S.RNN(a, b, c, mode='gru', state_size=2, num_layers=1, name='n') | a=(2, 1, 3)
S.Dropout(a, name='n') | a=(2, 3)
S.LayerNorm(a, name='n') | a=(2, 3)
S.topk(a, k=1, ret_typ='both', name='n') | a=(2, 3)
S.Group([a + b, S.exp(a, name='n')]) | a=(2, 3), b=(2, 3)
S.Group([a, S.exp(a, name='n')]) | a=(2, 3)
S.zeros((2, 3), name='z') + a | a=(2, 3)
S.Embedding(a, input_dim=3, output_dim=2, name='n') | a=(2,)
S.LeakyReLU(a, act_type='prelu', name='n') | a=(2, 3)
S.LeakyReLU(a, act_type='leaky', name='n') | a=(2, 3)
S.reshape(S.transpose(a, name='t'), shape=(-1,), name='n') | a=(2, 3)
S.where(a, b, b, name='n') | a=(2, 3), b=(2, 3)
S.one_hot(S.squeeze(a, name='s'), depth=2, name='n') | a=(1, 2)
S.sum(S.clip(S.Cast(a, dtype='float32', name='t'), 0, 1, name='c'), name='n') | a=(2, 3)
S.broadcast_add(S.softmax(a, name='s'), S.BlockGrad(b, name='k'), name='n') | a=(2, 3), b=(1, 3)
S.stack(S.tile(a, reps=(1, 1), name='t'), b, name='n') | a=(2, 3), b=(2, 3)
"""
CASES = [f"told({net.replace(' | ', f', {every}, {train}, ')})" for net in NETS.strip().splitlines()
         for every in (True, False) for train in (False, True)]


def answer(mx, case):
    """The names that a forward run tells, in their order."""
    names = []

    def told(symbol, every, train, **shapes):
        bound = symbol.simple_bind(mx.cpu(), **shapes)
        for array in bound.arg_arrays + bound.aux_arrays:
            array[:] = 1
        bound.set_monitor_callback(lambda name, _: names.append(name.decode() if isinstance(name, bytes) else name),
                                   monitor_all=every)
        for output in bound.forward(is_train=train):
            output.wait_to_read()

    with mx.name.NameManager():
        eval(case, {"S": mx.sym, "told": told, **{name: mx.sym.Variable(name) for name in "abcd"}})
    return names


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
