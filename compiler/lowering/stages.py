"""The stages, in their order: what the compiler does behind the passes, from a graph to a plan."""
from __future__ import annotations

from mxc.compiler.lowering.chains import chains
from mxc.compiler.lowering.fuse import fuse
from mxc.compiler.lowering.lower import lower
from mxc.compiler.lowering.plan_memory import plan_memory
from mxc.compiler.lowering.schedule import schedule
from mxc.compiler.lowering.share_code import share_code
from mxc.compiler.lowering.split_depth import split_depth
from mxc.compiler.lowering.split_joins import split_joins
from mxc.compiler.lowering.split_reduction import split_reduction
from mxc.compiler.lowering.split_winograd import split_winograd
from mxc.compiler.lowering.stage import GIVEN
from mxc.compiler.lowering.strides import strides
from mxc.compiler.transformation import check_order

STAGES = (fuse, lower, split_reduction, split_depth, split_joins, split_winograd, strides, share_code, chains,
          schedule, plan_memory)
check_order(STAGES, GIVEN)
