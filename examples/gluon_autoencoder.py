"""A variational autoencoder with Gluon learns scikit-learn's digits: an encoder tells a normal distribution for each
image, a decoder makes images of numbers drawn from it; new digits come of numbers that no image gave.

    python examples/gluon_autoencoder.py
"""
from __future__ import annotations

import numpy as np
from lenet import digits

import mxc as mx
from mxc import autograd, gluon
from mxc.gluon import nn

BATCH, EPOCHS, LATENT, PIXELS = 64, 25, 4, 64


class Autoencoder(gluon.HybridBlock):
    """The loss of each image, and the image that is decoded: how far that is from it, and the distribution from a
    standard normal one."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.encoder, self.decoder = nn.HybridSequential(), nn.HybridSequential()
            self.encoder.add(nn.Dense(128, activation="relu"), nn.Dense(2 * LATENT))
            self.decoder.add(nn.Dense(128, activation="relu", in_units=LATENT), nn.Dense(PIXELS))
        self.distance = gluon.loss.SigmoidBinaryCrossEntropyLoss(weight=PIXELS)

    def hybrid_forward(self, F, x):
        mean, log_variance = F.split(self.encoder(x), num_outputs=2, axis=1)
        drawn = mean + F.exp(0.5 * log_variance) * F.random.normal_like(mean)
        decoded = self.decoder(drawn)
        divergence = 0.5 * F.sum(mean ** 2 + F.exp(log_variance) - 1 - log_variance, axis=1)
        return self.distance(decoded, x) + divergence, F.sigmoid(decoded)


def picture(pixels: np.ndarray) -> str:
    """An image of 8 x 8 pixels in characters."""
    return "\n".join("".join(" .:*#"[min(4, int(5 * p))] for p in row) for row in pixels.reshape(8, 8))


def main() -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, _, test_images, _ = digits()
    images, test_images = (np.clip(part.reshape(-1, PIXELS) / part.max(), 0, 1) for part in (images, test_images))
    batches = gluon.data.DataLoader(gluon.data.ArrayDataset(images.astype("float32")), BATCH, shuffle=True)
    net = Autoencoder()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    tests = mx.nd.array(test_images)
    print(f"before: loss {net(tests)[0].mean().asscalar():.2f}")
    for _ in range(EPOCHS):
        for data in batches:
            with autograd.record():
                loss, _ = net(data)
            loss.backward()
            trainer.step(len(data))
    loss, decoded = net(tests)
    error = (decoded - tests).abs().mean().asscalar()
    print(f"after: loss {loss.mean().asscalar():.2f}, a pixel is off by {error:.3f}")
    print(picture(net.decoder(mx.nd.random.normal(shape=(1, LATENT))).sigmoid().asnumpy()))


if __name__ == "__main__":
    main()
