"""The programs of examples/ that train do what they say, each in a process of its own."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def said(program: str, *arguments: str | Path) -> str:
    """What a program prints, without its log."""
    done = subprocess.run([sys.executable, EXAMPLES / program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def number(text: str, before: str) -> float:
    """The number that stands after some words."""
    return float(re.findall(rf"{before} (-?[\d.]*\d)", text)[0])


def test_a_perceptron():
    assert number(said("train_mlp.py"), "test accuracy") > 0.95


def test_lenet_with_checkpoints(tmp_path: Path):
    assert number(said("train_lenet.py", tmp_path), "best test accuracy") > 0.95
    assert {path.name for path in tmp_path.iterdir()} == {"lenet-symbol.json", *(f"lenet-000{i}.params"
                                                                                 for i in range(1, 7))}


def test_digits_with_gluon(tmp_path: Path):
    text = said("gluon_digits.py", tmp_path)
    assert text.count("test accuracy") == 6 and number(text.splitlines()[-1], "test accuracy") > 0.95
    assert {path.name for path in tmp_path.iterdir()} == {"digits.params", "digits-symbol.json", "digits-0000.params"}


def test_a_regression():
    assert said("linear_regression.py").splitlines() == ["y = 2.00 x1 + -3.40 x2 + 4.20", "at (1, 1): 2.80"]


def test_stores():
    text = said("kvstore.py")
    assert "the sum of 1 and 2: [[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]] on cpu(1)" in text
    assert "two keys: [7.0, 8.0]" in text and "ten steps towards [1, 1]: [1.0, 1.0]" in text


def test_groups_of_devices():
    text = said("model_parallel.py")
    assert number(text, "on two devices: test accuracy") > 0.95
    assert number(text, "the largest difference of a parameter:") == 0


def test_fine_tuning():
    text = said("fine_tune.py")
    assert "kept as loaded: conv1_weight, conv1_bias, conv2_weight, conv2_bias\nchanged: fc1_weight, fc1_bias\n" in text
    assert number(text, "test accuracy on the new digits") > 0.85


def test_a_run_goes_on(tmp_path: Path):
    assert said("resume.py", tmp_path / "run", "--epochs", "2").startswith("starts anew\n")
    resumed = said("resume.py", tmp_path / "run", "--epochs", "4").splitlines()
    assert resumed[0] == "goes on after epoch 2"
    assert said("resume.py", tmp_path / "whole", "--epochs", "4").splitlines()[1] == resumed[1]


def test_buckets():
    text = said("bucketing_lstm.py")
    assert number(text, "perplexity") > 25 and number(text, "in the first epoch,") < 8
    assert re.search(r"it goes on after 'Contri': 'Contribut", text)


def test_another_task_for_the_same_features():
    text = said("gluon_transfer.py")
    assert number(text, "0 to 4: test accuracy") > 0.97 and number(text, "examples: test accuracy") > 0.75
    assert text.endswith("features as they were: True\n")


def test_a_language_model():
    text = said("gluon_language_model.py")
    assert number(text, "epoch 1: perplexity") > 15 and number(text, "epoch 10: perplexity") < 8
    assert "it writes: 'The " in text


def test_an_autoencoder():
    text = said("gluon_autoencoder.py")
    assert number(text, "before: loss") > 40 and number(text, "after: loss") < 27
    assert number(text, "a pixel is off by") < 0.16 and len(text.splitlines()) == 10


def test_blocks_and_gradients_of_ones_own():
    assert number(said("gluon_own.py"), "weights of one bit: test accuracy") > 0.9


def test_training_in_one_call(tmp_path: Path):
    text = said("gluon_estimator.py", tmp_path)
    assert number(text, "the best: test accuracy") > 0.95 and text.count("validation accuracy") > 2
    assert (tmp_path / "digits-best.params").exists()
