"""MXNet's `mx.kvstore`: stores that sum the gradients of several devices and keep the weights that all devices share.

Begin with `base.py` (the interface, and `create`), then `kvstore.py`, the store of one process. Programs and other
modules import the names below.
"""
from mxc.kvstore import base, kvstore, kvstore_server
from mxc.kvstore.base import KVStoreBase, create
from mxc.kvstore.kvstore import KVStore
from mxc.kvstore.kvstore_server import KVStoreServer

__all__ = ["KVStore", "KVStoreBase", "KVStoreServer", "base", "create", "kvstore", "kvstore_server"]
