"""What of a trace is private, what is not, and that nothing else changes."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.redact import Redactor

REDACTOR = Redactor(b"a key for the tests")
PSEUDONYM = re.compile(r"(dir|file|host|ip|user|mail|job|secret)~[0-9a-f]{8}")


def shape(text: str) -> str:
    """The text with `dir~`, `host~`... in place of every pseudonym."""
    return PSEUDONYM.sub(r"\1~", text)


PUBLIC_NAMES = [
    "aten::div",
    "aten::mean.out",
    "c10d::allreduce_",
    "nn.Module: Foo_0",
    "autograd::engine::evaluate_function: DivBackward0",
    "Torch-Compiled Region: 5/1",
    "## Call CompiledFxGraph fks6dhtgtq4rcqdyky2cco2qljjxobhyoqhqslb64ligeyxob4x5 ##",
    "Memcpy HtoD (Pageable -> Device)",
    "N/A",
    "tokens / s",
    "memory bandwidth (GB/s)",
    "model/encoder/layer_3/attention",
    "void ns::operator/<float, float>(ns::Half const&, float) /*inline*/",
    "auto a::operator/(float x, float y)::{lambda(float)#1}::operator()() const",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x80x256_MI16x16x1_SN_LDSB1",
    "memcpy@@GLIBC_2.14",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "<built-in method run_backward of torch._C._EngineBase object at 0x7f126c1a9b30>",
    "torch/nn/modules/module.py(1553): _call_impl",
    "train_ddp.py(88): main",
    "<frozen importlib._bootstrap>(241): _call_with_frames_removed",
    "thread 49141 (pt_autograd_0)",
    "host_to_device",
    "threading.local",
]


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_names_of_kernels_and_ops_stay(name: str) -> None:
    assert REDACTOR.redact_name(name) == name
    text = json.dumps({"name": name})
    assert REDACTOR.redact_json(text) == text


@pytest.mark.parametrize(
    ("name", "redacted"),
    [
        ("/home/alice/work/secretproj/train.py(12): main", "dir~/train.py(12): main"),
        ("secretproj/model/layers.py(7): forward", "dir~/layers.py(7): forward"),
        (
            "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py(1553): _call_impl",
            "torch/nn/modules/module.py(1553): _call_impl",
        ),
        (
            "/home/alice/venv/lib/python3.11/site-packages/acme/core.py(3): run",
            "site-packages/acme/core.py(3): run",
        ),
        (
            "/usr/lib/python3/dist-packages/numpy/core/x.py(1): f",
            "numpy/core/x.py(1): f",
        ),
        ("/home/alice/.pyenv/lib/python3.12/asyncio/run.py(9): f", "asyncio/run.py(9): f"),
        ("/opt/conda/lib/python3.11/contextlib.py(81): inner", "contextlib.py(81): inner"),
        ("/home/alice/src/vllm/vllm/v1/engine.py(5): step", "vllm/v1/engine.py(5): step"),
        ("/home/alice/pytorch/torch/nn/x.py(5): step", "torch/nn/x.py(5): step"),
        ("/home/alice/torch/acme/x.py(5): step", "dir~/x.py(5): step"),
        (r"C:\Users\Alice Smith\proj\train.py(3): main", "dir~/train.py(3): main"),
        (
            r"C:\Users\al\anaconda3\Lib\site-packages\torch\x.py(3): main",
            "torch/x.py(3): main",
        ),
        ("/x/site-packages/../../home/alice/p.py(3): main", "dir~/p.py(3): main"),
        ("python /home/alice/train.py --lr 3", "python dir~/train.py --lr 3"),
        (
            "<eval_with_key>.2 from /home/al/m.py:5 in wrap",
            "<eval_with_key>.2 from dir~/m.py:5 in wrap",
        ),
        ("worker 10.1.2.3:29500", "worker ip~:29500"),
        ("rpc devgpu109.atn2.facebook.com", "rpc host~"),
        ("mail alice@acme.com", "mail mail~"),
        ("~/work/x.py(3): f", "dir~/x.py(3): f"),
        ("gcc -I/home/al/inc", "gcc -Idir~"),
        ("ssh al@10.0.0.5", "ssh mail~"),
        ("/home/al/(acme)/data/x.bin", "dir~/file~"),
        ("load s3://acme-bucket/run7/data.bin", "load s3://dir~/file~"),
    ],
)
def test_private_parts_of_names_become_pseudonyms(name: str, redacted: str) -> None:
    assert shape(REDACTOR.redact_name(name)) == redacted


@pytest.mark.parametrize(
    ("value", "redacted"),
    [
        ({"hostname": "node12", "rank": 3}, {"hostname": "host~", "rank": 3}),
        ({"HOSTNAME": "a1b2", "USER": "alice"}, {"HOSTNAME": "host~", "USER": "user~"}),
        ({"hosts": ["n1", "n2"], "x": "n1"}, {"hosts": ["host~", "host~"], "x": "n1"}),
        ({"user": {"name": "alice"}}, {"user": {"name": "user~"}}),
        ({"tw_job": "acme-run", "trace_id": "0B57F3"}, {"tw_job": "job~", "trace_id": "job~"}),
        ({"HF_TOKEN": "x", "api_key": "y"}, {"HF_TOKEN": "secret~", "api_key": "secret~"}),
        ({"note": "hf_" + "aB3" * 10}, {"note": "secret~"}),
        ({"cwd": "runs/alice", "PATH": "/a/b:/c/d"}, {"cwd": "dir~", "PATH": "dir~:dir~"}),
        (
            {"traceName": "./logs/10-116-218-90_159.1758015043384.pt.trace.json"},
            {"traceName": "dir~/file~.pt.trace.json"},
        ),
        ({"file": "/data/acme/rank3.json.gz"}, {"file": "dir~/rank3.json.gz"}),
        ({"a": "host=n12 user: 'bob'"}, {"a": "host=host~ user: 'user~'"}),
        ({"a": "alice@gpu01:/data/x"}, {"a": "mail~"}),
        ({"a": "HF_TOKEN=abc num_token=128"}, {"a": "HF_TOKEN=secret~ num_token=128"}),
        ({"a": "fe80::1ff:fe23:4567:890a"}, {"a": "ip~"}),
        ({"a": "tcp://10.0.0.1:443"}, {"a": "tcp://ip~:443"}),
        ({"a": "file:///home/al/x.py"}, {"a": "file://dir~/x.py"}),
        ({"a": r"\\server\share\al"}, {"a": "dir~"}),
        ({"a": '{"user": "alice", "n": 1}'}, {"a": '{"user": "user~", "n": 1}'}),
        ({"/home/al/x.yaml": 1}, {"dir~/file~.yaml": 1}),
        (
            {
                "Call stack": "/home/al/a.py(1): f;/home/al/b.py(2): g\n"
                "/x/site-packages/torch/t.py(3): h"
            },
            {"Call stack": "dir~/a.py(1): f;dir~/b.py(2): g\ntorch/t.py(3): h"},
        ),
        ({"master_addr": "localhost"}, {"master_addr": "localhost"}),
        ({"NCCL_VERSION": "2.25.1.4"}, {"NCCL_VERSION": "2.25.1.4"}),
        ({"pip_packages": ["a==1.2.3.4"]}, {"pip_packages": ["a==1.2.3.4"]}),
        ({"job_index": "10", "user_id": ""}, {"job_index": "10", "user_id": ""}),
        ({"Addr": "0x7f00", "Input type": ["float", "N/A"]},) * 2,
        ({"host_overhead": 5, "path": None}, {"host_overhead": 5, "path": None}),
    ],
)
def test_json_is_redacted_by_key_and_by_look(value: object, redacted: object) -> None:
    assert json.loads(shape(REDACTOR.redact_json(json.dumps(value)))) == redacted


def test_numbers_and_layout_stay_as_written() -> None:
    text = '{ "ts":1e5, "n": 12345678901234567890.10,"host" : "n1","x":[NaN, -0]}'
    assert shape(REDACTOR.redact_json(text)) == text.replace("n1", "host~")


def test_one_word_has_one_pseudonym_within_a_run_and_another_in_the_next() -> None:
    text = '{"hostname": "node12", "node": "node12"}'
    one, other = (match[0] for match in PSEUDONYM.finditer(REDACTOR.redact_json(text)))
    assert one == other
    assert Redactor.fresh().redact_json(text) != Redactor.fresh().redact_json(text)


def test_files_of_one_folder_stay_together() -> None:
    one, two, other = (
        REDACTOR.redact_path(path).partition("/")[0]
        for path in ("/home/al/a.py", "/home/al/b.py", "/home/bo/a.py")
    )
    assert one == two != other


def test_text_with_nothing_private_is_the_very_same_object() -> None:
    text = '{"External id": 3, "Input type": ["float", ""]}'
    REDACTOR.redact_json(text)
    assert REDACTOR.redact_json(text) is text


def test_an_escape_that_is_no_escape_does_not_hide_a_path() -> None:
    assert "alice" not in REDACTOR.redact_json(r'{"a": "D:\Users\alice\x.py"}')


def test_text_cut_in_a_string_does_not_hide_a_path() -> None:
    assert "alice" not in REDACTOR.redact_json('{"a": 1, "b": "/home/alice/x')


WORDS = (
    "/home/alice/x.py(3): f",
    "/home/alice",
    "C:\\Users\\al",
    "\\\\srv\\d",
    "s3://b/k",
    "https://h.io",
    "~/x",
    "./y",
    "a/b.py",
    "10.0.0.1",
    "node1.acme.com",
    "al@acme.com",
    "al@n1",
    "host=",
    "user: ",
    "token=",
    "fe80::1",
    "site-packages/",
    "torch/",
    "hf_aaaaaaaaaaaaaaaaaaaaaaaa",
    "é",
    "dir~",
    "0123abcd",
    "lib/python3.11/",
    "Alice Smith",
    "rank3",
    ".json.gz",
    "json",
    "::",
    "://",
    "..",
)
FRAGMENTS = st.sampled_from([*WORDS, *"/\\ :;,\n\"'.=@~-()?#a"])
TEXTS = st.lists(FRAGMENTS | st.text(max_size=4), max_size=8).map("".join)
KEYS = TEXTS | st.sampled_from(
    ["host", "user", "name", "path", "token", "job", "node", "version", "kernel", "email", "cwd"]
)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()
VALUES = st.recursive(
    NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(TEXTS)
def test_redacted_names_and_paths_stay_as_they_are(text: str) -> None:
    for redact in (REDACTOR.redact_name, REDACTOR.redact_path):
        once = redact(text)
        assert redact(once) == once


def unescaped(value: object) -> str:
    """JSON with letters of all languages as they are."""
    return json.dumps(value, ensure_ascii=False)


def same_but_for_strings(value: object, redacted: object) -> bool:
    """Whether both have the same shape and numbers."""
    if isinstance(value, dict) and isinstance(redacted, dict):
        return len(value) == len(redacted) and all(
            map(same_but_for_strings, value.values(), redacted.values())
        )
    if isinstance(value, list) and isinstance(redacted, list):
        return len(value) == len(redacted) and all(map(same_but_for_strings, value, redacted))
    return type(value) is type(redacted) and (isinstance(value, str) or value == redacted)


@given(st.one_of(VALUES.map(json.dumps), VALUES.map(unescaped)))
def test_json_stays_json_with_its_numbers_and_is_redacted_once(text: str) -> None:
    value = json.loads(text)
    once = REDACTOR.redact_json(text)
    assert same_but_for_strings(value, json.loads(once))
    assert REDACTOR.redact_json(once) == once


@given(TEXTS)
def test_text_that_is_no_json_is_redacted_once(text: str) -> None:
    once = REDACTOR.redact_json(text)
    assert REDACTOR.redact_json(once) == once


@given(
    st.sampled_from(
        ["/home/zaphod/a/b", "C:\\Users\\zaphod\\b", "zaphod@acme.com", "s3://zaphod/x"]
    ),
    st.sampled_from([" ", '"', "(", ", ", "=", "\n", "; "]),
)
def test_a_private_word_is_found_between_other_words(word: str, between: str) -> None:
    text = f"some{between}{word}{between}words"
    assert "zaphod" not in REDACTOR.redact_name(text)
    assert "zaphod" not in REDACTOR.redact_json(json.dumps({"x": text}))


SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").rglob("*.json.gz"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_ops_and_kernels_of_recorded_traces_keep_their_names(path: Path) -> None:
    trace = json.loads(gzip.decompress(path.read_bytes()))
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    names = {
        event["name"]
        for event in events
        if str(event.get("cat")).lower() in {"kernel", "cpu_op", "operator", "gpu_memcpy"}
    }
    assert {name for name in names if REDACTOR.redact_name(name) != name} == set()
