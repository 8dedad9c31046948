"""All what-ifs: the union is the registry, and its tags are the kinds in a scenario file."""

from typing import get_args

from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.bucket import BucketMb
from whatif.transforms.compress import Compress
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.fuse import Fuse
from whatif.transforms.gpu import Gpu
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.precision import Precision
from whatif.transforms.remove import Remove
from whatif.transforms.replicas import Replicas
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers
from whatif.transforms.wan import Wan

Links = Nvlink | Pcie | Net | NetLatency | Wan | InNetwork | CollectiveAlgo | BucketMb | Compress
Runtime = HostScale | CudaGraphs | NoOverlap | PerfectOverlap | Fuse | Jitter
Machine = Gpu | Precision | Links | NetworkScale | Replicas
Transform = Machine | Scale | Remove | NoStragglers | Runtime

KINDS: dict[str, type[Transform]] = {
    str(change.__struct_config__.tag): change for change in get_args(Transform)
}
"""By tag."""
HARDWARE_FREE = (NetworkScale, Scale, Remove, NoStragglers, *get_args(Runtime))
"""What-ifs to which the recorded machine does not matter."""


def asks_for_machine(change: Transform) -> bool:
    """What is said of the recorded machine can change the answer to this what-if."""
    return not isinstance(change, HARDWARE_FREE)
