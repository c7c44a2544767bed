"""What key-value stores do in MXNet 1.9.1, in kvstores.json: `kvstores.py`, run by MXNet's Python. The same programs
run under mxc, see tests/test_kvstore.py."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PATH = Path(__file__).with_suffix(".json")


def values(array):
    return [round(float(value), 5) for value in array.asnumpy().reshape(-1)]


def devices(mx, *numbers):
    """An array of each device, filled with a number."""
    return [mx.nd.full((2, 2), number, ctx=mx.cpu(i)) for i, number in enumerate(numbers)]


def pulled(mx, store, key):
    out = mx.nd.zeros((2, 2))
    store.pull(key, out=out)
    return values(out)


def sums(mx, kind):
    """Pushing without an updater."""
    store = mx.kv.create(kind)
    store.init(3, mx.nd.full((2, 2), 2))
    found = [store.type, store.rank, store.num_workers, store.is_capable("optimizer"), pulled(mx, store, 3)]
    for pushed in (devices(mx, 8)[0], devices(mx, 1, 2, 4)):
        store.push(3, pushed)
        found.append(pulled(mx, store, 3))
    store.init([5, 7], devices(mx, 1, 1))
    store.push([5, 7], [devices(mx, 1, 2), devices(mx, 3, 4)])
    outs = [devices(mx, 0, 0), devices(mx, 0, 0)]
    store.pull([5, 7], out=outs)
    found.append([values(out) for both in outs for out in both])
    store.push([5, 5], devices(mx, 1, 6))
    return [*found, pulled(mx, store, 5)]


def names(mx, kind):
    """Keys that are strings."""
    store = mx.kv.create(kind)
    store.init("weight", devices(mx, 2)[0])
    store.push("weight", devices(mx, 3, 4))
    return pulled(mx, store, "weight")


def push_and_pull(mx, kind):
    store, found = mx.kv.create(kind), []
    out = mx.nd.zeros((2, 2))
    found.append(store.broadcast(3, devices(mx, 4)[0], out))
    found.append(values(out))
    store.pushpull(3, devices(mx, 1, 2), out=out)
    found += [values(out), pulled(mx, store, 3)]
    pushed = devices(mx, 1, 5)
    store.pushpull(3, pushed)
    return [*found, [values(one) for one in pushed]]


def updates(mx, kind):
    """A program's own updater."""
    store, calls = mx.kv.create(kind), []

    def update(key, given, stored):
        calls.append([key, values(given), values(stored)])
        stored += given * 2

    store._set_updater(update)
    store.init([1, 2], devices(mx, 1, 10))
    store.push([1, 2], [devices(mx, 1, 2), devices(mx, 3, 4)])
    found = [pulled(mx, store, 1), pulled(mx, store, 2)]
    out = mx.nd.zeros((2, 2))
    store.pushpull(1, devices(mx, 1)[0], out=out)
    return [*found, values(out), calls]


def optimizers(mx, kind):
    """An optimizer in the store, whose states go to a new one."""
    found = []
    for keys in ([3, 4], ["fc_weight", "fc_bias"]):
        stores = [mx.kv.create(kind) for _ in range(2)]
        for store in stores:
            store.init(keys, devices(mx, 1, 2))
            store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9, wd=0.1))
        first, second = stores
        for _ in range(3):
            first.push(keys, [devices(mx, 1, 2), devices(mx, 3, 4)])
        found.append([pulled(mx, first, key) for key in keys])
        with tempfile.TemporaryDirectory() as folder:
            for dump in (False, True):
                path = os.path.join(folder, "states")
                first.save_optimizer_states(path, dump_optimizer=dump)
                second.load_optimizer_states(path)
                second.push(keys, [devices(mx, 1, 2), devices(mx, 3, 4)])
                found.append([pulled(mx, second, key) for key in keys])
    return found


def compressed(mx, kind):
    """Two bits for each number."""
    found, numbers = [], mx.nd.array([[0.3, 0.5], [-1.7, -0.2]])
    for pushed in (numbers, [numbers, numbers.as_in_context(mx.cpu(1))]):
        store = mx.kv.create(kind)
        store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
        store.init(1, mx.nd.zeros((2, 2)))
        for _ in range(4):
            store.push(1, pushed)
            found.append(pulled(mx, store, 1))
    return found


REFUSED = {  # what is asked, in the words of a program; `store` has the key 3
    "a second init": "store.init(3, array)", "a key without a value": "store.push(9, array)",
    "another one": "store.pull(9, out=array)", "a string among integers": "store.init('w', array)",
    "both kinds": "store.init([4, 'v'], [array, array])", "too few values": "store.push([3, 3], [array])",
    "another shape": "store.push(3, mx.nd.ones((3,)))", "another shape to pull": "store.pull(3, out=mx.nd.ones((3,)))",
    "nowhere to pull to": "store.pull(3)", "a number": "store.push(3, 4.5)", "a capability": "store.is_capable('x')",
    "states of no optimizer": "store.save_optimizer_states('states')",
    "states for no optimizer": "store.load_optimizer_states('states')",
    "machines": "mx.kv.create('dist_sync')", "no name": "mx.kv.create(None)",
    "compression": "store.set_gradient_compression({'type': '3bit'})",
    "a threshold": "store.set_gradient_compression({'type': '2bit', 'threshold': -1})",
    "no type": "store.set_gradient_compression({'threshold': 1})",
    "no pushpull": "mx.kv.KVStoreBase().pushpull(1, array)", "no type of store": "mx.kv.KVStoreBase().type",
}


def refused(mx, kind):
    """The class of each error, or None."""
    found = {}
    for name, text in REFUSED.items():
        store, array = mx.kv.create(kind), mx.nd.ones((2, 2))
        store.init(3, array)
        try:
            eval(text, {"store": store, "array": array, "mx": mx})
            mx.nd.waitall()
            found[name] = None
        except Exception as error:
            found[name] = [c.__name__ for c in type(error).__mro__[:-2]]
    return found


CASES = {f"{case.__name__} {kind}": (case, kind) for kind in ("local", "device")
         for case in (sums, names, push_and_pull, updates, optimizers, compressed, refused)
         if (case, kind) != (compressed, "local")}


def answers(mx, name):
    case, kind = CASES[name]
    return case(mx, kind)


def main():
    """Each case in a process of its own: after an error MXNet's threads may not end, and several stores may crash."""
    if sys.argv[1:]:
        import mxnet

        print(json.dumps(answers(mxnet, sys.argv[1])), flush=True)
        os._exit(0)
    lines = []
    for name in CASES:
        asked = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, check=True, timeout=60)
        lines.append(f"{json.dumps(name)}: {asked.stdout.decode().splitlines()[-1]}")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
