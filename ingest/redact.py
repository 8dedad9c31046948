"""Private words out of trace text: paths, hosts, users, addresses and keys become pseudonyms."""

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from typing import Final

_KEY_BYTES: Final = 16
_MEMO_LIMIT: Final = 1 << 17
_PASSES: Final = 8
"""A replacement may bare a further word (`a@b.com/home/x`)."""


class Kind(StrEnum):
    """What a private word is; stands before the mark in its pseudonym."""

    DIRECTORY = "dir"
    FILE = "file"
    HOST = "host"
    ADDRESS = "ip"
    USER = "user"
    MAIL = "mail"
    JOB = "job"
    SECRET = "secret"


_MARK: Final = "~"
_PSEUDONYM: Final = re.compile(rf"(?:{'|'.join(Kind)}){_MARK}[0-9a-f]{{8}}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What everybody may know -------------------------------------------------------------------------

_PUBLIC_PACKAGES: Final = _words(
    """
    PIL accelerate aiter apex apex_C asyncio bitsandbytes causal_conv1d collections colossalai
    concurrent ctypes cupy cutlass datasets deepspeed diffusers einops email encodings fairscale
    fbgemm_gpu fla flash_attn flash_attn_interface flashinfer fsspec functorch hta html http
    huggingface_hub importlib jax jaxlib joblib json kernels lightllm lightning lightning_fabric
    liger_kernel logging mamba_ssm matplotlib megatron megablocks mmcv msgspec multiprocessing nemo
    networkx numba numpy onnx onnxruntime optimum pandas peft polars pyarrow pydantic
    pytorch_lightning ray re safetensors scipy sentencepiece sgl_kernel sglang sklearn sqlite3
    starlette sympy tensorboard tensorrt tensorrt_llm tensordict threading tilelang timm tokenizers
    torch torch_geometric torch_xla torchao torchaudio torchdata torchgen torchmetrics torchrec
    torchtext torchtitan torchtune torchvision tornado tqdm transformer_engine transformers triton
    trl unittest urllib urllib3 uvicorn uvloop vllm wandb xformers xfuser xml zmq zoneinfo
    """
)
"""Top folders of import paths that tell nothing about who ran them."""

_CHECKOUTS: Final = {"torch": "pytorch", "xfuser": "xDiT", "flash_attn": "flash-attention"}
"""Names of source trees that differ from the package inside."""

_SOURCE_SUFFIXES: Final = (".py", ".pyx", ".pyi", ".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp")
_PUBLIC_VALUES: Final = _words(
    "true false none null auto unknown undefined default localhost n/a python prod test"
)
_LOCAL_ADDRESSES: Final = frozenset({"127.0.0.1", "0.0.0.0", "255.255.255.255"})
_PLAIN: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+|\W*")
"""Numbers, addresses of memory and bare punctuation name nobody."""

# Keys --------------------------------------------------------------------------------------------

_KEY_WORDS: Final = {
    word: kind
    for kind, words in (
        (
            Kind.SECRET,
            "token secret password passwd credential credentials apikey auth authorization cookie "
            "api.key access.key private.key secret.key ssh.key",
        ),
        (Kind.MAIL, "email mail"),
        (
            Kind.USER,
            "user username users login owner author logname started.by submitted.by",
        ),
        (
            Kind.HOST,
            "host hostname hostnames hosts nodename nodelist fqdn cluster datacenter pod namespace "
            "master.addr ip.address node.name node.list endpoint",
        ),
        (
            Kind.JOB,
            "job jobid jobname project trace.id run.id run.name experiment workspace entrypoint",
        ),
        (
            Kind.DIRECTORY,
            "path cwd pwd dir directory folder home file filename argv cmdline command",
        ),
    )
    for word in words.split()
}
"""Words of a key, or two in a row, that make its whole value private."""

_ORDER: Final = {kind: place for place, kind in enumerate(dict.fromkeys(_KEY_WORDS.values()))}
"""Of several kinds the first decides: `user_token` is a secret, `user_path` a user."""

_LONGEST_KEY: Final = 64
_WHOLE_KEYS: Final = {"node": Kind.HOST, "tracename": Kind.DIRECTORY}
_VERSION_WORDS: Final = frozenset({"version", "versions", "package", "packages", "driver"})
_KERNEL_KEYS: Final = frozenset({"kernel", "kernel_name", "Collective name", "Input type"})
_KEY_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NAMELESS: Final = frozenset({"name", "names", "value", "id"})
"""Keys that say nothing: inside an object under a private key they are as private."""

# Text --------------------------------------------------------------------------------------------

_TOKENS: Final = (
    r"hf_[A-Za-z0-9]{20,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|Bearer [\w.~+/-]{8,}=*"
)
_DOMAINS = r"com|edu|gov|mil|internal|intranet|lan|corp"
"""Ends of host names that are ends of nothing else in a trace."""
_DEEP_DOMAINS = rf"{_DOMAINS}|net|org|io|ai|dev|cloud|local|cluster|svc|de|fr|uk|cn|jp|kr|ch|eu|us"
"""The same where a label before them has a digit or a hyphen, and there are three at least."""

_SEGMENT = r"""(?:[^\s/\\"'`<>|;,:()\[\]{}*?]|\([\w .-]*\)(?=[/\\]))+"""
_SPACED = r"""\ [^\s/\\"'`<>|;,:()\[\]{}*?=-]+"""
_TAIL = (
    rf"(?:[/\\]+{_SEGMENT})*[/\\]*"
    rf"(?:{_SPACED}(?:[/\\]+{_SEGMENT})+[/\\]*)*"
)
"""Further folders of a path; one may hold a space where another separator follows."""

_BASE_RULES: Final = (
    ("secret", rf"\b(?:{_TOKENS})"),
    ("uri", r"""\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s"'`<>|;,()\[\]{}]+"""),
    (
        "frame",
        r"(?:^|(?<=[;\n]))[ \t]*(?:(?:[~/]|[A-Za-z]:[\\/]|\\\\)[^;\n]*?|[^\s;()<>]*?)\.py"
        r"(?=\(\d+\): )",
    ),
    (
        "mail",
        r"(?<![\w@.+-])[\w.+-]+@(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|(?:\d{1,3}\.){3}\d{1,3})\b(?::[\w.~-]*/[\w./~-]*)?",
    ),
    ("windows", rf"(?:(?<![\w~])[A-Za-z]:[\\/]|(?<![\w\\:])\\\\)+{_SEGMENT}{_TAIL}"),
    (
        "posix",
        rf"(?<![\w./~\\)\]>}}*&-])(?:~[\w.-]*/+{_SEGMENT}|\.{{1,2}}/+{_SEGMENT}"
        rf"|/+{_SEGMENT}/+{_SEGMENT}|/(?:root|home|Users)\b){_TAIL}"
        rf"|(?:\b|/+)(?:home|Users)[/\\]+{_SEGMENT}{_TAIL}",
    ),
    ("source", r"(?<![\w./~\\@+-])(?:[\w.@+-]+/+)+[\w.-]+\.py\b"),
    (
        "host",
        rf"(?<![\w.:/@~-])(?:(?:[A-Za-z0-9-]+\.)+(?:{_DOMAINS})"
        rf"|(?=[\w.]*-|[A-Za-z.]*\d)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\.(?:{_DEEP_DOMAINS}))"
        r"\b(?![\w.(-])(?:/[\w./~-]*)?",
    ),
)
_NUMBER_RULES: Final = (
    (
        "address",
        r"(?<![\w.])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|[-+]\d)"
        r"|\bip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}\b",
    ),
)
_VALUE_RULES: Final = (
    (
        "six",
        r"(?<![\w:])(?=\w*\d)[0-9a-fA-F]{4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])"
        r"|(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])",
    ),
    (
        "account",
        r"(?<![\w@.+~-])[A-Za-z_][\w.+-]*@[A-Za-z][\w.-]*(?![\w.~-])(?::[\w./~-]*/[\w./~-]*)?",
    ),
    (
        "said",
        r"(?i:\b(?:\w{1,40}_)?(?P<said_key>host|host_?name|user|user_?name|password|passwd|secret|token"
        r"|api_?key)['\"]?\s*[=:]\s*['\"]?)(?P<said_word>[\w.+-]+)(?![\w.+~-])",
    ),
)


def _rules(*groups: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>{rule})" for group in groups for name, rule in group))


_IN_VERSIONS: Final = _rules(_BASE_RULES)
_IN_NAMES: Final = _rules(_BASE_RULES, _NUMBER_RULES)
_IN_VALUES: Final = _rules(_BASE_RULES, _NUMBER_RULES, _VALUE_RULES)
_NAME_HINT: Final = re.compile(rf"[/\\@]|\.(?:\d|(?:{_DEEP_DOMAINS})\b)|ip-\d|{_TOKENS}")
_VALUE_HINT: Final = re.compile(
    rf"{_NAME_HINT.pattern}|:(?<=[0-9a-fA-F]{{2}}:)[0-9a-fA-F]{{0,4}}:"
    r"|(?i:host|user|passw|secret|token|key)\w{0,40}['\"]?\s*[=:]"
)
"""A text without any of these holds nothing private; ten times faster than the rules."""

_FRAME: Final = re.compile(r"((?:[^\W\d]\w*/)+)[\w.-]+\.py\(\d+\): [\w<>.]+")
_INSTALLED: Final = re.compile(r"(?:^|.*/)(?:site|dist)-packages/(?P<tail>.+)")
_STANDARD: Final = re.compile(r".*/lib(?:64)?/python[23](?:\.\d+)?/(?P<tail>.+)")
_RANK: Final = re.compile(r"(?<![A-Za-z])rank[-_]?\d+(?:(?:of|[-_])\d+)?(?![A-Za-z0-9])")
_SUFFIX: Final = re.compile(r"(?:\.(?:pt|trace|json|gz|zst|log|txt|csv|pkl|npy|so|yaml|yml|db))+$")
_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PORT: Final = re.compile(r":\d+$")
_PIECE: Final = re.compile(r"""[A-Za-z][\w+.-]*://[^\s"']+|[^\s:;,"'()\[\]{}]+""")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces private words by pseudonyms such as `host~3f2a9c1d`.

    Same word and key, same pseudonym; without the key none can be looked up or guessed. Every
    method gives back a text that is already redacted as it is. `key` is 64 bytes at most.
    """

    key: bytes
    _clean: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Strings of JSON seen before that are no private key and hold nothing private."""

    @classmethod
    def fresh(cls) -> "Redactor":
        """A redactor with a random key, for one run."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    def redact_name(self, text: str) -> str:
        """The name of an event, thread or process without private words."""
        frame = _FRAME.fullmatch(text)
        if frame and frame[1].partition("/")[0] in _PUBLIC_PACKAGES:
            return text
        return self._scan(text, _IN_NAMES)

    def redact_path(self, text: str) -> str:
        """A path or address of any system as what is public of it; the rest is a pseudonym."""
        return _settled(self._location, text)

    def _location(self, text: str) -> str:
        scheme, mark, rest = text.partition("://")
        if not mark:
            return self._path(text)
        path = rest.split("?")[0].split("#")[0]
        if "/" in path.strip("/"):
            return f"{scheme}{mark}{self._path(path)}"
        port = _PORT.search(path)
        return f"{scheme}{mark}{self._host(_PORT.sub('', path))}{port[0] if port else ''}"

    def redact_json(self, text: str) -> str:
        """JSON text with private strings replaced; numbers and layout stay as written."""
        parts = text.split('"')
        if "\\" in text or len(parts) % 2 == 0:
            parts = _LITERAL.split(text)
        elif self._clean.issuperset(parts[1::2]):
            return text
        if not text.lstrip().startswith(("{", "[", '"')):
            return self._scan(text, _IN_VALUES)
        self._strings(parts)
        if '"' in parts[-1]:
            parts[-1] = self._scan(parts[-1], _IN_VALUES)
        return '"'.join(parts)

    def _strings(self, parts: list[str]) -> None:
        """Redact every second part, the strings, each as the key before it demands."""
        key: str = ""
        kind: Kind | None = None
        for place in range(1, len(parts), 2):
            raw, is_key = parts[place], parts[place + 1].lstrip().startswith(":")
            if raw in self._clean and (is_key or kind is None) and raw.lower() not in _NAMELESS:
                key, kind = (raw, None) if is_key else (key, kind)
            elif is_key:
                inside = raw.lower() in _NAMELESS and parts[place - 1].strip(": ") == "{"
                key = parts[place] = self._string(raw, "", None)
                kind = _kind_of(key) or (kind if inside else None)
            else:
                parts[place] = self._string(raw, key, kind)

    def _string(self, raw: str, key: str, kind: Kind | None) -> str:
        """One string of JSON, between its quotes."""
        text = _unescaped(raw)
        redacted = self._value(text, key, kind)
        if redacted != text:
            return json.dumps(redacted)[1:-1]
        if kind is None and "\\" not in raw and not _kind_of(raw) and not _is_version(key):
            if len(self._clean) >= _MEMO_LIMIT:
                self._clean.clear()
            self._clean.add(raw)
        return raw

    def _value(self, text: str, key: str, kind: Kind | None) -> str:
        """One string, its escapes resolved."""
        if text.startswith(("{", "[")) and '"' in text:
            return self.redact_json(text)
        if kind is not None:
            return self._by_kind(text, kind)
        if key in _KERNEL_KEYS:
            return self.redact_name(text)
        return self._scan(text, _IN_VERSIONS if _is_version(key) else _IN_VALUES)

    def _by_kind(self, text: str, kind: Kind) -> str:
        """A string that its key alone makes private."""
        if _PSEUDONYM.fullmatch(text) or not text.strip():
            return text
        if kind is not Kind.SECRET:
            if _PLAIN.fullmatch(text) or text.lower() in _PUBLIC_VALUES:
                return text
            if kind is Kind.DIRECTORY:
                return _settled(self._paths, text)
            if kind is Kind.HOST:
                return self._host(text)
        return self._pseudonym(kind, text)

    def _paths(self, text: str) -> str:
        """A list of paths or a command line; each word of it is a path."""
        single = _PIECE.fullmatch(text)
        return _PIECE.sub(self._piece, text if single else self._scan(text, _IN_VALUES))

    def _scan(self, text: str, rules: re.Pattern[str]) -> str:
        """Free text with every private word replaced."""
        hint = _VALUE_HINT if rules is _IN_VALUES else _NAME_HINT
        if not hint.search(text):
            return text
        return _settled(partial(rules.sub, self._replace), text)

    def _replace(self, found: re.Match[str]) -> str:
        rule, word = found.lastgroup, found[0]
        if rule in {"said", "said_word"}:
            return self._said(found)
        if rule in {"uri", "frame", "windows", "posix", "source"}:
            return self.redact_path(word)
        if rule in {"host", "address", "six"}:
            return self._host(word)
        return self._pseudonym(Kind.SECRET if rule == "secret" else Kind.MAIL, word)

    def _piece(self, found: re.Match[str]) -> str:
        """One path of a list of paths, or one word of a command line."""
        word = found[0]
        return word if _PLAIN.fullmatch(word) else self.redact_path(word)

    def _said(self, found: re.Match[str]) -> str:
        """`host=node12` inside a longer text."""
        word = found["said_word"]
        kind = _kind_of(found["said_key"]) or Kind.SECRET
        if kind is Kind.SECRET and found["said_key"].lower() == "token" and _PLAIN.fullmatch(word):
            return found[0]
        return found[0].removesuffix(word) + self._value(word, "", kind)

    def _host(self, text: str) -> str:
        if text in _LOCAL_ADDRESSES or text.lower() in _PUBLIC_VALUES or not text:
            return text
        if _PSEUDONYM.fullmatch(text):
            return text
        numeric = not text.strip("0123456789.") or text.count(":") > 1
        return self._pseudonym(Kind.ADDRESS if numeric else Kind.HOST, text)

    def _path(self, text: str) -> str:
        path = text.strip().replace("\\", "/")
        if tail := _public_tail(path):
            return tail
        folders, slash, file = path.rpartition("/")
        if not file or ("." not in file and slash and not _PSEUDONYM.fullmatch(file)):
            folders, slash, file = path.rstrip("/"), "", ""
        if folders and not _PSEUDONYM.fullmatch(folders) and folders.strip("./"):
            folders = self._pseudonym(Kind.DIRECTORY, folders)
        return f"{folders}{slash}{self._file(file)}"

    def _file(self, name: str) -> str:
        """A file name: source files keep theirs, others their rank and suffix."""
        suffix = _SUFFIX.search(name)
        stem = name[: suffix.start()] if suffix else name
        if not name or name.endswith(_SOURCE_SUFFIXES) or _PSEUDONYM.fullmatch(stem):
            return name
        rank = _RANK.search(stem)
        if rank and _PSEUDONYM.fullmatch(stem.removesuffix(f".{rank[0]}")):
            return name
        if rank and rank[0] == stem:
            return name
        kept = f".{rank[0]}" if rank else ""
        return f"{self._pseudonym(Kind.FILE, stem)}{kept}{suffix[0] if suffix else ''}"

    def _pseudonym(self, kind: Kind, word: str) -> str:
        digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4, key=self.key)
        return f"{kind}{_MARK}{digest.hexdigest()}"


def _settled(step: Callable[[str], str], text: str) -> str:
    """The text after as many steps as change it."""
    for _ in range(_PASSES):
        after = step(text)
        if after == text:
            break
        text = after
    return text


def _public_tail(path: str) -> str | None:
    """The import path of an installed or checked out public package, if it is one."""
    top, slash, _ = path.partition("/")
    if ".." in path:
        return None
    if slash and top in _PUBLIC_PACKAGES:
        return path
    if installed := _INSTALLED.fullmatch(path):
        tail = installed["tail"]
        public = tail.partition("/")[0] in _PUBLIC_PACKAGES or "/" not in tail
        return tail if public else f"site-packages/{tail}"
    if standard := _STANDARD.fullmatch(path):
        tail = standard["tail"]
        if "/" not in tail or tail.partition("/")[0] in _PUBLIC_PACKAGES:
            return tail
    return _checked_out(path.split("/"))


def _checked_out(folders: list[str]) -> str | None:
    """The package inside a source tree of its own name: `vllm/vllm/...`, `pytorch/torch/...`."""
    for place in range(len(folders) - 2, 0, -1):
        package = folders[place]
        if package in _PUBLIC_PACKAGES and _CHECKOUTS.get(package, package) in folders[:place]:
            return "/".join(folders[place:])
    return None


def _kind_of(key: str) -> Kind | None:
    """What the value under this key is, if the key alone makes it private."""
    if len(key) > _LONGEST_KEY:
        return None
    lower = key.lower()
    if lower in _WHOLE_KEYS:
        return _WHOLE_KEYS[lower]
    words = [word.lower() for word in _KEY_WORD.findall(_PSEUDONYM.sub("", key))]
    pairs = [f"{one}.{two}" for one, two in pairwise(words)]
    kinds = [_KEY_WORDS[word] for word in (*words, *pairs) if word in _KEY_WORDS]
    return min(kinds, key=_ORDER.__getitem__, default=None)


def _is_version(key: str) -> bool:
    """Whether numbers with dots under this key are versions."""
    return not _VERSION_WORDS.isdisjoint(word.lower() for word in _KEY_WORD.findall(key))


def _unescaped(raw: str) -> str:
    """The text of a JSON string; as it stands where an escape is illegal."""
    if "\\" not in raw:
        return raw
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw
