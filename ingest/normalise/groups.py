"""Which communicator a member belongs to, the same on every rank."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, cycle, islice, pairwise
from typing import NamedTuple

from ingest.normalise.messages import HostRow, integer, items

NO_GROUP = -1
_MOST_RANKS = 1 << 24
"""Beyond it, a number of a rank or a size of a group is taken for damage."""

_LISTED = re.compile(
    r"'pg_name':\s*'(?P<name>[^']*)'(?:,\s*'pg_desc':\s*'(?P<desc>[^']*)')?"
    r"(?:,\s*'backend_config':\s*'(?P<backend>[^']*)')?"
    r"(?:,\s*'pg_size':\s*(?P<size>\d+))?,\s*'ranks':\s*\[(?P<ranks>[\d,\s]*)\]"
)
_COUNT = re.compile(r"'pg_count':\s*(\d+)")
_OLD_RECORD_ARGUMENTS = 8
_NEW_RECORD_ARGUMENTS = 10


class ListedGroup(NamedTuple):
    """A process group as `distributedInfo.pg_config` lists it."""

    name: str
    ranks: tuple[int, ...]
    description: str
    backend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a file says of its rank and of the communicators of the job."""

    rank: int
    world_size: int = -1
    host: str = ""
    listed: tuple[ListedGroup, ...] = ()
    listed_all: bool = False
    """`pg_config` holds every group (`pg_count` of them)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommGroup:
    """A communicator: member ranks and the ordinal among groups with equal ranks."""

    name: str
    ranks: tuple[int, ...]
    ordinal: int
    description: str = ""
    backend: str = ""
    exact: bool = True
    """False where the list of ranks was cut short in the file and continued by guess."""


class Recorded(NamedTuple):
    """What one member's arguments say of its communicator."""

    name: str
    ranks: tuple[int, ...]
    size: int
    exact: bool
    local: str
    """Name or address of the group inside this process; empty when not recorded."""
    seq: int
    comms_id: str


def file_facts(
    distributed_info: object, *, rank: int, world_size: int = -1, host: str = ""
) -> FileFacts:
    """Read `distributedInfo`: an object, or its Python text form as some versions write it."""
    if isinstance(distributed_info, str):
        listed = tuple(
            ListedGroup(
                match["name"],
                _rank_list(match["ranks"]),
                match["desc"] or "",
                match["backend"] or "",
            )
            for match in _LISTED.finditer(distributed_info)
        )
        count = _COUNT.search(distributed_info)
        total = int(count[1]) if count else -1
    else:
        info = distributed_info if isinstance(distributed_info, Mapping) else {}
        listed = tuple(_listed(items(info.get("pg_config"))))
        found = integer(info.get("pg_count"))
        total = -1 if found is None else found
    return FileFacts(
        rank=rank,
        world_size=world_size,
        host=host,
        listed=listed,
        listed_all=0 < total <= len(listed),
    )


def _listed(config: Sequence[object]) -> Iterable[ListedGroup]:
    for entry in config:
        if isinstance(entry, Mapping) and "pg_name" in entry:
            ranks = tuple(
                rank
                for item in items(entry.get("ranks"))
                if (rank := integer(item)) is not None and 0 <= rank < _MOST_RANKS
            )
            yield ListedGroup(
                str(entry["pg_name"]),
                ranks,
                str(entry.get("pg_desc") or ""),
                str(entry.get("backend_config") or ""),
            )


def recorded_group(rows: Sequence[HostRow], facts: FileFacts) -> Recorded:
    """The communicator, sequence number and operation id that a member's rows record."""
    merged: dict[str, object] = {}
    for row in reversed(rows):
        merged.update(_old_record(row))
        merged.update({key: value for key, value in row.args.items() if value not in (None, "")})
    name = str(merged.get("Process Group Name", ""))
    size = integer(merged.get("Group size"))
    size = size if size and 0 < size < _MOST_RANKS else None
    ranks, exact = _ranks(merged, name, size or -1, facts)
    seq = integer(merged.get("Seq"))
    return Recorded(
        name=name,
        ranks=ranks,
        size=len(ranks) if ranks and (exact or size is None) else (size or -1),
        exact=exact,
        local=name or str(merged.get("Process Group ID", "")),
        seq=-1 if seq is None else seq,
        comms_id=str(merged.get("Comms Id", "")),
    )


def _old_record(row: HostRow) -> dict[str, object]:
    """Sequence number, group address and size that old `record_param_comms` rows hold by place."""
    inputs = items(row.args.get("Concrete Inputs")) if row.name == "record_param_comms" else ()
    if len(inputs) == _OLD_RECORD_ARGUMENTS:
        found = {"Seq": inputs[1], "Process Group ID": inputs[2], "Group size": inputs[7]}
    elif len(inputs) == _NEW_RECORD_ARGUMENTS:
        found = {
            "Global rank start": inputs[7],
            "Global rank stride": inputs[8],
            "Group size": inputs[9],
        }
    else:
        return {}
    return {key: value for key, value in found.items() if integer(value) is not None}


def _ranks(
    args: Mapping[str, object], name: str, size: int, facts: FileFacts
) -> tuple[tuple[int, ...], bool]:
    """Member ranks; the second value is False where they are a guess.

    PyTorch writes the first 30 ranks of a longer list, then `...`.
    """
    text = args.get("Process Group Ranks", "")
    shown = _rank_list(text)
    if shown and "..." not in str(text) and size in {-1, len(shown)}:
        return shown, True
    before = _rank_list(str(text).split("...", maxsplit=1)[0])
    start, stride = (integer(args.get(f"Global rank {key}")) for key in ("start", "stride"))
    candidates = [_progression(start, stride, size)]
    candidates += [group.ranks for group in facts.listed if name and group.name == name]
    if size == facts.world_size:
        candidates.append(_progression(0, 1, size))
    guess = _continued(before, size)
    for ranks in (*candidates, guess):
        if ranks and size in {-1, len(ranks)} and ranks[: len(before)] == before:
            return ranks, ranks in candidates
    return shown, not shown


def _continued(ranks: tuple[int, ...], size: int) -> tuple[int, ...]:
    """A list of ranks continued to its size by the shortest pattern of distances that repeats."""
    distances = [after - before for before, after in pairwise(ranks)]
    for length in range(1, len(distances) // 2 + 1 if len(distances) > 1 else len(distances) + 1):
        if distances[length:] == distances[:-length] and size > 0:
            more = islice(cycle(distances[:length]), size - 1)
            found = tuple(accumulate(more, initial=ranks[0]))
            return found if min(found) >= 0 and max(found) < _MOST_RANKS else ()
    return ()


def _rank_list(text: object) -> tuple[int, ...]:
    """The ranks that stand in a text; numbers that can be none are passed over."""
    return tuple(
        rank for part in re.findall(r"\d{1,20}", str(text)) if (rank := int(part)) < _MOST_RANKS
    )


def _progression(start: int | None, stride: int | None, size: int) -> tuple[int, ...]:
    if start is None or stride is None or start < 0 or stride <= 0 or size <= 0:
        return ()
    if start + stride * size > _MOST_RANKS:
        return ()
    return tuple(range(start, start + stride * size, stride))


@dataclass(slots=True)
class GroupTable:
    """Collects the communicators of all files and gives each a number valid on every rank.

    Names of groups may differ between ranks. Groups with equal ranks are told apart by their
    names when the files share a name for those ranks, else by the order inside each file.
    """

    files: Sequence[FileFacts]
    names: dict[tuple[int, ...], list[list[str]]] = field(default_factory=dict)
    exact: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def add(self, file: int, recorded: Recorded) -> None:
        """Note that a file uses a communicator with known ranks."""
        if recorded.ranks not in self.names:
            self.names[recorded.ranks] = [
                self._listed_names(facts, recorded) for facts in self.files
            ]
            self.exact[recorded.ranks] = True
        of_file = self.names[recorded.ranks][file]
        if recorded.local not in of_file:
            of_file.append(recorded.local)
        self.exact[recorded.ranks] &= recorded.exact

    @staticmethod
    def _listed_names(facts: FileFacts, recorded: Recorded) -> list[str]:
        return [group.name for group in facts.listed if group.ranks == recorded.ranks]

    def number(self) -> tuple[tuple[CommGroup, ...], dict[tuple[int, tuple[int, ...], str], int]]:
        """All communicators, and the number of each (file, ranks, name in that file)."""
        groups: list[CommGroup] = []
        keys: dict[tuple[int, tuple[int, ...], str], int] = {}
        details = self._details()
        for ranks, per_file in sorted(self.names.items()):
            ordinals = _ordinals(per_file)
            base = len(groups)
            labels: dict[int, str] = defaultdict(str)
            for file, names in enumerate(per_file):
                for name in names:
                    ordinal = ordinals[file][name]
                    keys[file, ranks, name] = base + ordinal
                    labels[ordinal] = labels[ordinal] or name
            for ordinal in range(max(labels) + 1):
                listed = details.get((ranks, labels[ordinal]))
                groups.append(
                    CommGroup(
                        name=labels[ordinal],
                        ranks=ranks,
                        ordinal=ordinal,
                        description=listed.description if listed else "",
                        backend=listed.backend if listed else "",
                        exact=self.exact[ranks],
                    )
                )
        return tuple(groups), keys

    def _details(self) -> dict[tuple[tuple[int, ...], str], ListedGroup]:
        return {(g.ranks, g.name): g for facts in reversed(self.files) for g in facts.listed}


def _ordinals(per_file: Sequence[Sequence[str]]) -> list[dict[str, int]]:
    used = [set(names) for names in per_file if names]
    if set.intersection(*used):
        union = sorted({name for names in used for name in names}, key=_name_order)
        shared = {name: ordinal for ordinal, name in enumerate(union)}
        return [shared for _ in per_file]
    return [{name: ordinal for ordinal, name in enumerate(names)} for names in per_file]


def _name_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if name.isdigit() else (1, 0, name)
