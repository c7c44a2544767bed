"""What a process does that MXNet's launcher starts as scheduler or server: it never comes to the program's lines."""
from __future__ import annotations

import sys
from typing import Any, NoReturn

from mxc.compiler.error import MXNetError
from mxc.compiler.system import env


class KVStoreServer:
    """The server's side of a store. kvstore: the store that it serves."""

    def __init__(self, kvstore: Any):
        self.kvstore = kvstore

    def run(self) -> NoReturn:
        """Raises MXNetError: servers are actors of Ray's, which `mxc launch` or the scheduler starts."""
        raise MXNetError(f"a kvstore of type {self.kvstore.type!r} has no server: `mxc launch` starts servers, and so "
                         "does the scheduler of MXNet's launcher")


def _init_kvstore_server_module() -> None:
    """Be the scheduler or a server where DMLC_ROLE says so, and end the process then."""
    from mxc.kvstore import roles

    {"scheduler": roles.scheduler, "server": roles.server}[env.text("DMLC_ROLE")]()
    sys.exit()
