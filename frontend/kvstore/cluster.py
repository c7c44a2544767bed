"""Clusters of Ray's: the settings of those that mxc starts, connections to them, and what their errors mean."""
from __future__ import annotations

import ctypes
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mxc.compiler.error import MXNetError, SettingError
from mxc.compiler.system import env

NAMESPACE = "MXC_GROUP"
EXTRA = "pip install 'mxc-compiler[dist]'"
PARENT_DIES = 1  # prctl's PR_SET_PDEATHSIG
TOKEN = ".ray/auth_token"  # in the home directory: where Ray looks for a token that the environment does not give
# Ray's errors of calls and objects whose process is gone
LOST = ("ActorDiedError", "ActorUnavailableError", "RayActorError", "ObjectLostError", "OwnerDiedError")
SECONDS = 120.0  # until the scheduler must be there


def package() -> Any:
    """Ray. Raises MXNetError where it cannot be imported."""
    try:
        import ray
    except ImportError as error:
        raise MXNetError(f"kvstores of several processes need the package ray, which cannot be imported ({error})\n"
                         f"{EXTRA}") from None
    return ray


def number(name: str) -> int | None:
    """A variable as a number from 0, None where it is not set. Raises SettingError for anything else."""
    text = env.text(name).strip()
    if text and not text.isdecimal():
        raise SettingError(f"{name} must be a whole number from 0, got {text!r}")
    return int(text) if text else None


def namespace() -> str:
    """Ray's namespace that this process's servers are in."""
    return env.text(NAMESPACE, "mxc")


def connect(address: str, where: str) -> None:
    """Connect this process to a cluster. Raises MXNetError where there is none at the address, or none of its nodes is
    on this machine."""
    ray = package()
    try:
        ray.init(address=address, namespace=where, log_to_driver=False, logging_level="error")
    except Exception as error:
        raise MXNetError(f"no connection to Ray's cluster at {address}: {error}") from None


def start_environment(is_local: bool = True, with_token: bool = True) -> None:
    """Settings of Ray for a cluster that mxc starts, before Ray is imported: callers need a token, what workers started
    ends with them, and of a local cluster nothing listens but on the machine's loopback. with_token: make a token."""
    defaults = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0", "RAY_process_group_cleanup_enabled": "true",
                "RAY_IGNORE_UNHANDLED_ERRORS": "1"}  # of several servers' errors one is raised
    if is_local:
        defaults["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # by this Ray takes 127.0.0.1 for the node's address
        # Objects that nobody needs are freed at once, not after a second: each round of messages then has the memory of
        # the one before, and a page that is new costs more than what is copied to it. All machines are told of each
        # object, so this is not for many.
        defaults["RAY_free_objects_period_milliseconds"] = "0"
    for name, value in defaults.items():
        if env.get(name) is None:
            env.set(name, value)
    if with_token and env.text("RAY_AUTH_MODE") == "token" and not env.get("RAY_AUTH_TOKEN") \
            and not env.get("RAY_AUTH_TOKEN_PATH"):
        env.set("RAY_AUTH_TOKEN", secrets.token_hex(32))


def listening() -> list[str]:
    """A line that says what of the cluster just started listens on other addresses than the loopback, if anything."""
    try:
        import psutil  # Ray's own dependency
    except ImportError:
        return []
    ports = []
    for process in psutil.Process().children(recursive=True):
        try:
            found = [c.laddr for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue
        ports += [f"{process.name()} on {address.ip}:{address.port}" for address in found
                  if not address.ip.startswith("127.") and address.ip not in ("::1", "::ffff:127.0.0.1")]
    guard = "callers need its token" if env.text("RAY_AUTH_MODE") == "token" else "and callers need no token"
    return [f"Ray listens beyond this machine, {guard}: {', '.join(ports)}"] if ports else []


def end_with_parent() -> None:
    """In a new process: end when the one that started it does, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIES, signal.SIGKILL)


def address() -> tuple[str, int]:
    """Where the scheduler is. Raises SettingError where the variables do not say it."""
    host, port = env.text("DMLC_PS_ROOT_URI"), number("DMLC_PS_ROOT_PORT")
    if not host or not port:
        raise SettingError("DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT must be the scheduler's address")
    return host, port


def is_here(host: str) -> bool:
    """Whether an address is one of this machine's."""
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def prepare(is_scheduler: bool = False) -> None:
    """Settings of Ray, before it is imported; the token too, which the scheduler makes where all are on one machine.
    Raises SettingError where machines need to be given one."""
    host, _ = address()
    is_local = host in ("localhost", "127.0.0.1")
    start_environment(is_local, with_token=False)
    known = env.get("RAY_AUTH_TOKEN") or env.get("RAY_AUTH_TOKEN_PATH") or (Path.home() / TOKEN).exists()
    if env.text("RAY_AUTH_MODE") != "token" or known:
        return
    if not is_local:
        raise SettingError("the machines of the cluster need a common token: set RAY_AUTH_TOKEN to the same long "
                           f"random text for all processes, or copy a file ~/{TOKEN} to all machines")
    if is_scheduler:
        subprocess.run([*_ray(), "get-auth-token", "--generate"], check=True, stdout=subprocess.DEVNULL)
        return
    end = time.monotonic() + SECONDS
    while not (Path.home() / TOKEN).exists():
        if time.monotonic() > end:
            raise MXNetError(f"the scheduler has made no token ~/{TOKEN} in {SECONDS:.0f} seconds: is it running?")
        time.sleep(0.1)


def reach() -> str:
    """Wait until the scheduler's cluster is there, and add this machine to it if it is another one; the address."""
    host, port = address()
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection((host, port), 5).close()
            break
        except OSError:
            if time.monotonic() > end:
                raise MXNetError(f"the scheduler at {host}:{port} does not answer for {SECONDS:.0f} seconds") from None
            time.sleep(0.2)
    if not is_here(host):
        start_node(f"--address={host}:{port}")
    return f"{host}:{port}"


def _ray() -> list[str]:
    return [sys.executable, "-m", "ray.scripts.scripts"]


def start_node(*options: str) -> subprocess.Popen[Any]:
    """Start a node of a cluster, which ends with this process. What Ray starts there has this process's variables, but
    not its role."""
    return subprocess.Popen([*_ray(), "start", *options, "--block", "--disable-usage-stats"],
                            env=env.all_and({"DMLC_ROLE": ""}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=end_with_parent)


def translated(error: BaseException) -> MXNetError:
    """What went wrong with a call of a server's method."""
    cause = getattr(error, "cause", None)
    if isinstance(error, MXNetError) and cause is None:
        return error
    if isinstance(cause, MXNetError):
        return type(cause)(*cause.args)
    if type(error).__name__ in LOST:
        return MXNetError("kvstore: a server has been killed or failed, or the program that started it has ended; "
                          "the workers cannot go on without it: start all again, from a checkpoint")
    text = " ".join(str(cause or error).split())
    return MXNetError(f"kvstore: {type(cause or error).__name__}: {text[-500:]}")

