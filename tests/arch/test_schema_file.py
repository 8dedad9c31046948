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
    answer.RankFacts: SCHEMA["properties"]["ranks"]["items"],
    answer.BreakdownFacts: SCHEMA["properties"]["breakdown"],
    answer.Parts: SCHEMA["$defs"]["parts"],
    answer.JudgedFacts: SCHEMA["$defs"]["judged"],
    answer.PlaceFacts: SCHEMA["$defs"]["place"],
    answer.UnprofiledFacts: SCHEMA["$defs"]["unprofiled"],
}


def test_every_struct_has_an_object_in_the_schema() -> None:
    structs = {
        value
        for value in vars(answer).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    }
    assert set(STRUCTS) == structs


def test_fields_are_required_properties_in_the_same_order() -> None:
    for struct, described in STRUCTS.items():
        assert tuple(described["properties"]) == struct.__struct_fields__
        assert tuple(described["required"]) == struct.__struct_fields__
        assert described["additionalProperties"] is False


def test_the_version_of_the_schema_is_that_of_the_answers() -> None:
    assert SCHEMA["properties"]["schema_version"] == {"const": answer.SCHEMA_VERSION}
