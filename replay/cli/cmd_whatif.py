"""`replay TRACE... [options]`: the answer to a what-if, or the unchanged run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import console, options
from replay.cli.parts import parse_step_time
from replay.cli.reading import part_of, reading
from replay.cli.stack import typed
from replay.cli.writing import refuse_trace, require_place

if TYPE_CHECKING:
    from whatif.scenario import Scenario


def whatif(
    ctx: typer.Context,
    traces: options.Traces,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Another accelerator: H200, B200, MI300X (`replay hardware list`).",
        ),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Matrix products in a narrower type: bf16, fp16 or fp8.",
        ),
    ] = None,
    nvlink: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE",
            help="Link between the GPUs of a node (NVLink, xGMI): 900GBps, 400Gbps or x2.",
        ),
    ] = None,
    pcie: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE",
            help="PCIe of a GPU, one direction: 64GBps or x2.",
        ),
    ] = None,
    net: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE",
            help="Network between nodes, share of one GPU, one direction: 400Gbps or x2.",
        ),
    ] = None,
    net_latency: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME",
            help="Latency between nodes, one way: 20us, or +20us on top of what it was.",
        ),
    ] = None,
    wan: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE,TIME",
            help="Halve the ranks over two sites with this link between: 100Gbps,20ms.",
        ),
    ] = None,
    in_network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="on|off",
            help="Reduce in the switches of nodes and network (NVLS, SHARP).",
        ),
    ] = None,
    collective_algo: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Force ring, tree, nvls, ... where it can do a collective.",
        ),
    ] = None,
    bucket_mb: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Gradient buckets of N MiB (DDP's bucket_cap_mb), re-cut from the recorded ones.",
        ),
    ] = None,
    compress: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOW",
            help="Send gradients as fp8, bf16 or topk:0.01; HOW@SELECTOR for other collectives.",
        ),
    ] = None,
    network_scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X",
            help="Every transfer takes 1/X of its time, latency included.",
        ),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR=FACTOR",
            help="Multiply durations: class:gemm=0.5, name:*nccl*=2, rank:3,class:compute=0.9.",
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR",
            help="Take tasks out, and the calls that launched only them.",
        ),
    ] = None,
    no_stragglers: Annotated[
        bool,
        typer.Option(
            "--no-stragglers",
            help="Every task takes the median time of the same task on all ranks.",
        ),
    ] = False,
    host_scale: Annotated[
        list[str] | None,
        typer.Option(metavar="X", help="The CPU is X times as fast; what it waits for stays."),
    ] = None,
    cuda_graphs: Annotated[
        bool,
        typer.Option(
            "--cuda-graphs",
            help="CUDA (HIP) graphs launch the work: host code between launches is gone.",
        ),
    ] = False,
    fuse: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR",
            help="Neighbouring kernels become one: class:elementwise, op:aten::*add*.",
        ),
    ] = None,
    jitter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N[@X]",
            help="p50 and p95 of the step over N replays with the measured variation (times X).",
        ),
    ] = None,
    no_overlap: Annotated[
        bool,
        typer.Option("--no-overlap", help="Communication and compute of a device take turns."),
    ] = False,
    perfect_overlap: Annotated[
        bool,
        typer.Option(
            "--perfect-overlap", help="Compute never waits for communication: an upper bound."
        ),
    ] = False,
    dp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Data-parallel replicas, each with its batch (N:strong: the job's batch stays; "
            "N@NAME: communicators by name).",
        ),
    ] = None,
    tp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Tensor-parallel ranks of each layer; the GPUs of the job follow.",
        ),
    ] = None,
    sp: Annotated[
        bool,
        typer.Option("--sp", help="Sequence parallel beside --tp."),
    ] = False,
    pp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Pipeline stages that the layers are divided over.",
        ),
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Order of micro-batches: gpipe, 1f1b, interleaved, zero_bubble, dualpipe.",
        ),
    ] = None,
    virtual_stages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Chunks of layers per stage (interleaved).",
        ),
    ] = None,
    zero: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Shard: 0 nothing, 1 optimizer, 2 + gradients, 3 all (N:S: groups of S).",
        ),
    ] = None,
    ep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Ranks that the experts of a layer lie on.",
        ),
    ] = None,
    imbalance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X",
            help="Tokens of the fullest rank of experts over the mean.",
        ),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X",
            help="Tokens that an expert takes at most, over those of a balanced one.",
        ),
    ] = None,
    cp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Ranks that each sequence is divided over (N:all_to_all: by heads; else a ring).",
        ),
    ] = None,
    micro_batches: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Cut a step's samples into N micro-batches.",
        ),
    ] = None,
    grad_accum: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="N micro-batches of the recorded size: the batch of a step follows.",
        ),
    ] = None,
    batch_scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X",
            help="Micro-batches of X times the samples.",
        ),
    ] = None,
    seq_scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X",
            help="Sequences of X times the tokens.",
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="A model of N layers.",
        ),
    ] = None,
    recompute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Activations computed again in backward: none, selective, full.",
        ),
    ] = None,
    offload: Annotated[
        bool,
        typer.Option("--offload", help="Optimizer state and its work on the host."),
    ] = False,
    sync_every: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K",
            help="Local SGD: replicas exchange every K steps.",
        ),
    ] = None,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The same what-ifs from a YAML file.",
        ),
    ] = None,
    save_scenario: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the what-ifs of this call as such a file."),
    ] = None,
    base_gpu: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The recorded GPU, where the trace does not tell."),
    ] = None,
    base_nvlink: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="The recorded link between the GPUs of a node."),
    ] = None,
    base_net: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="The recorded network, share of one GPU."),
    ] = None,
    base_net_latency: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The recorded latency between nodes, one way."),
    ] = None,
    base_pcie: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="The recorded PCIe of a GPU, one direction."),
    ] = None,
    gpus_per_node: Annotated[
        int | None,
        typer.Option(metavar="N", help="GPUs of a recorded node."),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Which ranks share nodes and sites, from a YAML file.",
        ),
    ] = None,
    describe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What the run is, from a YAML file, where `replay describe` misreads it.",
        ),
    ] = None,
    own_hardware: options.OwnHardware = None,
    tokens_per_step: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0, help="Tokens that a step of the whole job takes, for tokens/s."
        ),
    ] = None,
    samples_per_step: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0, help="Samples that a step of the whole job takes, for samples/s."
        ),
    ] = None,
    flops_per_step: Annotated[
        float | None,
        typer.Option(
            metavar="F", min=0, help="FLOPs of the model in a step of the whole job, for MFU."
        ),
    ] = None,
    steps_total: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Steps of the whole training, for GPU-hours."),
    ] = None,
    steps: options.Steps = None,
    ranks: options.Ranks = None,
    unprofiled_step: options.UnprofiledStep = None,
    format_: options.AnswerForm = options.AnswerFormat.TABLE,
    json: options.Json = False,
    strict: options.Strict = False,
    no_cache: options.NoCache = False,
    cache_dir: options.CacheDir = None,
    window: options.Window = None,
) -> None:
    """Replay a run as it would have been.

    Needs no verb. What-ifs stack in the order given; without one, the run is replayed as it was.
    SELECTOR is KEY:GLOB[,KEY:GLOB]; keys: name, class, stream, rank, op, module, phase, sync.

    \b
    replay traces/                                       as it was
    replay traces/ --nvlink 900GBps --no-stragglers      both together
    replay traces/ --gpu B200 --json                     for programs
    replay traces/ --scale class:gemm=0.5 --remove 'name:*Memcpy*'
    """
    from replay.api import examine
    from replay.cli.what_ifs import require_use_of_base, scenario_in
    from whatif.models.hardware import extended_by
    from whatif.report.answer import to_json
    from whatif.report.rates import Workload
    from whatif.report.text import render
    from whatif.report.view import answer_of

    ctx.with_resource(extended_by(own_hardware))
    asked = scenario_in(typed(ctx))
    require_use_of_base(typed(ctx), [asked])
    if save_scenario is not None:
        require_place(save_scenario, traces)
        refuse_trace(save_scenario)
        _save(asked, save_scenario)
    as_json = json or format_ is options.AnswerFormat.JSON
    workload = Workload(
        tokens_per_step=tokens_per_step,
        samples_per_step=samples_per_step,
        flops_per_step=flops_per_step,
        steps_total=steps_total,
    )
    part = part_of(ranks, steps)
    step_ns = parse_step_time(unprofiled_step)
    with reading(strict=strict, no_cache=no_cache, cache_dir=cache_dir, window=window) as how:
        findings = examine(
            traces,
            asked,
            window=part,
            unprofiled_step_ns=step_ns,
            options=how,
            workload=workload,
        )
    console.report_failed(findings.reading.failed)
    if as_json:
        console.show(to_json(answer_of(findings)).decode())
    else:
        console.show(render(findings))


def _save(asked: "Scenario", path: Path) -> None:
    from whatif.scenario import save_scenario

    save_scenario(asked, path)
    console.talk(f"written: {path}")
