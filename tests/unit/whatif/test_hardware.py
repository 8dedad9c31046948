"""The catalog of accelerators and links."""

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import ScenarioError, UsageError
from whatif.models.catalog_files import laid_over
from whatif.models.hardware import (
    OWN_FILE,
    Accelerator,
    Link,
    Number,
    Precision,
    Shape,
    catalog,
    extended_by,
    find,
    find_link,
    link,
    precision_of,
    require,
)

SHARED = Path(__file__).parents[4] / "shared"
GIB = 1 << 30
MIB = 1 << 20

PROFILER_NAMES = {
    "NVIDIA H100 80GB HBM3": 900e9,
    "NVIDIA H100": 900e9,
    "NVIDIA H200": 900e9,
    "NVIDIA B200": 1800e9,
    "NVIDIA GB200": 1800e9,
    "Tesla V100-SXM2-16GB": 300e9,
    "Tesla V100-SXM2-32GB": 300e9,
    "Tesla V100-DGXS-32GB": 300e9,
    "NVIDIA A100-SXM4-40GB": 600e9,
    "NVIDIA A100-SXM4-80GB": 600e9,
    "NVIDIA A100-PG509-200": 600e9,
    "AMD Instinct MI300X": 896e9,
    "AMD Instinct MI355X": 1071e9,
    "h100": 900e9,
    "A100": 600e9,
}
UNKNOWN_ON_PURPOSE = {
    "",  # a driver that gave no name (an MI300X, by its compute units)
    "AMD Radeon Graphics",  # what ROCm calls any device that it has no name for (here an MI250)
}


@pytest.fixture(autouse=True)
def _no_file_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OWN_FILE, raising=False)


def numbers(entry: object, place: str = "") -> Iterator[tuple[str, Number]]:
    """All numbers within an entry, with the field that each stands in."""
    if isinstance(entry, Number):
        yield place, entry
    elif isinstance(entry, msgspec.Struct):
        for field in entry.__struct_fields__:
            yield from numbers(getattr(entry, field), f"{place}.{field}")
    elif isinstance(entry, dict):
        for key, value in entry.items():
            yield from numbers(value, f"{place}.{key}")
    elif isinstance(entry, tuple):
        for each in entry:
            yield from numbers(each, place)


ALL_NUMBERS = [
    (f"{entry.name}{place}", number)
    for entry in (*catalog().accelerators, *catalog().links)
    for place, number in numbers(entry)
]


@pytest.mark.parametrize(("name", "bytes_per_s"), PROFILER_NAMES.items())
def test_a_name_of_the_profiler_has_the_vendors_rate(name: str, bytes_per_s: float) -> None:
    device = require(name)
    assert device.scale_up is not None
    assert device.scale_up.bytes_per_s.value == bytes_per_s
    assert device.scale_up_one_way_bytes_per_s == bytes_per_s / 2


@pytest.mark.parametrize(
    ("name", "precision", "flops_per_s"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.5e12),
        ("NVIDIA H100 80GB HBM3", "c10::Float8_e4m3fn", 1979e12),
        ("NVIDIA H100 80GB HBM3", "float", 67e12),
        ("NVIDIA H100 80GB HBM3", "double", 67e12),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156e12),
        ("NVIDIA A100-SXM4-80GB", "fp8", None),
        ("Tesla V100-SXM2-16GB", "c10::Half", 125e12),
        ("Tesla V100-SXM2-16GB", "bf16", None),
        ("Tesla V100-SXM2-16GB", "fp32", 15.7e12),
        ("AMD Instinct MI300X", "fp32", 163.4e12),
        ("AMD Instinct MI300X", "torch.bfloat16", 1307.4e12),
        ("AMD Instinct MI300X", "complex", None),
    ],
)
def test_a_peak_is_dense_and_of_the_element_type(
    name: str, precision: str, flops_per_s: float | None
) -> None:
    assert require(name).peak_flops_per_s(precision) == flops_per_s


def test_training_uses_bf16_and_fp16_where_there_is_no_bf16() -> None:
    assert require("H100").usual_precision == Precision.BF16
    assert require("V100").usual_precision == Precision.FP16
    assert require("P100-PCIE").usual_precision == Precision.FP32


@pytest.mark.parametrize(
    ("recorded", "precision"),
    [
        ("c10::BFloat16", Precision.BF16),
        ("c10::Float8_e5m2", Precision.FP8),
        ("c10::Float4_e2m1fn_x2", Precision.FP4),
        ("signed char", Precision.INT8),
        ("long int", None),
        ("unknown", None),
    ],
)
def test_element_types_are_read_as_profilers_write_them(
    recorded: str, precision: Precision | None
) -> None:
    assert precision_of(recorded) is precision


def test_cards_without_a_link_have_no_rate() -> None:
    for name in ("NVIDIA L4", "NVIDIA L40S"):
        assert require(name).scale_up is None
        assert require(name).scale_up_one_way_bytes_per_s is None


def test_a_bridge_joins_fewer_devices_than_a_node_holds_and_a_rack_more() -> None:
    bridged, rack = require("NVIDIA H100 PCIe").scale_up, require("NVIDIA GB200").scale_up
    assert bridged is not None
    assert rack is not None
    assert (bridged.joins, bridged.shape) == (2, Shape.PAIRS)
    assert (rack.joins, rack.shape) == (72, Shape.SWITCH)


def test_in_a_mesh_one_peer_has_a_seventh() -> None:
    for name in ("MI300X", "MI325X", "MI355X"):
        mesh = require(name).scale_up
        assert mesh is not None
        assert mesh.peer_one_way_bytes_per_s is not None
        assert mesh.peer_one_way_bytes_per_s.value * 7 * 2 == mesh.bytes_per_s.value


def test_case_and_maker_do_not_matter() -> None:
    assert find("nvidia h100 80gb hbm3") is find("H100-80GB-HBM3") is find("H100")
    assert find("MI300X") is find("AMD Instinct MI300X VF")


def test_plain_nvidia_h100_is_the_card_of_96_gb() -> None:
    """Public traces of that name record 102,085,492,736 bytes of memory."""
    plain, usual = require("NVIDIA H100"), require("H100")
    assert plain.memory_bytes is not None
    assert 0.98 < 102_085_492_736 / plain.memory_bytes.value < 1
    assert plain is not usual


def test_an_unknown_device_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ScenarioError, match="H10O") as caught:
        require("H10O")
    assert "H100" in caught.value.hint
    assert caught.value.exit_code == 4
    assert find("H10O") is None


def test_an_unknown_link_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ScenarioError, match="Infiniband NDX") as caught:
        link("Infiniband NDX")
    assert "InfiniBand NDR" in caught.value.hint
    assert find_link("NDX400G?") is None


def test_links_are_found_by_short_names() -> None:
    assert link("ndr") is link("InfiniBand NDR") is link("IB-NDR")
    assert link("PCIe5 x16") is link("pcie gen5")


def test_every_number_has_a_page_a_date_and_lies_in_its_range() -> None:
    assert len(ALL_NUMBERS) > 600
    bad = [
        place
        for place, number in ALL_NUMBERS
        if not number.source.startswith("https://")
        or not number.date.startswith("20")
        or not 0 < number.lowest <= number.value <= number.highest
    ]
    assert bad == []


def test_both_ways_are_twice_one_way() -> None:
    for kind in catalog().links:
        one, both = kind.one_way_bytes_per_s, kind.both_ways_bytes_per_s
        assert (one is None) == (both is None)
        if one is not None and both is not None:
            assert both.value == 2 * one.value


def test_narrower_types_are_not_slower_but_where_the_vendor_gave_them_up() -> None:
    order = (Precision.TF32, Precision.BF16, Precision.FP8, Precision.FP4)
    for device in catalog().accelerators:
        peaks = [
            device.matrix_flops_per_s[each].value
            for each in order
            if each in device.matrix_flops_per_s
        ]
        assert peaks == sorted(peaks), device.name


@pytest.mark.parametrize(
    "name", ["V100-SXM2", "A100", "H100", "H200", "MI300X", "MI355X", "MI250X", "L4", "RTX 4090"]
)
def test_the_peak_follows_from_units_and_clock(name: str) -> None:
    """FLOPs per unit and cycle are those of the architecture's matrix units in 16 bits."""
    per_cycle = {"volta": 1024, "ampere": 2048, "hopper": 4096, "ada": 1024}
    per_cycle |= {"cdna2": 1024, "cdna3": 2048, "cdna4": 4096}
    device = require(name)
    assert device.sms is not None
    assert device.clock_hz is not None
    cycle = per_cycle[device.architecture] * (0.5 if "RTX" in device.name else 1)
    implied = device.sms.value * device.clock_hz.value * cycle
    assert device.peak_flops_per_s("fp16") == pytest.approx(implied, rel=0.01)


OWN = """
accelerators:
  - name: Yardstick 1
    aliases: [NVIDIA Yardstick]
    architecture: hopper
    matrix_flops_per_s:
      bf16: {value: 989e12, source: our measurement}
    memory_bytes: {value: 85_899_345_920, source: data sheet}
    scale_up: {link: wire, bytes_per_s: {value: 100e9, source: data sheet}}
  - name: NVIDIA H100 80GB HBM3
    aliases: [our H100]
    memory_bytes_per_s: {value: 3.2e+12, source: measured}
    scale_up: {joins: 4}
links:
  - name: our fabric
    scope: node
    one_way_bytes_per_s: {value: 25e9, source: iperf}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_an_own_file_adds_devices_and_links(own: Path) -> None:
    with extended_by(own):
        assert require("yardstick").peak_flops_per_s("bf16") == 989e12
        assert link("Our Fabric").scope == "node"
        assert len(catalog().accelerators) > 30
    assert find("yardstick") is None


def test_an_own_file_changes_what_it_names_and_nothing_else(own: Path) -> None:
    shipped = require("H100")
    with extended_by(own):
        changed = require("our H100")
        assert require("H100") is changed
    assert changed.memory_bytes_per_s == Number(value=3.2e12, source="measured")
    assert changed.scale_up is not None
    assert shipped.scale_up is not None
    assert changed.scale_up.joins == 4
    assert changed.scale_up.bytes_per_s == shipped.scale_up.bytes_per_s
    assert changed.matrix_flops_per_s == shipped.matrix_flops_per_s
    assert changed.name == shipped.name
    assert require("H100") is shipped


def test_two_names_of_one_device_change_it_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "accelerators:\n"
        "  - {name: H100, tdp_w: {value: 650, source: s}}\n"
        "  - {name: NVIDIA H100 80GB HBM3, clock_hz: {value: 1.7e+9, source: s}}\n"
    )
    with extended_by(path):
        changed = require("H100")
    assert changed.tdp_w is not None
    assert changed.clock_hz is not None
    assert (changed.tdp_w.value, changed.clock_hz.value) == (650, 1.7e9)


def test_the_variable_does_the_same(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_FILE, str(own))
    assert find("yardstick") is not None


def test_a_file_that_changed_is_read_again(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_FILE, str(own))
    assert find("yardstick 2") is None
    own.write_text(OWN.replace("Yardstick 1", "Yardstick 2, longer"), encoding="utf-8")
    assert find("yardstick 2, longer") is not None


WRONG = {
    "accelerators: [{name: X, architecture: y, memry_bytes: 1}]": (
        "at `$.accelerators[0]`: Object contains unknown field `memry_bytes`",
        "memory_bytes",
    ),
    "accelerators: [{name: X, architecture: y, memory_bytes: {value: much, source: s}}]": (
        "at `$.accelerators[0].memory_bytes.value`: Expected `float`",
        "docs/hardware.md",
    ),
    "accelerators: [{name: H100, tdp_w: {value: 5, low: 6, source: s}}]": (
        "at `$.accelerators[0].tdp_w`: `value` lies outside of `low` and `high`",
        "docs/hardware.md",
    ),
    "accelerators: [{name: H100, tdp_w: {low: 5}}]": (
        "at `$.accelerators[0].tdp_w`: Object missing required field `value`",
        "docs/hardware.md",
    ),
    "accelerators: [{name: H100, tdp_w: {value: -5, source: s}}]": (
        "at `$.accelerators[0].tdp_w`: a number above zero",
        "docs/hardware.md",
    ),
    "accelerators: [{name: X, architecture: y, aliases: [H100]}]": (
        "`H100` is a name of `H100 SXM5 80 GB` and of `X`",
        "unique",
    ),
    "links: [{name: X}]": ("at `$.links[0]`: Object missing required field `scope`", ""),
    "links: [{name: X, scope: gpu}, {name: X, scope: node}]": (
        "at `$.links[1].name`: `X` stands twice",
        "one entry",
    ),
    "links: [{scope: node}]": ("at `$.links[0]`: no `name`", "- name:"),
    "links: {a: 1}": ("at `$.links`: no list", "- name:"),
    "gpus: []": ("at `$`: unknown field `gpus`", "accelerators"),
    "- H100": ("no catalog", "accelerators:"),
    "a: [": ("no YAML", ""),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items())
def test_what_is_wrong_with_an_own_file_is_told_with_its_place(
    tmp_path: Path, text: str, expected: tuple[str, str]
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught, extended_by(path):
        pass
    message, hint = expected
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_an_own_file_that_is_not_there_is_a_wrong_command_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError), extended_by(tmp_path / "absent.yaml"):
        pass


MANIFEST = SHARED / "traces" / "MANIFEST.tsv"


@pytest.mark.skipif(not MANIFEST.exists(), reason="the public traces are not here")
def test_every_device_of_the_public_traces_is_known_or_unknown_on_purpose() -> None:
    with MANIFEST.open(encoding="utf-8") as rows:
        names = {row["gpu"] for row in csv.DictReader(rows, delimiter="\t")}
    assert {name for name in names if find(name) is None} == names & UNKNOWN_ON_PURPOSE
    assert len(names) > 10


FACTS = SHARED / "facts"
needs_facts = pytest.mark.skipif(not FACTS.is_dir(), reason="the tables of facts are not here")
NAMES_OF_FACTS = {
    "V100-SXM2-16/32GB": "V100-SXM2",
    "V100-PCIe": "V100-PCIE",
    "A100-SXM4-40GB": "A100-SXM4-40GB",
    "B300-SXM": "B300",
    "GH200-96GB": "GH200",
    "RTX 4090-24GB": "RTX 4090",
    "RTX 5090-32GB": "RTX 5090",
    "L4-24GB": "L4",
    "L40S-48GB": "L40S",
    "H20-96GB": "H20",
    "H100-PCIe-80GB": "H100-PCIE",
    "H100-SXM5-80GB": "H100-SXM5",
    "H100-NVL-94GB": "H100-NVL",
    "H200-SXM5-141GB": "H200",
    "H200-NVL-141GB": "H200-NVL",
    "H800-SXM5-80GB": "H800",
    "A800-SXM4-80GB": "A800",
    "A100-PCIe-40GB": "A100-PCIE-40GB",
    "A100-PCIe-80GB": "A100-PCIE-80GB",
    "B200-SXM-180GB": "B200",
    "GB200-186GB": "GB200",
    "MI250X (both GCDs)": "MI250X",
    "MI300X-192GB": "MI300X",
    "MI325X-256GB": "MI325X",
    "MI355X-288GB": "MI355X",
    "TPU v6e (Trillium)": "TPU v6e",
}
"""Names in the table of facts that the catalog has by another."""
LINKS_OF_FACTS = {
    "AWS EFA v1 p4d/p4de": "EFA v1",
    "AWS EFA v2 p5/p5e": "EFA v2",
    "AWS EFA v3 p5en/trn2": "EFA v3",
    "NVLink5 (B200/GB200/B300)": "NVLink5",
}


def _facts(name: str) -> list[dict[str, str]]:
    with (FACTS / name).open(encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


def _told(device: Accelerator) -> dict[str, float | None]:
    """Figures of a device under the columns of the table of facts, of a whole package."""
    dies = device.devices_per_package

    def peak(table: dict[Precision, Number], precision: Precision) -> float | None:
        return table[precision].value * dies / 1e12 if precision in table else None

    def of(number: Number | None, unit: float, each: int = 1) -> float | None:
        return None if number is None else number.value * each / unit

    matrix, vector, scale_up = device.matrix_flops_per_s, device.vector_flops_per_s, device.scale_up
    peer = scale_up.peer_one_way_bytes_per_s if scale_up else None
    return {
        "fp64_vec": peak(vector, Precision.FP64),
        "fp64_mat": peak(matrix, Precision.FP64),
        "fp32_vec": peak(vector, Precision.FP32),
        "tf32": peak(matrix, Precision.TF32),
        "bf16_fp16": peak(matrix, device.usual_precision or Precision.BF16),
        "fp8": peak(matrix, Precision.FP8),
        "int8": peak(matrix, Precision.INT8),
        "fp4": peak(matrix, Precision.FP4),
        "mem_GB": of(device.memory_bytes, GIB, dies),
        "mem_GBps": of(device.memory_bytes_per_s, 1e9, dies),
        "L2_MB": of(device.l2_bytes, MIB, dies),
        "SM_or_CU": of(device.sms, 1, dies),
        "boost_MHz": of(device.clock_hz, 1e6),
        "scaleup_uni_GBps": of(scale_up.bytes_per_s if scale_up else None, 2e9),
        "scaleup_bidir_GBps": of(scale_up.bytes_per_s if scale_up else None, 1e9),
        "p2p_uni_GBps": of(peer, 1e9),
        "pcie_gen": float(device.pcie.generation) if device.pcie else None,
        "pcie_uni_GBps": of(device.pcie.one_way_bytes_per_s if device.pcie else None, 1e9),
        "TDP_W": of(device.tdp_w, 1),
    }


@needs_facts
def test_figures_of_accelerators_are_those_of_the_facts() -> None:
    compared = 0
    for row in _facts("hardware_catalog.csv"):
        name = row["accelerator"]
        told = _told(require(NAMES_OF_FACTS.get(name, name)))
        for column, figure in told.items():
            text = row[column].removesuffix(" (SRAM)").partition("/")[0]
            if not text.replace(".", "").isdigit():  # a module of another kind: 8 NeuronCore
                assert figure is None, (name, column)
                continue
            assert figure == pytest.approx(float(text)), (name, column)
            compared += 1
    assert compared > 400


@needs_facts
def test_figures_of_links_are_those_of_the_facts() -> None:
    compared = 0
    for row in _facts("network_catalog.csv"):
        if "/" in row["per_direction_GBps"]:  # several links in one row
            continue
        name = LINKS_OF_FACTS.get(row["name"], row["name"])
        kind = find_link(name) or link(name.partition(" (")[0])
        for column, number in (
            ("per_direction_GBps", kind.one_way_bytes_per_s),
            ("bidirectional_GBps", kind.both_ways_bytes_per_s),
        ):
            if not row["per_direction_GBps"]:
                assert number is None, row["name"]
            elif row[column] and "-" not in row[column]:
                assert number is not None, row["name"]
                assert number.value / 1e9 == float(row[column]), row["name"]
                compared += 1
        latency = row["base_latency_us"]
        if latency.replace(".", "").isdigit():
            assert kind.latency_ns is not None, row["name"]
            assert kind.latency_ns.value == float(latency) * 1e3, row["name"]
            compared += 1
    assert compared > 42


def test_every_field_of_a_link_is_of_a_struct_that_forbids_unknown_ones() -> None:
    for kind in (Accelerator, Link, Number):
        assert kind.__struct_config__.forbid_unknown_fields


FIELDS = st.sampled_from(["name", "aliases", "peaks", "memory", "link", "note"])
LEAVES = st.integers(1, 9) | st.just("x")
NUMBERS = st.fixed_dictionaries({"value": st.integers(1, 9)}, optional={"low": st.just(1)})
GROUPS = st.dictionaries(st.sampled_from(["bf16", "fp8"]), NUMBERS, max_size=2)
ENTRIES = st.dictionaries(FIELDS.filter("aliases".__ne__), LEAVES | NUMBERS | GROUPS)


@given(ENTRIES)
def test_nothing_laid_over_changes_nothing_and_the_same_twice_neither(
    entry: dict[str, object],
) -> None:
    assert laid_over(entry, {}) == laid_over(entry, entry) == laid_over({}, entry) == entry


@given(ENTRIES, ENTRIES)
def test_what_is_given_wins_and_the_rest_stays(
    base: dict[str, object], own: dict[str, object]
) -> None:
    result = laid_over(base, own)
    assert set(result) == set(base) | set(own)
    assert laid_over(result, own) == result
    for field, value in own.items():
        groups = [each for each in (value, base.get(field)) if isinstance(each, dict)]
        if len(groups) == 2 and not any("value" in each for each in groups):
            assert value.items() <= dict(result[field]).items()
        else:
            assert result[field] == value
    assert all(result[field] == base[field] for field in set(base) - set(own))
