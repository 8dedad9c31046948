"""All what-ifs: the union is the registry, and its tags are the kinds in a scenario file."""

from typing import get_args

from whatif.transforms.algo import CollectiveAlgo, InNetwork
from whatif.transforms.bucket import BucketMb
from whatif.transforms.compress import Compress
from whatif.transforms.gpu import Gpu
from whatif.transforms.net import Net, NetLatency
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.pcie import Pcie
from whatif.transforms.precision import Precision
from whatif.transforms.remove import Remove
from whatif.transforms.replicas import Replicas
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers
from whatif.transforms.wan import Wan

Links = Nvlink | Pcie | Net | NetLatency | Wan | InNetwork | CollectiveAlgo | BucketMb | Compress
Transform = Gpu | Precision | Links | NetworkScale | Scale | Remove | NoStragglers | Replicas

KINDS: dict[str, type[Transform]] = {
    str(change.__struct_config__.tag): change for change in get_args(Transform)
}
"""By tag."""
HARDWARE_FREE = (NetworkScale, Scale, Remove, NoStragglers)
"""What-ifs to which the recorded machine does not matter."""


def asks_for_machine(change: Transform) -> bool:
    """What is said of the recorded machine can change the answer to this what-if."""
    return not isinstance(change, HARDWARE_FREE)
