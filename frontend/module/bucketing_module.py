"""BucketingModule: a module for each length of its inputs, all with the same parameters and in the same memory."""
from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from mxc import context as ctx
from mxc import ndarray as nd
from mxc import symbol as sym
from mxc.checkpoints import checkpoint_paths, load_params
from mxc.compiler.error import MXNetError
from mxc.initializer import Uniform
from mxc.module.base_module import FIRST, SGD_PARAMS, BaseModule, Batch, Params
from mxc.module.checks import require
from mxc.module.module import Module
from mxc.ndarray import NDArray

__all__ = ["BaseModule", "BucketingModule", "Module", "Uniform", "ctx", "logging", "nd", "sym"]


class BucketingModule(BaseModule):
    """Modules of symbols that differ by a key, such as the length of a sequence.

    sym_gen: a function that gives (symbol, data_names, label_names) for a key. default_bucket_key: the one that is
    bound first; its symbol has all the parameters, and it should be the largest, since the others use its memory. The
    rest: see Module. A batch says by its `bucket_key` which module it is for, and a module is bound when its first
    batch comes.
    """

    # MXNet's signature
    def __init__(self, sym_gen: Callable[[Any], Any], default_bucket_key: Hashable = None, logger: Any = logging,
                 context: Any = ctx.cpu(), work_load_list: Sequence[float] | None = None,  # noqa: B008  a constant
                 fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None,
                 group2ctxs: Any = None, compression_params: Mapping[str, Any] | None = None):
        super().__init__(logger=logger)
        require(default_bucket_key is not None, "BucketingModule needs a default_bucket_key")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._options = {"context": context, "work_load_list": work_load_list, "fixed_param_names": fixed_param_names,
                         "state_names": state_names, "group2ctxs": group2ctxs,
                         "compression_params": compression_params}
        self._made_module(default_bucket_key)  # Errors in the names are raised now, not when the module is bound.
        self._buckets: dict[Hashable, Module] = {}
        self._curr_module: Module | None = None
        self._curr_bucket_key: Hashable = None
        self._given: tuple[Params, Params] | None = None  # parameters of a file, until the module is bound
        self._monitor: Any = None
        self._grad_req: Any = None

    def _made_module(self, key: Hashable) -> Module:
        symbol, data_names, label_names = self._sym_gen(key)
        return Module(symbol, data_names, label_names, logger=self.logger, **self._options)

    @property
    def _default(self) -> Module:
        """The module of the default key, which has all parameters."""
        return self._buckets[self._default_bucket_key]

    def _current(self) -> Module:
        """The module of the last batch."""
        self._require_bound()
        assert self._curr_module is not None
        return self._curr_module

    # -- files

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Save the symbol of each key that was bound as PREFIX-KEY-symbol.json, the keys, which must be integers, as
        PREFIX.buckets, and the parameters as PREFIX-EPOCH.params. Each file appears whole or not at all."""
        self._require_ready()
        keys = list(self._buckets)
        if not all(isinstance(key, int) for key in keys):
            raise MXNetError(f"save_checkpoint: the keys of buckets must be integers to be saved, got {keys}")
        for key, module in self._buckets.items():
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        nd.save(f"{prefix}.buckets", nd.array(keys, dtype="int32"))
        self.save_params(checkpoint_paths(prefix, epoch).params)

    @staticmethod
    def load(prefix: str, epoch: int, sym_gen: Any = None, default_bucket_key: Hashable = None,
             **kwargs: Any) -> BucketingModule:
        """A module with the symbols and parameters that `save_checkpoint` wrote; sym_gen gives the symbols of other
        keys. kwargs: see BucketingModule."""
        require(sym_gen is not None, "sym_gen is required for loading BucketingModule")
        saved = nd.load(f"{prefix}.buckets")
        keys = [int(key) for key in saved[0].asnumpy()] if isinstance(saved, list) else []
        arg_params, aux_params = load_params(prefix, epoch)
        symbols = {key: sym.load(f"{prefix}-{key}-symbol.json") for key in keys}
        return BucketingModule.load_dict(symbols, sym_gen, default_bucket_key, arg_params, aux_params, **kwargs)

    @staticmethod
    def load_dict(sym_dict: Mapping[Any, Any] | None = None, sym_gen: Any = None,
                  default_bucket_key: Hashable = None, arg_params: Params | None = None,
                  aux_params: Params | None = None, **kwargs: Any) -> BucketingModule:
        """A module with these parameters; sym_dict: symbols by key, which replace those that sym_gen gives."""
        require(sym_gen is not None, "sym_gen is required for loading BucketingModule")
        generate = sym_gen
        if sym_dict:
            known = dict(sym_dict)

            def generate(key: Any) -> Any:
                symbol, *names = sym_gen(key)
                return (known.get(key, symbol), *names)

        module = BucketingModule(generate, default_bucket_key, **kwargs)
        module._given = arg_params or {}, aux_params or {}
        module.params_initialized = True
        return module

    # -- facts

    @property
    def data_names(self) -> list[str]:
        """The names of the inputs that data are for."""
        return (self._current() if self.binded else self._made_module(self._default_bucket_key)).data_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return (self._current() if self.binded else self._made_module(self._default_bucket_key)).output_names

    @property
    def data_shapes(self) -> list[Any]:
        """A description of each input of the last batch's module."""
        return self._current().data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        """A description of each label of the last batch's module."""
        return self._current().label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs of the last batch's module."""
        return self._current().output_shapes

    @property
    def symbol(self) -> Any:
        """The symbol of the last batch's module."""
        return self._current().symbol

    # -- parameters

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """See Module."""
        self._require_ready()
        return self._default.get_params()

    def init_params(self, initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """See BaseModule."""
        if self.params_initialized and not force_init:
            return
        require(self.binded, "call bind before initializing the parameters")
        self._default.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def set_params(self, arg_params: Params | None, aux_params: Params | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """See BaseModule."""
        self._require_bound()
        self._default.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule."""
        return self._current().get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """See BaseModule."""
        self._current().set_states(states, value)

    # -- binding

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Bind the module of the default key; the others follow it. See BaseModule; there is no shared_module."""
        require(shared_module is None, "shared_module for BucketingModule is not supported")
        given = self._given
        if force_rebind:
            if self.binded and self.params_initialized:
                given = self.get_params()
            self.binded, self._buckets = False, {}
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        module = self._made_module(self._default_bucket_key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        if given is not None:
            module.set_params(*given)
        self._given = None
        self._buckets = {self._default_bucket_key: module}
        self._curr_module, self._curr_bucket_key = module, self._default_bucket_key
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self.binded = True
        self.optimizer_initialized = False  # The modules are made anew, without an optimizer.

    def switch_bucket(self, bucket_key: Hashable, data_shapes: Any, label_shapes: Any = None) -> None:
        """Work with the module of a key from now on, which is bound to these shapes if it is new.

        Raises MXNetError for a symbol with a parameter that the default key's symbol lacks.
        """
        require(self.binded, "call bind before switching bucket")
        if bucket_key not in self._buckets:
            module = self._made_module(bucket_key)
            module.bind(data_shapes, label_shapes, self.for_training, self.inputs_need_grad,
                        shared_module=self._default, grad_req=self._grad_req)
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = self._buckets[bucket_key], bucket_key

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD_PARAMS,
                       force_init: bool = False) -> None:
        """See Module."""
        self._require_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        self._default.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        for module in self._buckets.values():
            if module is not self._default:
                module.borrow_optimizer(self._default)
        self.optimizer_initialized = True

    # -- steps

    def prepare(self, data_batch: Batch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Bind the module that a batch needs, before its turn comes."""
        self._require_ready()
        before = self._curr_bucket_key
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._current().prepare(data_batch, sparse_row_id_fn)
        self.switch_bucket(before, None)

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """See BaseModule: by the module of the batch's key."""
        self._require_ready()
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._current().forward(data_batch, is_train=is_train)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """See BaseModule."""
        self._require_ready()
        self._current().backward(out_grads=out_grads)

    def update(self) -> None:
        """See BaseModule. Parameters that the last batch's symbol does not have stay as they are."""
        self._require_ready()
        require(self.optimizer_initialized, "there is no optimizer: call init_optimizer first")
        self._current().update()
        self._default._params_dirty = True  # The arrays that were updated are those of the default module.

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule."""
        self._require_ready()
        return self._current().get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule."""
        self._require_ready()
        return self._current().get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """See BaseModule."""
        self._require_ready()
        self._current().update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor see the values of every module, also of those that are bound later."""
        self._require_bound()
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)
