"""What a transform gets and gives back."""

from dataclasses import dataclass, replace

from replay.graph.arrays import Bool, Int64, TaskGraph
from replay.graph.work import KernelWork
from whatif.description.described import Described
from whatif.models.bound import Bound
from whatif.models.collectives.curves import Curves
from whatif.models.coverage import Coverage
from whatif.models.fabric import Fabric
from whatif.models.hardware import Accelerator
from whatif.models.memory.told import MemoryTold
from whatif.models.shape import RunShape
from whatif.recorded import NOTHING_SAID, Recorded
from whatif.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a transform must know beside the graph: the machine as the stack has left it so far."""

    bound: Bound = Bound.NOMINAL
    recorded: Recorded = NOTHING_SAID
    """What is said of the recorded machine; no transform changes it."""
    device: Accelerator | None = None
    """The accelerator; None where it is not known, and before `machine.known` has looked."""
    first_device: Accelerator | None = None
    """The accelerator of the recording; None as for `device`."""
    fabric: Fabric | None = None
    """Links of one accelerator; None before `machine.known` has looked."""
    topology: Topology | None = None
    """Places of the ranks; None before `machine.known` has looked."""
    anchor: "Anchor | None" = None
    """What ratios refer to; None before the first change of a link."""
    compute: "ComputeAnchor | None" = None
    """What ratios of kernels refer to; None before the first other accelerator."""
    samples_factor: float = 1.0
    """Samples of a step of the whole job, against the recorded run."""
    replica_spread_ns: float | None = None
    """Standard deviation of what replicas work by themselves in a step, as recorded; None before a
    what-if has measured it."""
    before_replicas: "BeforeReplicas | None" = None
    """None before the first other number of replicas."""
    before_strong: "BeforeStrong | None" = None
    """None before the first other number of replicas that keeps the samples of a step."""
    before_relayout: "BeforeRelayout | None" = None
    """None before the first other layout, batch or model."""
    relayout_follows: bool = False
    """The next what-if of the stack is about the layout too: this one need only say its target."""
    recorded_latency_ns: Int64 | None = None
    """Per collective, latency in the recording as a transform was told; None: as in the graph."""

    @property
    def links(self) -> Fabric:
        """The links, after `machine.known` has looked."""
        assert self.fabric is not None, "call machine.known first"
        return self.fabric

    @property
    def places(self) -> Topology:
        """The places of the ranks, after `machine.known` has looked."""
        assert self.topology is not None, "call machine.known first"
        return self.topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Measured transfers with the links and the calls that they were measured on.

    All later changes are ratios to these, so that a change and its reverse leave nothing behind.
    """

    graph: TaskGraph
    fabric: Fabric
    topology: Topology
    curves: Curves
    """Size to time as the calls themselves measured it; rows are collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeReplicas:
    """The run before its number of replicas changed: of fewer replicas the others are gone.

    Another number asked for right after starts from here, so that there and back leaves nothing.
    """

    graph: TaskGraph
    context: Context
    n_replicas: int
    changed: TaskGraph
    """What became of it: the next what-if stands right after where it gets this very graph."""
    n_lost: int
    """Replicas in the files that are not in `changed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeStrong:
    """The run before a number of replicas that kept the samples of a step, in whole or in part.

    Another number asked for right after starts from here, so that there and back leaves nothing.
    """

    graph: TaskGraph
    context: Context
    groups: str | None
    """Communicators of replicas, as that what-if said them."""
    n_replicas: int
    """Of `changed`."""
    share: float
    """Samples of a replica of `changed`, against those of `graph`."""
    changed: TaskGraph
    """What became of it: the next what-if stands right after where it gets this very graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeRelayout:
    """The run before its layout, batch or model changed, and what it shall become.

    All what-ifs about these in a row edit `target`; the graph is made anew from `graph` each time,
    so that they may stand in any order and a change and its reverse leave nothing behind.
    """

    graph: TaskGraph
    context: "Context"
    described: Described
    """Of `graph`."""
    target: RunShape
    changed: TaskGraph
    """What became of it: the next what-if stands right after where it gets this very graph."""
    made: Described
    """Of `changed`, with its labels."""
    pending: bool = False
    """The target was changed and its graph is not made yet: `changed` is as before."""
    batch_factors: tuple[float, float] = (1.0, 1.0)
    """On micro-batches and on samples of `target`, left by numbers of replicas that kept the
    samples of a step: another such number divides by them first."""
    rests_on: Coverage | None = None
    """What the times of `changed` rest on; None where they are the recorded ones."""
    memory: MemoryTold | None = None
    """Of a rank; None where nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeAnchor:
    """Measured kernels and copies with the accelerator that they were measured on.

    Times on every later accelerator are ratios to these, so that a change and its reverse leave
    nothing behind.
    """

    dur_ns: Int64
    """Per task."""
    work: KernelWork
    """What they computed: another precision starts anew."""
    device: Accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A changed graph and what was taken for granted on the way."""

    graph: TaskGraph
    label: str
    """The change as it was understood."""
    context: Context
    """For the next transform of the stack."""
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()
    """Of the models that were used, on measurements; or that there are none to judge them by."""
    no_effect: str | None = None
    """Why the graph is the same as before, in words; None when it was changed."""


def with_durations(graph: TaskGraph, dur_ns: Int64) -> TaskGraph:
    """The graph with other durations; all else is shared."""
    return replace(graph, tasks=replace(graph.tasks, dur_ns=dur_ns))


def free(graph: TaskGraph, selected: Bool) -> Bool:
    """The selected tasks that a scenario may change."""
    chosen: Bool = selected & ~graph.tasks.fixed
    return chosen
