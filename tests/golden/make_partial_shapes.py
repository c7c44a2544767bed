"""What MXNet 1.9.1 infers of shapes from a part of them: the table, and the script that asks.

With MXNet's Python:  make_partial_shapes.py        writes partial_shapes.json
Each case is text for both libraries: a symbol, and what is known, where 0 is a dimension that is not.
"""
from pathlib import Path

ANSWERS = Path(__file__).with_name("partial_shapes.json")

TEXT = """
p(S.FullyConnected(a, num_hidden=4, name='f')) ;  p(S.FullyConnected(a, num_hidden=4, name='f'), a=(0, 3))
p(S.FullyConnected(a, num_hidden=4, name='f'), a=(2, 0)) ;  p(S.FullyConnected(a, num_hidden=4, name='f'), a=(2, 0, 5))
p(S.FullyConnected(a, num_hidden=4, name='f', flatten=False), a=(2, 0, 5))
p(S.FullyConnected(a, num_hidden=4, name='f', flatten=False), a=(2, 3, 0))
p(S.FullyConnected(a, num_hidden=4, name='f'), f_weight=(4, 7))
p(S.FullyConnected(a, num_hidden=4, name='f'), f_weight=(4, 0))
p(S.FullyConnected(a, num_hidden=4, name='f', no_bias=True)+b, b=(2, 4))
p(S.FullyConnected(a, num_hidden=4, name='f')+b, b=(2, 4), a=(0, 3))
p(S.FullyConnected(a, num_hidden=4, name='f')+b, b=(2, 4), a=(0, 3, 2))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f'))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f'), a=(0, 3, 8, 8))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f'), a=(2, 0, 8, 8))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f'), a=(2, 3, 0, 0))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f'), f_weight=(4, 3, 3, 3))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f')+b, b=(2, 4, 6, 6))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f')+b, a=(0, 3, 0, 0), b=(2, 4, 6, 6))
p(S.Convolution(a, kernel=(3, 3), num_filter=4, name='f', stride=(2, 2))+b, a=(0, 3, 0, 0), b=(2, 4, 6, 6))
p(S.Deconvolution(a, kernel=(3, 3), num_filter=4, name='f'), a=(0, 3, 8, 8))
p(S.Deconvolution(a, kernel=(3, 3), num_filter=4, name='f'), a=(2, 3, 0, 0))
p(S.Deconvolution(a, kernel=(3, 3), num_filter=4, name='f')+b, b=(2, 4, 6, 6))
p(S.Pooling(a, kernel=(2, 2), pool_type='max'), a=(0, 3, 8, 8))
p(S.Pooling(a, kernel=(2, 2), pool_type='max'), a=(1, 0, 8, 0))
p(S.Pooling(a, kernel=(2, 2), pool_type='max', global_pool=True), a=(1, 0, 0, 0))
p(S.Pooling(a, kernel=(2, 2), pool_type='max')+b, b=(1, 2, 3, 3)) ;  p(S.BatchNorm(a, name='n'), a=(0, 3, 0))
p(S.BatchNorm(a, name='n'), a=(2, 0, 4)) ;  p(S.BatchNorm(a, name='n')) ;  p(S.BatchNorm(a, name='n'), n_gamma=(5,))
p(S.BatchNorm(a, name='n')+b, b=(2, 3)) ;  p(S.LayerNorm(a, name='n'), a=(0, 3))
p(S.LayerNorm(a, name='n'), a=(3, 0)) ;  p(S.InstanceNorm(a, name='n'), a=(0, 3, 4)) ;  p(S.Concat(a, b, dim=1))
p(S.Concat(a, b, dim=1), a=(2, 3)) ;  p(S.Concat(a, b, dim=1), a=(2, 0), b=(2, 3))
p(S.Concat(a, b, dim=1), a=(0, 3), b=(2, 0)) ;  p(S.Concat(a, b, dim=1)+c, a=(2, 3), c=(2, 5))
p(S.Concat(a, b, dim=1)+c, c=(2, 5)) ;  p(S.Concat(a, b, dim=1)+c, a=(0, 3), c=(2, 5))
p(S.Concat(a, b, dim=1)+c, a=(0, 3), b=(0, 2), c=(2, 0)) ;  p(S.stack(a, b, axis=1), a=(2, 3))
p(S.stack(a, b, axis=1)+c, c=(2, 2, 3)) ;  p(S.stack(a, b, axis=1), a=(2, 0), b=(0, 3))
p(S.broadcast_add(a, b), a=(2, 3)) ;  p(S.broadcast_add(a, b), a=(2, 0), b=(2, 3))
p(S.broadcast_add(a, b), a=(0, 3), b=(1, 3)) ;  p(S.broadcast_add(a, b), a=(0, 3), b=(0, 1))
p(S.broadcast_add(a, b)+c, a=(0, 3), b=(1, 3), c=(2, 3)) ;  p(S.broadcast_add(a, b)+c, a=(2, 3), c=(2, 3))
p(S.broadcast_to(a, shape=(2, 3))) ;  p(S.broadcast_to(a, shape=(2, 3)), a=(1, 0))
p(S.broadcast_to(a, shape=(2, 0)), a=(1, 3)) ;  p(S.broadcast_like(a, b), a=(1, 3))
p(S.broadcast_like(a, b), a=(1, 3), b=(0, 3)) ;  p(S.broadcast_axis(a, axis=0, size=4), a=(1, 0))
p(S.reshape(a, shape=(0, -1)), a=(0, 3, 4)) ;  p(S.reshape(a, shape=(0, -1)), a=(2, 0, 4))
p(S.reshape(a, shape=(-1, 3)), a=(0, 3)) ;  p(S.reshape(a, shape=(-1, 3)), a=(2, 0)) ;  p(S.reshape(a, shape=(2, 3)))
p(S.reshape(a, shape=(2, 3)), a=(0, 3)) ;  p(S.reshape(a, shape=(0, 3)), a=(0, 3))
p(S.reshape(a, shape=(-1,)), a=(0, 3)) ;  p(S.reshape(a, shape=(-2,)), a=(0, 3))
p(S.reshape(a, shape=(-3, 0)), a=(0, 3, 4)) ;  p(S.reshape(a, shape=(-4, 1, -1, 0)), a=(0, 3))
p(S.reshape(a, shape=(0, -1))+b, b=(2, 12), a=(0, 3, 4)) ;  p(S.reshape(a, shape=(2, 3))+b, b=(2, 3))
p(S.Flatten(a), a=(0, 3, 4)) ;  p(S.Flatten(a), a=(2, 0, 4)) ;  p(S.Flatten(a)+b, b=(2, 12))
p(S.expand_dims(a, axis=0), a=(0, 3)) ;  p(S.expand_dims(a, axis=0)+b, b=(1, 2, 3)) ;  p(S.squeeze(a), a=(0, 1, 3))
p(S.squeeze(a, axis=1), a=(0, 1, 3)) ;  p(S.squeeze(a, axis=1)+b, b=(2, 3)) ;  p(S.transpose(a), a=(0, 3))
p(S.transpose(a)+b, b=(3, 2)) ;  p(S.transpose(a, axes=(1, 0, 2))) ;  p(S.transpose(a, axes=(1, 0))+b, b=(3, 2))
p(S.SwapAxis(a, dim1=0, dim2=1), a=(0, 3)) ;  p(S.SwapAxis(a, dim1=0, dim2=1)+b, b=(2, 3))
p(S.sum(a, axis=1), a=(0, 3)) ;  p(S.sum(a, axis=1), a=(2, 0)) ;  p(S.sum(a, axis=1)+b, b=(2,)) ;  p(S.sum(a), a=(0, 3))
p(S.sum(a)) ;  p(S.sum(a, axis=0, keepdims=True), a=(0, 3)) ;  p(S.mean(a, axis=(0, 2)), a=(2, 0, 3))
p(S.argmax(a, axis=1), a=(0, 3)) ;  p(S.dot(a, b), a=(2, 3)) ;  p(S.dot(a, b), a=(2, 0), b=(3, 4))
p(S.dot(a, b), a=(0, 3), b=(3, 4)) ;  p(S.dot(a, b)+c, a=(0, 3), b=(3, 0), c=(2, 4))
p(S.batch_dot(a, b), a=(0, 2, 3), b=(5, 3, 4)) ;  p(S.batch_dot(a, b), a=(5, 2, 3)) ;  p(a+b) ;  p(a+b, a=(0, 3))
p(a+b, a=(0, 3), b=(2, 0)) ;  p(S.exp(a), a=(0, 3)) ;  p(S.exp(a)+b, b=(2, 3))
p(S.add_n(a, b, c), a=(0, 3), b=(2, 0)) ;  p(S.where(a, b, c), b=(2, 3)) ;  p(S.where(a, b, c), a=(2,))
p(S.softmax(a), a=(0, 3)) ;  p(S.SoftmaxOutput(a, name='s'), a=(0, 3)) ;  p(S.SoftmaxOutput(a, name='s'), a=(2, 0))
p(S.SoftmaxOutput(a, name='s'), s_label=(2,)) ;  p(S.SoftmaxOutput(a, name='s'))
p(S.SoftmaxOutput(a, name='s', multi_output=True), a=(0, 3, 4)) ;  p(S.LinearRegressionOutput(a, name='s'), a=(0, 3))
p(S.LinearRegressionOutput(a, name='s'), s_label=(2, 3)) ;  p(S.MakeLoss(a), a=(0, 3))
p(S.Activation(a, act_type='relu'), a=(0, 3)) ;  p(S.LeakyReLU(a, act_type='prelu', name='l'), a=(0, 3, 4))
p(S.LeakyReLU(a, act_type='prelu', name='l'), a=(2, 0, 4)) ;  p(S.Dropout(a), a=(0, 3))
p(S.Embedding(a, input_dim=5, output_dim=3, name='e'), a=(0,)) ;  p(S.Embedding(a, input_dim=5, output_dim=3, name='e'))
p(S.Embedding(a, input_dim=5, output_dim=3, name='e')+b, b=(2, 3)) ;  p(S.take(a, b), a=(5, 0))
p(S.take(a, b), b=(2,)) ;  p(S.take(a, b), a=(5, 3), b=(0,)) ;  p(S.one_hot(a, depth=3), a=(0,))
p(S.one_hot(a, depth=3)+b, b=(2, 3)) ;  p(S.pick(a, b), a=(0, 3)) ;  p(S.pick(a, b), a=(2, 3))
p(S.slice(a, begin=(0, 0), end=(1, 2)), a=(0, 3)) ;  p(S.slice(a, begin=(0, 0), end=(1, 2)), a=(3, 0))
p(S.slice_axis(a, axis=1, begin=0, end=2), a=(0, 3)) ;  p(S.slice_axis(a, axis=1, begin=0, end=2), a=(3, 0))
p(S.slice_axis(a, axis=0, begin=0, end=2), a=(0, 3)) ;  p(S.slice_like(a, b), a=(4, 4), b=(2, 0))
p(S.SliceChannel(a, num_outputs=2, axis=1), a=(0, 4)) ;  p(S.SliceChannel(a, num_outputs=2, axis=1), a=(4, 0))
p(S.SliceChannel(a, num_outputs=2, axis=1)[0]+b, b=(4, 3)) ;  p(S.split_v2(a, 2, axis=1), a=(0, 4))
p(S.Pad(a, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1)), a=(0, 3, 4, 4))
p(S.Pad(a, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1)), a=(2, 3, 0, 4)) ;  p(S.tile(a, reps=(2, 2)), a=(0, 3))
p(S.repeat(a, repeats=2, axis=0), a=(0, 3)) ;  p(S.repeat(a, repeats=2), a=(0, 3)) ;  p(S.flip(a, axis=0), a=(0, 3))
p(S.clip(a, 0, 1), a=(0, 3)) ;  p(S.UpSampling(a, scale=2, sample_type='nearest'), a=(0, 3, 4, 4))
p(S.UpSampling(a, scale=2, sample_type='nearest'), a=(2, 3, 0, 4))
p(S.RNN(a, b, c, d, mode='lstm', state_size=4, num_layers=1, state_outputs=True), a=(0, 2, 3))
p(S.RNN(a, b, c, d, mode='lstm', state_size=4, num_layers=1, state_outputs=True), a=(5, 0, 3))
p(S.RNN(a, b, c, d, mode='lstm', state_size=4, num_layers=1, state_outputs=True), a=(5, 2, 0))
p(S.RNN(a, b, c, mode='gru', state_size=4, num_layers=1)) ;  p(S.topk(a, k=2), a=(0, 3)) ;  p(S.topk(a, k=2), a=(3, 0))
p(S.sort(a), a=(0, 3)) ;  p(S.gather_nd(a, b), a=(0, 3), b=(1, 2)) ;  p(S.gather_nd(a, b), a=(5, 3), b=(1, 0))
p(S.SequenceMask(a, b, use_sequence_length=True), a=(0, 2, 3))
p(S.SequenceLast(a, b, use_sequence_length=True), a=(5, 0, 3)) ;  p(S.L2Normalization(a), a=(0, 3))
p(S.ROIPooling(a, b, pooled_size=(2, 2), spatial_scale=1), a=(0, 3, 8, 8))
p(S.ROIPooling(a, b, pooled_size=(2, 2), spatial_scale=1), a=(2, 3, 8, 8), b=(0, 5))
p(S.Crop(a, num_args=1, h_w=(2, 2), offset=(0, 0)), a=(0, 3, 8, 8))
p(S.depth_to_space(a, block_size=2), a=(0, 4, 2, 2)) ;  p(S.identity(a), a=(0, 3))
p(S.Cast(a, dtype='float16'), a=(0, 3)) ;  p(S.zeros_like(a)+b, b=(2, 3)) ;  p(S.shape_array(a), a=(0, 3))
p(S.norm(a), a=(0, 3)) ;  p(S.reshape_like(a, b), a=(0, 3), b=(2, 3)) ;  p(S.reshape_like(a, b), a=(2, 3))
p(S.elemwise_add(S.FullyConnected(a, num_hidden=3, name='f'), b), b=(0, 3), a=(4, 5))
p(S.Concat(S.FullyConnected(a, num_hidden=3, name='f'), b), b=(0, 3), a=(4, 5)) ;  p(S.diag(a), a=(0, 3))
p(S.khatri_rao(a, b), a=(0, 3), b=(2, 3)) ;  p(S.cumsum(a, axis=0), a=(0, 3))
"""
CASES = [case.strip() for line in TEXT.splitlines() for case in line.split(" ; ") if case.strip()]


def answer(mx, case):
    """(arguments' shapes, outputs', auxiliary states'), () where not even a rank is known; or that it is refused."""
    names = {name: mx.sym.Variable(name) for name in "abcd"}
    try:
        return eval(case, {**names, "S": mx.sym, "p": lambda symbol, **known: symbol.infer_shape_partial(**known)})
    except Exception:
        return "refused"


if __name__ == "__main__":
    from answers import run  # beside this script

    made = run(__file__, ANSWERS, CASES, answer)
    print(f"{len(made)} cases")
