"""Arrays with NumPy and DLPack: memory shared both ways, NumPy's functions, numbers of NumPy's as arguments."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError

A = np.arange(6, dtype="float32").reshape(2, 3) + 1


class Foreign:
    """An object that only has NumPy's array interface."""

    def __init__(self, values: np.ndarray):
        self.values, self.__array_interface__ = values, values.__array_interface__


class Tensor:
    """An object that only has DLPack's methods."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


OUT = {"numpy": lambda x: x.numpy, "asarray": np.asarray, "from_dlpack": np.from_dlpack,
       "array interface": lambda x: np.asarray(Foreign(x)), "capsule": lambda x: mx.nd.from_dlpack(
           x.to_dlpack_for_write()).numpy, "__array__": lambda x: x.__array__(copy=False)}
IN = {"from_numpy": mx.nd.from_numpy, "interface": lambda v: mx.nd.from_numpy(Foreign(v)),
      "dlpack": lambda v: mx.nd.from_dlpack(Tensor(v)), "capsule": lambda v: mx.nd.from_dlpack(v.__dlpack__())}


@pytest.mark.parametrize("name", OUT)
def test_memory_is_handed_out_without_a_copy(name: str):
    x = mx.nd.array(A)
    view = OUT[name](x)
    np.testing.assert_array_equal(view, A)
    x += 1
    x.wait()
    np.testing.assert_array_equal(view, A + 1)
    view[0, 0] = -7
    assert x[0, 0].asscalar() == -7 and (x * 2)[0, 0].asscalar() == -14


@pytest.mark.parametrize("name", IN)
def test_memory_is_taken_without_a_copy(name: str):
    outside = A.copy()
    before = outside[:]
    x = IN[name](outside)
    assert outside.flags.writeable == (name != "from_numpy")
    before[1, 1] = 50
    assert x.asnumpy().tolist() == outside.tolist() and x.dtype is np.float32
    x[0] = 9
    x.wait()
    assert outside[0].tolist() == [9, 9, 9]


def test_what_cannot_be_shared_is_told():
    with pytest.raises(ValueError, match="C-contiguous"):
        mx.nd.from_numpy(A.T)
    with pytest.raises(ValueError, match="from_dlpack"):
        mx.nd.from_dlpack(3)
    refused = np.zeros(2, "complex64")
    with pytest.raises(ValueError, match=r"from_numpy: .*complex64"):
        mx.nd.from_numpy(refused)
    assert refused.flags.writeable
    with pytest.raises(TypeError, match="complex64"):
        mx.nd.from_numpy(refused, zero_copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        mx.nd.ones(2).__array__("int32", copy=False)


def test_memory_that_must_not_be_written_to(tmp_path: Path):
    A.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", "float32", "r", shape=(2, 3))
    for fixed in (np.frombuffer(A.tobytes(), "float32"), mapped, mapped[1:], np.asarray(mapped)[0]):
        refuses_writes(mx.nd.from_numpy(fixed))


def refuses_writes(x: mx.nd.NDArray) -> None:
    for write in (lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), lambda: x.to_dlpack_for_write(),
                  lambda: mx.nd.square(x, out=x), lambda: x.numpy.__setitem__(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            write()


def test_copies_are_copies():
    x = mx.nd.array(A)
    for made in (np.array(x), x.asnumpy(), np.asarray(x, "float64"), np.asarray(x, copy=True)):
        made[:] = 0
    assert x.asnumpy().tolist() == A.tolist()


@pytest.mark.parametrize("function", [
    np.all, np.any, np.argmax, np.argmin, np.mean, np.sum, np.max, np.std, np.exp, np.sqrt, np.isnan, np.sign, np.abs,
    np.cumsum, np.sort, np.ravel, np.unique, np.median, np.linalg.norm, np.transpose, np.squeeze, np.shape, np.size,
    np.ndim, np.array, np.asarray, np.isfinite, np.negative, np.square], ids=lambda f: f.__name__)
def test_functions_of_numpy(function):
    np.testing.assert_array_equal(function(mx.nd.array(A)), function(A))


@pytest.mark.parametrize("call", [
    lambda x: np.mean(x, axis=1), lambda x: np.concatenate([x, x]), lambda x: np.stack((x, x), axis=1),
    lambda x: np.where(x > 2, x, 0), lambda x: np.add(A, x), lambda x: np.maximum(x, A), lambda x: A - x,
    lambda x: np.dot(x, A.T), lambda x: A @ np.asarray(x).T, lambda x: np.allclose(x, A), lambda x: np.multiply(x, 2),
    lambda x: np.add.reduce(x, axis=0), lambda x: np.sum(x, axis=0, keepdims=True), lambda x: np.clip(x, 2, 4),
    lambda x: np.array_equal(x, A), lambda x: np.percentile(x, 50), lambda x: np.split(x, 3, axis=1)[1],
    lambda x: [np.float32(v) for v in np.nditer(np.asarray(x))]])
def test_functions_of_numpy_with_arguments(call):
    np.testing.assert_array_equal(call(mx.nd.array(A)), call(A))


def test_results_of_numpy_go_where_they_are_asked():
    x, target = mx.nd.array(A), np.zeros((2, 3), "float32")
    target += x
    np.exp(x, out=target)
    assert target.tolist() == np.exp(A).tolist()
    y = mx.nd.zeros((2, 3))
    assert np.square(x, out=y) is y and y.asnumpy().tolist() == (A * A).tolist()
    assert np.sum(x, axis=0, out=mx.nd.zeros(3)).asnumpy().tolist() == [5, 7, 9]
    with pytest.raises(TypeError):
        np.square(x, out=[1])


def test_numbers_of_numpy_are_numbers():
    x = mx.nd.array(A)
    for made in (np.float32(2) * x, x * np.float64(2), np.int64(2) * x, mx.nd.multiply(np.float16(2), x)):
        assert isinstance(made, mx.nd.NDArray) and made.dtype is np.float32
        assert made.asnumpy().tolist() == (2 * A).tolist()
    assert isinstance(np.float32(3) < x, mx.nd.NDArray) and (np.int64(3) - x)[0].asnumpy().tolist() == [2, 1, 0]
    assert mx.nd.zeros((np.int64(2), np.int32(3))).shape == (2, 3) == mx.nd.zeros(np.array([2, 3])).shape
    assert x.reshape(np.int64(3), np.int8(2)).shape == (3, 2) == x.reshape(np.array([3, 2])).shape
    assert x.sum(axis=np.int64(1)).shape == (2,) and x.sum(axis=np.array([0, 1])).shape == (1,)
    assert x.expand_dims(np.int64(0)).shape == (1, 2, 3) == x.expand_dims(np.int64(0), inplace=True).shape
    assert mx.nd.full(np.int64(2), np.float64(1.5)).asnumpy().tolist() == [1.5, 1.5]
    assert mx.nd.arange(np.int64(1), np.float32(3)).asnumpy().tolist() == [1, 2]
    assert len(x.split(np.int64(3), axis=np.int64(1))) == 3 and x.clip(np.float32(2), np.int64(3)).shape == (2, 3)
    assert mx.nd.one_hot(mx.nd.array([1]), np.int64(3)).shape == (1, 3)


def test_devices_are_apart():
    x, y = mx.nd.ones((2,)), mx.nd.ones((2,), ctx=mx.cpu(1))
    assert (x + y.as_in_context(x.context)).asnumpy().tolist() == [2, 2]
    x += 1
    assert x.copyto(y) is y and y.context == mx.cpu(1) and y.asnumpy().tolist() == [2, 2]
    assert (y + 1).context == mx.cpu(1) == y.reshape(2, 1).context == y[0].context == y.sum().context
    with mx.Context("cpu", 2):
        assert mx.nd.array([1]).context == mx.cpu(2) == mx.nd.arange(3).context == (y * 2).as_in_context(mx.cpu(2)).ctx
    with pytest.raises(MXNetError, match="there is none"):
        mx.nd.zeros((1,), ctx=mx.gpu(0))
    with pytest.raises(MXNetError, match="'cpu' names no context"):
        mx.nd.zeros((1,), ctx="cpu")


def test_early_spellings(tmp_path):
    x = mx.narray.create((10, 10))
    x[:] = 1
    x.wait()
    x.numpy[0, 0] = 5
    assert x.numpy.sum() == 104 and x.shape == (10, 10)
    mx.narray.save(tmp_path / "x", {"x": x})
    assert mx.narray.load(tmp_path / "x")["x"].asnumpy().sum() == 104
    assert mx.narray.ones((2,)).shape == (2,) and mx.narray.NDArray is mx.nd.NDArray
    assert mx.narray.relu(-x).asnumpy().max() == 0
    assert mx.sym.Softmax(mx.sym.Variable("x"), name="s").list_arguments() == ["x", "s_label"]


def test_arrays_at_urls():
    pytest.importorskip("fsspec")
    url = "memory://folder/a.params"
    mx.nd.save(url, {"w": mx.nd.array(A)})
    assert mx.nd.load(url)["w"].asnumpy().tolist() == A.tolist()
    mx.nd.save(url, [mx.nd.ones(2), mx.nd.ones(3)])
    assert [a.shape for a in mx.nd.load(url)] == [(2,), (3,)]
    with pytest.raises(MXNetError, match=r"memory://none.*cannot be read"):
        mx.nd.load("memory://none")
    with pytest.raises(MXNetError, match="Protocol not known: nothing"):
        mx.nd.save("nothing://a", [])


@pytest.mark.parametrize(("url", "module", "extra"), [("s3://bucket/a", "s3fs", "s3"), ("hdfs://host/a", "pyarrow.fs",
                                                                                        "hdfs"),
                                                      ("s3://bucket/a", "fsspec", "s3")])
def test_a_missing_package_is_named(monkeypatch, url: str, module: str, extra: str):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    for use in (lambda: mx.nd.load(url), lambda: mx.nd.save(url, [mx.nd.ones(1)])):
        with pytest.raises(MXNetError, match=rf"{url}: .*pip install mxc-compiler\[{extra}\]"):
            use()


def test_images_are_decoded():
    cv2 = pytest.importorskip("cv2")
    pixels = np.arange(24, dtype="uint8").reshape(2, 4, 3)
    encoded = cv2.imencode(".png", pixels[..., ::-1])[1].tobytes()
    decoded = mx.nd.imdecode(encoded)
    assert decoded.shape == (1, 3, 2, 4) and decoded.dtype is np.float32
    np.testing.assert_array_equal(decoded[0].asnumpy(), pixels.transpose(2, 0, 1))
    part = mx.nd.imdecode(encoded, clip_rect=(1, 0, 3, 2), mean=mx.nd.ones((3, 1, 1)))
    np.testing.assert_array_equal(part[0].asnumpy(), pixels[:, 1:3].transpose(2, 0, 1) - 1)
    batch = mx.nd.zeros((2, 3, 2, 4))
    assert mx.nd.imdecode(encoded, out=batch, index=1) is batch
    assert batch[1].asnumpy().sum() == pixels.sum() and not batch[0].asnumpy().any()
    jpeg = cv2.imencode(".jpg", cv2.resize(pixels, (40, 30)))[1].tobytes()
    assert (mx.nd.imdecode(jpeg)[0].asnumpy() == mx.image.imdecode(jpeg).asnumpy().transpose(2, 0, 1)).all()
    grey = mx.nd.imdecode(jpeg, channels=1)
    assert grey.shape == (1, 1, 30, 40) and (grey[0, 0].asnumpy() == mx.image.imdecode(jpeg, 0).asnumpy()[..., 0]).all()
    for arguments, text in (({}, "decoding an image"), ({"channels": 2}, "channels must be 1 or 3"),
                            ({"clip_rect": (0, 0, 5, 2)}, r"a part of an image of 4 x 2 pixels, got \(0, 0, 5, 2\)")):
        with pytest.raises(MXNetError, match=text):
            mx.nd.imdecode(encoded if arguments else b"no image", **arguments)


def test_classes_are_drawn_and_counted():
    mx.random.seed(3)
    samples, true_counts, sample_counts = mx.nd.contrib.rand_zipfian(mx.nd.array([[3]]), 200, 9)
    drawn = samples.asnumpy()
    assert samples.dtype is np.int64 and drawn.shape == (200,) and drawn.min() >= 0 and drawn.max() < 9
    expected = np.log((drawn + 2) / (drawn + 1)) / np.log(10) * 200
    np.testing.assert_allclose(sample_counts.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(true_counts.asnumpy(), [[np.log(5 / 4) / np.log(10) * 200]], rtol=1e-6)
    assert (drawn == 0).mean() > (drawn == 5).mean()
