"""The learning rates of MXNet 1.9.1's schedulers over 1000 updates, in schedules.json: `schedules.py`, run by MXNet's
Python. Each is asked in order, and at updates that are far apart."""
import json
from pathlib import Path

PATH = Path(__file__).with_suffix(".json")
UPDATES = {"each": list(range(1000)), "jumps": [0, 1, 7, 7, 40, 12, 333, 900, 90, 1000]}
WARM = [{}, {"warmup_steps": 30}, {"warmup_steps": 30, "warmup_begin_lr": 0.003, "warmup_mode": "constant"}]
SETTINGS = {
    "FactorScheduler": [{"step": 50, "factor": 0.7}, {"step": 7, "factor": 0.9, "base_lr": 0.3, "stop_factor_lr": 1e-3},
                        {"step": 2.5, "factor": 0.99}, {"step": 100}],
    "MultiFactorScheduler": [{"step": [10, 20, 500], "factor": 0.3}, {"step": [1], "factor": 0.1, "base_lr": 0.7}],
    "PolyScheduler": [{"max_update": 900}, {"max_update": 333, "base_lr": 0.3, "pwr": 3, "final_lr": 0.02},
                      {"max_update": 1500, "pwr": 0.5}],
    "CosineScheduler": [{"max_update": 900}, {"max_update": 333, "base_lr": 0.3, "final_lr": 0.02},
                        {"max_update": 1500}],
}


def questions():
    """[class, settings, which updates]"""
    return [[name, {**given, **warm}, updates] for name, settings in SETTINGS.items() for given in settings
            for warm in WARM for updates in UPDATES]


def rates(mx, question):
    name, settings, updates = json.loads(question)
    scheduler = getattr(mx.lr_scheduler, name)(**settings)
    return [scheduler(n) for n in UPDATES[updates]]


def answer(mx, question):
    """All the rates as text that is exact: [how often, rate] of each run of equal ones; of many, one in 37."""
    found = []
    for rate in rates(mx, question):
        if not found or found[-1][1] != rate.hex():
            found.append([0, rate.hex()])
        found[-1][0] += 1
    return shortened(found)


def shortened(found):
    return found if len(found) < 200 else found[:40] + found[40::37]


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, [json.dumps(q) for q in questions()], answer)
