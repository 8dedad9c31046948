"""Which tables a query names, from DuckDB's own reading of it."""

import re
from collections.abc import Mapping
from typing import Any

_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(?:TABLE|VIEW) (?:store\.)?(\w+)", re.MULTILINE)


def created_in(script: str) -> frozenset[str]:
    """Names of the tables and views that a `.sql` file makes."""
    return frozenset(_CREATED.findall(script))


def names_in(query: str) -> set[str]:
    """All words of a query, whatever they are: what is not among them is not named."""
    return set(re.findall(r"\w+", query.lower()))


def tables_in(parsed: Mapping[str, Any]) -> set[str]:
    """Names of the tables in a query that `json_serialize_sql` has printed, without schema.

    Those that its own WITH defines are none. A text that a table function gets may be a name.
    """
    return {name.rpartition(".")[2] for name in _qualified(parsed)}


def _qualified(node: object) -> set[str]:
    if isinstance(node, list):
        return set[str]().union(*map(_qualified, node))
    if not isinstance(node, dict):
        return set()
    if node.get("type") == "BASE_TABLE":
        schema = f"{node['schema_name']}." if node["schema_name"] else ""
        return {f"{schema}{node['table_name']}".lower()}
    found, own = set[str](), set[str]()
    for entry in node.get("cte_map", {}).get("map", ()):
        found |= _qualified(entry["value"]) - own
        own.add(str(entry["key"]).lower())
    if node.get("type") == "TABLE_FUNCTION":
        found |= _texts_in(node["function"])
    rest = [value for key, value in node.items() if key != "cte_map"]
    return found | (_qualified(rest) - own)


def _texts_in(function: Mapping[str, Any]) -> set[str]:
    given = [argument.get("expression", {}) for argument in function.get("arguments", ())]
    literals = [one.get("literal", {}) for one in given if isinstance(one, dict)]
    return {str(one["text"]).lower() for one in literals if one.get("kind") == "STRING"}
