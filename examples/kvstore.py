"""What a KVStore does, step by step: it keeps values under keys, sums what devices push, and updates what it keeps.
Module.fit does all of this itself; programs with training loops of their own call it.

    python examples/kvstore.py
"""
from __future__ import annotations

import mxc as mx

SHAPE = (2, 3)


def main() -> None:
    store = mx.kv.create("local")
    devices = [mx.cpu(0), mx.cpu(1)]

    # A value is given once, under a key: a number or a name.
    store.init("weight", mx.nd.ones(SHAPE))
    value = mx.nd.zeros(SHAPE)
    store.pull("weight", out=value)
    print(f"given: {value.asnumpy().tolist()}")

    # What is pushed takes its place. Of arrays from several devices the store makes the sum.
    store.push("weight", [mx.nd.ones(SHAPE, ctx=device) * (i + 1) for i, device in enumerate(devices)])
    copies = [mx.nd.zeros(SHAPE, ctx=device) for device in devices]
    store.pull("weight", out=copies)  # to each device
    print(f"the sum of 1 and 2: {copies[1].asnumpy().tolist()} on {copies[1].context}")

    # Many keys go in one call.
    store.init(["a", "b"], [mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE)])
    store.push(["a", "b"], [mx.nd.ones(SHAPE) * 7, mx.nd.ones(SHAPE) * 8])
    several = [mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE)]
    store.pull(["a", "b"], out=several)
    print(f"two keys: {[array.asnumpy()[0, 0].item() for array in several]}")

    # With an optimizer, what is pushed are gradients: each push is a step, here weight = weight - 0.5 * gradient.
    trained = mx.kv.create("local")
    trained.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    trained.init(0, mx.nd.array([4.0, -2.0]))
    weight = mx.nd.zeros((2,))
    for _ in range(10):
        trained.pull(0, out=weight)
        trained.push(0, 2 * (weight - mx.nd.array([1.0, 1.0])) * 0.5)  # the gradient of half the squared distance
    trained.pull(0, out=weight)
    print(f"ten steps towards [1, 1]: {[round(x, 2) for x in weight.asnumpy().tolist()]}")


if __name__ == "__main__":
    main()
