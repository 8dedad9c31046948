"""Section `run_card`: what ran, on what, divided how, read from which files."""

from collections.abc import Iterator

from whatif.models.hardware import Accelerator
from whatif.parallelism import Axis, Layout, group_label, layout_of
from whatif.postmortem.contract import Missing, Section
from whatif.postmortem.material import Material
from whatif.postmortem.wording import counted, joined
from whatif.report.blocks import Block, Column, DataTable, Unit, Words, details
from whatif.report.rates import accelerators
from whatif.report.text import numbers

KEY = "run_card"
TITLE = "Run card"
GROUPS_SHOWN, FILES_SHOWN = 24, 64
VERSIONS = {
    "cuda_driver_version": "CUDA that the driver supports",
    "cuda_runtime_version": "CUDA runtime",
    "hip_driver_version": "HIP driver",
    "hip_runtime_version": "HIP runtime",
    "cupti_version": "CUPTI",
    "roctracer_version": "roctracer",
    "nccl_version": "NCCL or RCCL",
    "schemaVersion": "schema of the trace",
    "record_shapes": "shapes recorded",
    "with_stack": "Python stacks recorded",
    "with_modules": "modules recorded",
    "with_flops": "FLOPs recorded",
    "profile_memory": "memory recorded",
}
SETTINGS = ("record_shapes", "with_stack", "with_modules", "with_flops", "profile_memory")
SWITCHED = {"1": "yes", "0": "no"}
CUDA_KEYS = ("cuda_driver_version", "cuda_runtime_version")


def section(material: Material) -> Section:
    """Hardware, parallelism, versions, communicators, files, and the command."""
    layout = layout_of(material.findings.graph)
    blocks: list[Block] = [
        _facts(material, layout),
        *details(*(table for table in (_groups(material, layout), _files(material)) if table.rows)),
        Words(paragraphs=("The same report again:", material.command)),
    ]
    return Section(
        key=KEY,
        title=TITLE,
        summary=_summary(material, layout),
        blocks=tuple(blocks),
        missing=tuple(_missing(material)),
    )


def _summary(material: Material, layout: Layout) -> str:
    trace = material.answer.trace
    gpu = trace.gpu or ("GPU not named" if material.findings.facts.has_device else "no GPU rows")
    ranks = counted(len(trace.ranks), "rank")
    if trace.world_size:
        ranks = f"{len(trace.ranks)} of {counted(trace.world_size, 'rank')}"
    return f"{ranks}, {gpu}, {layout.label}, {counted(trace.events, 'event')}."


def _facts(material: Material, layout: Layout) -> DataTable:
    rows = material.ask("recorded_versions")
    return DataTable(
        key=f"{KEY}.facts",
        title="Run",
        columns=(
            Column(name="what", unit=Unit.TEXT),
            Column(name="value", unit=Unit.TEXT),
            Column(name="from", unit=Unit.TEXT),
        ),
        rows=(
            *_hardware(material),
            *_parallelism(layout),
            *(
                (
                    VERSIONS.get(row["name"], row["name"]),
                    _version(row["name"], row["value"]),
                    f"{counted(row['files'], 'file')}, `{row['name']}`",
                )
                for row in rows.dicts()
            ),
        ),
        query=rows.query,
    )


def _hardware(material: Material) -> Iterator[tuple[str, str, str]]:
    graph, trace = material.findings.graph, material.answer.trace
    machine = accelerators(graph, has_device=material.findings.facts.has_device)
    if machine is not None:
        assumed = machine.assumed or "recorded"
        yield ("accelerators of the job", f"{machine.count} x {trace.gpu or 'not named'}", assumed)
        if machine.device is not None:
            yield ("one of them", _described(machine.device), "catalog (`replay hardware`)")
    seen = sorted({info.devices_seen for info in graph.ranks if info.devices_seen})
    if seen:
        yield ("devices per node", numbers(seen), "devices that the files list")
    hosts = sorted({info.host for info in graph.ranks if info.host})
    if hosts:
        yield ("hosts", joined(hosts), "recorded")
    world = str(trace.world_size) if trace.world_size else "not recorded"
    yield ("ranks in these files", f"{numbers(list(trace.ranks))}; job of {world}", "files")


def _described(device: Accelerator) -> str:
    parts = [device.name]
    usual = device.usual_precision
    peak = None if usual is None else device.peak_flops_per_s(usual)
    if peak:
        parts.append(f"{peak / 1e12:,.0f} TFLOP/s {usual}")
    if device.memory_bytes is not None:
        parts.append(f"{device.memory_bytes.value / 1e9:,.0f} GB")
    if device.memory_bytes_per_s is not None:
        parts.append(f"{device.memory_bytes_per_s.value / 1e12:,.2f} TB/s")
    if device.scale_up is not None:
        rate = device.scale_up.bytes_per_s.value / 1e9
        parts.append(f"{device.scale_up.link} {rate:,.0f} GB/s both ways")
    return ", ".join(parts)


def _parallelism(layout: Layout) -> Iterator[tuple[str, str, str]]:
    told = [
        f"{role.axis} by {role.confidence}"
        for role in layout.roles
        if role.axis not in (Axis.UNCLEAR, Axis.WORLD)
    ]
    rests_on = joined(tuple(dict.fromkeys(told))) or "no communicator tells"
    yield ("parallelism", layout.label, f"inferred: {rests_on}")


def _version(name: str, value: str) -> str:
    """CUDA writes 12.8 as 12080, and settings as 0 and 1."""
    if name in SETTINGS:
        return SWITCHED.get(value, value)
    if name in CUDA_KEYS and value.isdigit():
        return f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    return value


def _groups(material: Material, layout: Layout) -> DataTable:
    groups = material.findings.graph.groups
    pairs = sorted(
        zip(groups, layout.roles, strict=True), key=lambda pair: (-pair[1].size, pair[0].name)
    )
    return DataTable(
        key=f"{KEY}.groups",
        title="Communicators",
        about="What each is for is inferred from its name, the phases that it works in, or its "
        "place in the step.",
        columns=(
            Column(name="communicator", unit=Unit.TEXT),
            Column(name="members", unit=Unit.TEXT),
            Column(name="for", unit=Unit.TEXT),
            Column(name="known by", unit=Unit.TEXT),
            Column(name="evidence", unit=Unit.TEXT),
            Column(name="backend", unit=Unit.TEXT),
        ),
        rows=tuple(
            (
                group_label(group, role.size),
                numbers(list(group.ranks)) if group.ranks else None,
                str(role.axis),
                str(role.confidence),
                role.evidence,
                group.backend or None,
            )
            for group, role in pairs[:GROUPS_SHOWN]
        ),
        left_out=max(len(pairs) - GROUPS_SHOWN, 0),
    )


def _files(material: Material) -> DataTable:
    shown = material.sources[:FILES_SHOWN]
    return DataTable(
        key=f"{KEY}.files",
        title="Files",
        columns=(
            Column(name="file", unit=Unit.CODE),
            Column(name="rank", unit=Unit.TEXT),
            Column(name="events", unit=Unit.COUNT),
            Column(name="digest", unit=Unit.CODE, about="SHA-256 of its bytes"),
        ),
        rows=tuple(
            (
                source.name,
                None if source.rank is None else str(source.rank),
                source.events,
                source.digest,
            )
            for source in shown
        ),
        left_out=len(material.sources) - len(shown),
    )


def _missing(material: Material) -> Iterator[Missing]:
    named = {row["name"] for row in material.ask("recorded_versions").dicts()}
    if not any("torch" in name for name in named):
        yield Missing(
            what="version of PyTorch, model and configuration",
            how='the profiler does not write them: prof.add_metadata_json("torch_version", '
            "json.dumps(torch.__version__)), and the like for the model",
        )
    on_device = ~material.findings.graph.collectives.on_host
    if on_device.any() and "nccl_version" not in named:
        yield Missing(what="version of NCCL", how="newer PyTorch writes it; or NCCL_DEBUG=VERSION")
