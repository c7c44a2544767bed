"""Arrays and symbols at URLs: S3 against a local server, HDFS as far as that goes without Hadoop, and local files."""
from __future__ import annotations

import contextlib
import socket
import threading
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.cli.main import main
from mxc.compiler.error import FileAccessError, ModelFileError

fsspec = pytest.importorskip("fsspec")
A = np.arange(6, dtype="float32").reshape(2, 3)
BUCKET = "s3://models"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server, without any bucket."""
    moto = pytest.importorskip("moto.server")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


def tell(server: str, command: str, number: str = "") -> None:
    request = urllib.request.Request(f"{server}/moto-api/{command}", number.encode(), {"Content-Type": "text/plain"})
    urllib.request.urlopen(request).close()


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[str]:
    """The address of an S3 server with an empty bucket; this process has credentials for it."""
    s3fs = pytest.importorskip("s3fs")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": server,
                        "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",
                        "AWS_CONFIG_FILE": str(tmp_path / "none"),
                        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(s3fs.core, "S3_RETRYABLE_ERRORS", ())
    s3fs.S3FileSystem.clear_instance_cache()
    tell(server, "reset")
    s3fs.S3FileSystem().mkdir("models")
    yield server
    s3fs.S3FileSystem.clear_instance_cache()


def values(url: str) -> list[list[float]]:
    return [array.asnumpy().ravel().tolist() for array in mx.nd.load(url)]


@pytest.mark.parametrize("protocol", ["s3", "s3a"])
def test_arrays_in_a_bucket(s3: str, protocol: str) -> None:
    url = f"{protocol}://models/deep/net-0000.params"
    mx.nd.save(url, {"arg:w": mx.nd.array(A), "aux:m": mx.nd.ones((2,), dtype="float16")})
    loaded = mx.nd.load(url)
    assert list(loaded) == ["arg:w", "aux:m"] and loaded["aux:m"].dtype is np.float16
    np.testing.assert_array_equal(loaded["arg:w"].asnumpy(), A)
    mx.nd.save(url, [mx.nd.ones(2), mx.nd.ones(3)])
    assert values(url) == [[1, 1], [1, 1, 1]]
    mx.nd.save(url, mx.nd.array([7]))
    assert values(url) == [[7]]
    mx.nd.save(url, [])
    assert mx.nd.load(url) == []


def test_a_model_in_a_bucket(s3: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What `save_checkpoint` does: a symbol and its parameters, which a program and the shell's command load."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    net.save(f"{BUCKET}/net-symbol.json")
    mx.nd.save(f"{BUCKET}/net-0003.params", {"arg:fc_weight": mx.nd.array(A), "arg:fc_bias": mx.nd.ones(2)})
    loaded = mx.sym.load(f"{BUCKET}/net-symbol.json")
    assert loaded.tojson() == net.tojson()
    executor = loaded.simple_bind(mx.cpu(), grad_req="null", data=(1, 3))
    executor.copy_params_from({k[4:]: v for k, v in mx.nd.load(f"{BUCKET}/net-0003.params").items()})
    assert executor.forward(data=mx.nd.ones((1, 3)))[0].asnumpy().tolist() == [[4, 13]]
    assert main(["inspect", f"{BUCKET}/net-symbol.json", "--params", f"{BUCKET}/net-0003.params", "--shape",
                 "data=1,3"]) == 0
    assert "fc" in capsys.readouterr().out


def test_what_is_no_model_names_its_url(s3: str) -> None:
    fsspec.filesystem("s3").pipe_file("models/page", b"<html>\xff")
    for use in (mx.nd.load, mx.sym.load):
        with pytest.raises(ModelFileError, match=f"^{BUCKET}/page.*: "):
            use(f"{BUCKET}/page")


def test_names_that_there_are_not(s3: str) -> None:
    for use in (mx.nd.load, mx.sym.load):
        with pytest.raises(FileAccessError, match=f"^{BUCKET}/none: cannot be read: .*; check the names in the URL"):
            use(f"{BUCKET}/none")
        with pytest.raises(FileAccessError, match=r"s3://nobody/a: cannot be read: .*bucket does not exist; check"):
            use("s3://nobody/a")
    for save in (mx.sym.Variable("x").save, lambda url: mx.nd.save(url, [mx.nd.ones(1)])):
        with pytest.raises(FileAccessError, match=r"nobody/a: cannot be written: .*does not exist; make its bucket"):
            save("s3://nobody/a")
    for url in ("s3://", BUCKET):
        with pytest.raises(FileAccessError, match=f"{url}: cannot be read: Parameter validation failed: .*Invalid"):
            mx.nd.load(url)


@pytest.mark.parametrize("known", [False, True])
def test_credentials(s3: str, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """Without any, and with ones that the server does not know, the error says what to set; nothing is lost."""
    url = f"{BUCKET}/a"
    mx.nd.save(url, [mx.nd.array([1])])
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    if known:
        tell(s3, "reset-auth", "0")
    else:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    try:
        for done, use in (("read", mx.nd.load), ("written", lambda url: mx.nd.save(url, [mx.nd.array([2])]))):
            with pytest.raises(FileAccessError, match=f"^{url}: cannot be {done}: .+; give credentials.*AWS_ACCESS"):
                use(url)
    finally:
        tell(s3, "reset-auth", "inf")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    assert values(url) == [[1]]


def cut_off(server: str, after: int) -> tuple[str, socket.socket]:
    """The address of a way to the server that breaks once a connection has sent `after` bytes, and its socket."""
    target = urllib.request.urlparse(server)
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(far: socket.socket, near: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed meanwhile
            while part := far.recv(65536):
                near.sendall(part)

    def carry(near: socket.socket) -> None:
        with near, socket.create_connection((target.hostname, target.port)) as far:
            threading.Thread(target=answer, args=(far, near), daemon=True).start()
            sent = 0
            while sent < after and (part := near.recv(min(65536, after - sent))):
                sent += len(part)
                far.sendall(part)

    def accept() -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=carry, args=(near,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}", listening


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupted_upload(s3: str, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    url, store = f"{BUCKET}/large", fsspec.get_filesystem_class("s3")
    if there:
        mx.nd.save(url, [mx.nd.array([1])])
    broken, listening = cut_off(s3, 300_000)
    monkeypatch.setenv("AWS_ENDPOINT_URL", broken)
    store.clear_instance_cache()
    with listening, pytest.raises(FileAccessError, match=f"^{url}: cannot be written: "):
        mx.nd.save(url, [mx.nd.zeros((1000, 1000))])
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    store.clear_instance_cache()
    if there:
        assert values(url) == [[1]]
    else:
        with pytest.raises(FileAccessError):
            mx.nd.load(url)


def test_a_part_that_is_not_uploaded(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large objects are sent in parts; the object appears with the last one."""
    url, store = f"{BUCKET}/parts", fsspec.get_filesystem_class("s3")
    mx.nd.save(url, [mx.nd.array([1])])
    call, parts = store._call_s3, []

    async def fail_late(self, method, *args, **kwargs):
        if method == "upload_part":
            parts.append(kwargs["PartNumber"])
            if kwargs["PartNumber"] == 3:
                raise OSError("the line is cut")
        return await call(self, method, *args, **kwargs)

    pipe = store._pipe_file

    async def in_small_parts(self, path, data):
        return await pipe(self, path, data, chunksize=6 << 20)

    monkeypatch.setattr(store, "_call_s3", fail_late)
    monkeypatch.setattr(store, "_pipe_file", in_small_parts)
    store.clear_instance_cache()  # an instance has its methods from when it was made
    with pytest.raises(FileAccessError, match="cannot be written: the line is cut"):
        mx.nd.save(url, [mx.nd.zeros((4 << 20,))])
    assert 3 in parts and values(url) == [[1]]
    monkeypatch.setattr(store, "_call_s3", call)
    mx.nd.save(url, [mx.nd.ones((4 << 20,))])
    loaded, = mx.nd.load(url)
    assert loaded.shape == (4 << 20,) and loaded.asnumpy().all()


def test_hdfs_without_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = pytest.importorskip("pyarrow.fs")

    def missing(**_: object) -> None:  # as pyarrow raises it, for each of the places it looks at
        raise OSError("Unable to load libjvm\ndlopen(/usr/lib/libjvm.so) failed\ndlopen(/lib/libjvm.so) failed")

    monkeypatch.setattr(fs, "HadoopFileSystem", missing)
    fsspec.get_filesystem_class("hdfs").clear_instance_cache()
    for done, use in (("read", mx.nd.load), ("read", mx.sym.load), ("written", mx.sym.Variable("x").save),
                      ("written", lambda url: mx.nd.save(url, [mx.nd.ones(1)]))):
        with pytest.raises(FileAccessError) as caught:
            use("hdfs://host:9000/a")
        assert str(caught.value) == (
            f"hdfs://host:9000/a: cannot be {done}: Unable to load libjvm dlopen(/usr/lib/libjvm.so) failed; hdfs "
            "needs Java and Hadoop beside mxc-compiler[hdfs]: set JAVA_HOME, HADOOP_HOME and CLASSPATH")


def test_hdfs_over_other_files(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """All between this package and Hadoop's client, which a local file system stands in for."""
    fs = pytest.importorskip("pyarrow.fs")
    hosts = []

    def connect(**options: object) -> object:
        hosts.append((options["host"], options["port"], options["user"]))
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    monkeypatch.setattr(fs, "HadoopFileSystem", connect)
    fsspec.get_filesystem_class("hdfs").clear_instance_cache()
    url = "hdfs://me@host:9000/net.params"
    try:
        mx.nd.save(url, {"w": mx.nd.array(A)})
        assert hosts == [("host", 9000, "me")]
        np.testing.assert_array_equal(mx.nd.load(url)["w"].asnumpy(), A)
        mx.nd.save(url, [mx.nd.array([1])])
        assert values(url) == [[1]] and [path.name for path in tmp_path.iterdir()] == ["net.params"]
        mx.sym.Variable("x").save("hdfs://me@host:9000/x.json")
        assert mx.sym.load("hdfs://me@host:9000/x.json").list_arguments() == ["x"]
        with pytest.raises(FileAccessError, match=r"hdfs://me@host:9000/none: cannot be read: .*; check the names"):
            mx.nd.load("hdfs://me@host:9000/none")
        with pytest.raises(FileAccessError, match=r"cannot be written: .*; make its bucket or folder first"):
            mx.nd.save("hdfs://me@host:9000/none/a", [])
    finally:
        fsspec.get_filesystem_class("hdfs").clear_instance_cache()


def test_an_interrupted_rewrite_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Where opening a file for writing empties it, as on HDFS, the old content stays until the new one is whole."""
    url, store = f"file://{tmp_path}/a.params", fsspec.get_filesystem_class("file")
    mx.nd.save(url, [mx.nd.array([1])])

    def stop(self, path: str, value: bytes, **_: object) -> None:
        with self.open(path, "wb") as file:
            file.write(value[:30])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "pipe_file", stop)
    with pytest.raises(MXNetError, match="cannot be written: No space left on device"):
        mx.nd.save(url, [mx.nd.array([2])])
    monkeypatch.undo()
    assert values(url) == [[1]] and [path.name for path in tmp_path.iterdir()] == ["a.params"]
    mx.nd.save(url, [mx.nd.array([2])])
    assert values(url) == [[2]]
