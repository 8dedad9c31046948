"""All what-ifs: the union is the registry, and its tags are the kinds in a scenario file."""

from typing import get_args

from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.fuse import Fuse
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

Transform = (
    Nvlink
    | NetworkScale
    | Scale
    | Remove
    | NoStragglers
    | HostScale
    | CudaGraphs
    | NoOverlap
    | PerfectOverlap
    | Fuse
    | Jitter
)

KINDS: dict[str, type[Transform]] = {
    str(change.__struct_config__.tag): change for change in get_args(Transform)
}
"""By tag."""
