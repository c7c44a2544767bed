"""States that MXNet 1.9.1 saved after 10 of 20 updates, in optimizer_states.json: `optimizer_states.py`, run by MXNet's
Python. With them the weights then and at the end."""
import base64
import json
from pathlib import Path

if __name__ == "__main__":
    import optimizers
else:
    from golden import optimizers

PATH = Path(__file__).with_suffix(".json")
KINDS = [["sgd", {"momentum": 0.9, "wd": 0.1}, "float32", False], ["adam", {"scheduled": True}, "float32", True],
         ["sgd", {"momentum": 0.9, "multi_precision": True}, "float16", True], ["nadam", {}, "float32", True],
         ["rmsprop", {"centered": True}, "float32", False], ["dcasgd", {}, "float32", True],
         ["lbsgd", {"batch_scale": 3, "momentum": 0.5}, "float32", True], ["lars", {"momentum": 0.9}, "float32", True]]
FIRST = 10


def questions():
    """[optimizer, settings, dtype, whether it is saved too], and the protocol of pickles, None: MXNet's own"""
    return [*[[kind, None] for kind in KINDS], *[[KINDS[1], protocol] for protocol in (0, 1, 2, 3, 5)]]


def listed(weights):
    return [w.asnumpy().tolist() for w in weights]


def answer(mx, question):
    (name, settings, dtype, is_whole), protocol = json.loads(question)
    updater, weights = optimizers.start(mx, name, settings, dtype)
    optimizers.advance(mx, updater, weights, 0, FIRST)
    if protocol is None:
        saved = updater.get_states(dump_optimizer=is_whole)
    else:
        import pickle

        saved = pickle.dumps((updater.states, updater.optimizer), protocol)
    before = listed(weights)
    optimizers.advance(mx, updater, weights, FIRST, optimizers.STEPS - FIRST)
    return {"states": base64.b64encode(saved).decode(), "before": before, "after": listed(weights)}


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, [json.dumps(q) for q in questions()], answer)
