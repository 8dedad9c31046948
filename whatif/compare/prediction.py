"""A saved answer of `replay TRACE... WHAT-IFS --json`, read back."""

import msgspec

from ingest.errors import UsageError
from whatif.report.answer import SCHEMA_VERSION, Answer, Prediction

HOW = "save one with: replay TRACE... --nvlink 900GBps --json > prediction.json"
GZIP = b"\x1f\x8b"
OTHER = {
    "points": "`replay sweep`",
    "levers": "`replay levers`",
    "vary": "`replay solve`",
    "groups": "`replay diff`",
    "sections": "`replay report`",
}
"""A field that tells another document of this program, and what wrote it."""


def read_prediction(text: bytes, name: str) -> Answer:
    """The answer with its prediction.

    Args:
        text: of the file.
        name: for messages.

    Raises:
        UsageError: no answer of this program, of another version, or without a what-if.
    """
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        what = "is compressed, and an answer is not" if text.startswith(GZIP) else "is not JSON"
        raise UsageError(f"`{name}` {what}", hint=HOW) from error
    if not isinstance(raw, dict):
        raise UsageError(f"`{name}` is no answer of replay", hint=HOW)
    if "prediction" not in raw:
        wrote = next((who for field, who in OTHER.items() if field in raw), "")
        told = f", but of {wrote}" if wrote else ""
        raise UsageError(f"`{name}` is no answer of a what-if{told}", hint=HOW)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(
            f"`{name}` has schema version {raw.get('schema_version')}, not {SCHEMA_VERSION}",
            hint="ask again with this version",
        )
    try:
        answer = msgspec.convert(raw, Answer)
    except msgspec.ValidationError as error:
        raise UsageError(f"`{name}` is no answer of replay: {error}", hint=HOW) from error
    if answer.prediction is None or answer.breakdown.predicted is None:
        raise UsageError(
            f"`{name}` predicts nothing: it was asked without a what-if",
            hint="compare two recorded runs with: replay diff A B",
        )
    _refuse_impossible(answer.prediction, name)
    return answer


def _refuse_impossible(prediction: Prediction, name: str) -> None:
    """Numbers that no replay gives: the file was changed, and would pass any gate.

    Raises:
        UsageError: a step of no length, or one outside its own range.
    """
    low_ns, step_ns, high_ns = prediction.low_ns, prediction.step_ns, prediction.high_ns
    if step_ns <= 0 or not low_ns <= step_ns <= high_ns:
        raise UsageError(
            f"`{name}` predicts what no replay does: a step of {step_ns:,} ns in a range of "
            f"{low_ns:,} to {high_ns:,} ns",
            hint=HOW,
        )
