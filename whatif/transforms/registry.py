"""All what-ifs: the union is the registry, and its tags are the kinds in a scenario file."""

from typing import get_args

from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.batch_scale import BatchScale
from whatif.transforms.bucket import BucketMb
from whatif.transforms.compress import Compress
from whatif.transforms.cp import ContextParallel
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.ep import ExpertParallel
from whatif.transforms.experts import Capacity, Imbalance
from whatif.transforms.fuse import Fuse
from whatif.transforms.gpu import Gpu
from whatif.transforms.grad_accum import GradAccum
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.layers import Layers
from whatif.transforms.micro_batches import MicroBatches
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.offload import Offload
from whatif.transforms.pcie import Pcie
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.pp import PipelineParallel
from whatif.transforms.precision import Precision
from whatif.transforms.recompute import Recomputation
from whatif.transforms.remove import Remove
from whatif.transforms.replicas import Replicas
from whatif.transforms.scale import Scale
from whatif.transforms.schedule import PipelineSchedule
from whatif.transforms.seq_scale import SeqScale
from whatif.transforms.sp import SequenceParallel
from whatif.transforms.stragglers import NoStragglers
from whatif.transforms.sync_every import SyncEvery
from whatif.transforms.tp import TensorParallel
from whatif.transforms.virtual_stages import VirtualStages
from whatif.transforms.wan import Wan
from whatif.transforms.zero import Zero

Links = Nvlink | Pcie | Net | NetLatency | Wan | InNetwork | CollectiveAlgo | BucketMb | Compress
Runtime = HostScale | CudaGraphs | NoOverlap | PerfectOverlap | Fuse | Jitter
Machine = Gpu | Precision | Links | NetworkScale | Replicas
Degrees = (
    TensorParallel
    | SequenceParallel
    | PipelineParallel
    | VirtualStages
    | PipelineSchedule
    | Zero
    | ExpertParallel
    | Imbalance
    | Capacity
    | ContextParallel
)
Size = (
    MicroBatches | GradAccum | BatchScale | SeqScale | Layers | Recomputation | Offload | SyncEvery
)
Relayout = Degrees | Size
Transform = Machine | Relayout | Scale | Remove | NoStragglers | Runtime

KINDS: dict[str, type[Transform]] = {
    str(change.__struct_config__.tag): change for change in get_args(Transform)
}
"""By tag."""
RELAYOUTS = get_args(Relayout)
"""What-ifs that edit the target of a relayout."""
HARDWARE_FREE = (NetworkScale, Scale, Remove, NoStragglers, *get_args(Runtime))
"""What-ifs to which the recorded machine does not matter."""


def asks_for_machine(change: Transform) -> bool:
    """What is said of the recorded machine can change the answer to this what-if."""
    return not isinstance(change, HARDWARE_FREE)
