"""The JSON schema and the structs of the answer say the same."""

import json
from pathlib import Path

import msgspec

from whatif.report import answer

SCHEMA = json.loads(
    (Path(answer.__file__).parent / "schema" / "answer.schema.json").read_text(encoding="utf-8")
)
STRUCTS = {
    answer.Answer: SCHEMA,
    answer.TraceFacts: SCHEMA["properties"]["trace"],
    answer.TrustFacts: SCHEMA["properties"]["trust"],
    answer.BaselineFacts: SCHEMA["properties"]["baseline"],
    answer.Prediction: SCHEMA["properties"]["prediction"],
    answer.JitterFacts: SCHEMA["$defs"]["jitter"],
    answer.RankFacts: SCHEMA["properties"]["ranks"]["items"],
    answer.BreakdownFacts: SCHEMA["properties"]["breakdown"],
    answer.Parts: SCHEMA["$defs"]["parts"],
    answer.ReadingFacts: SCHEMA["properties"]["reading"],
    answer.LateRank: SCHEMA["$defs"]["late_rank"],
    answer.LongStepFacts: SCHEMA["$defs"]["long_step"],
    answer.GrownPart: SCHEMA["$defs"]["grown_part"],
    answer.RateFacts: SCHEMA["properties"]["rates"],
    answer.JudgedFacts: SCHEMA["$defs"]["judged"],
    answer.PlaceFacts: SCHEMA["$defs"]["place"],
    answer.UnprofiledFacts: SCHEMA["$defs"]["unprofiled"],
    answer.ShortLever: SCHEMA["$defs"]["short_lever"],
    answer.RestsOn: SCHEMA["$defs"]["rests_on"],
    answer.RankMemoryFacts: SCHEMA["$defs"]["rank_memory"],
    answer.FitsWith: SCHEMA["$defs"]["fits_with"],
    answer.MemoryFacts: SCHEMA["$defs"]["memory"],
    answer.LayoutFacts: SCHEMA["$defs"]["layout"],
}


def test_every_struct_has_an_object_in_the_schema() -> None:
    structs = {
        value
        for value in vars(answer).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    }
    assert set(STRUCTS) == structs


ADDED_LATER = {
    answer.Answer: ("reading", "rates", "levers"),
    answer.TraceFacts: ("made",),
    answer.Prediction: (
        "jitter",
        "name",
        "samples_factor",
        "known_errors",
        "rests_on",
        "memory",
        "layout",
    ),
    answer.JitterFacts: ("ranks_as_chance",),
    answer.RateFacts: (
        "flops_per_step",
        "flops_gpus",
        "flops_covered_frac",
        "flops_dtype_frac",
    ),
}
"""Optional in the schema, so that older answers stay valid."""


def test_fields_are_properties_in_the_same_order_and_required_unless_added_later() -> None:
    for struct, described in STRUCTS.items():
        fields = struct.__struct_fields__
        later = ADDED_LATER.get(struct, ())
        assert tuple(described["properties"]) == fields
        assert tuple(described["required"]) == fields[: len(fields) - len(later)]
        assert fields[len(fields) - len(later) :] == later
        assert described["additionalProperties"] is False


def test_the_version_of_the_schema_is_that_of_the_answers() -> None:
    assert SCHEMA["properties"]["schema_version"] == {"const": answer.SCHEMA_VERSION}
