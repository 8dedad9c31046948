"""Chakra execution traces read by Google's protobuf, from field numbers of `et_def.proto`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32
from google.protobuf.message import Message

_KINDS = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "ChakraProtoMsg"
_MESSAGES: dict[str, list[tuple[str, int, int, bool, str]]] = {
    "AttributeProto": [
        ("name", 1, _KINDS.TYPE_STRING, False, ""),
        ("int64_val", 9, _KINDS.TYPE_INT64, False, ""),
        ("bool_val", 27, _KINDS.TYPE_BOOL, False, ""),
        ("string_val", 29, _KINDS.TYPE_STRING, False, ""),
    ],
    "GlobalMetadata": [
        ("version", 1, _KINDS.TYPE_STRING, False, ""),
        ("attr", 2, _KINDS.TYPE_MESSAGE, True, "AttributeProto"),
    ],
    "Node": [
        ("id", 1, _KINDS.TYPE_UINT64, False, ""),
        ("name", 2, _KINDS.TYPE_STRING, False, ""),
        ("type", 3, _KINDS.TYPE_INT32, False, ""),
        ("ctrl_deps", 4, _KINDS.TYPE_UINT64, True, ""),
        ("data_deps", 5, _KINDS.TYPE_UINT64, True, ""),
        ("start_time_micros", 6, _KINDS.TYPE_UINT64, False, ""),
        ("duration_micros", 7, _KINDS.TYPE_UINT64, False, ""),
        ("attr", 10, _KINDS.TYPE_MESSAGE, True, "AttributeProto"),
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as a simulator sees it."""

    number: int
    name: str
    kind: int
    waits_for: tuple[int, ...]
    start_us: int
    duration_us: int
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A whole execution trace."""

    version: str
    attributes: dict[str, Any]
    nodes: tuple[Node, ...]

    def named(self, name: str) -> Node:
        """The only node of a name."""
        (found,) = (node for node in self.nodes if node.name == name)
        return found


def read(path: Path) -> File:
    """Parse a file; whatever a message holds beyond the fields above is a fault."""
    classes = _classes()
    records = _records(path.read_bytes())
    head = classes["GlobalMetadata"].FromString(next(records))
    return File(
        version=head.version,
        attributes=_attributes(head.attr),
        nodes=tuple(_node(classes["Node"].FromString(record)) for record in records),
    )


def _records(data: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(data):
        length, place = _DecodeVarint32(data, place)
        assert place + length <= len(data), "the last record is cut off"
        yield data[place : place + length]
        place += length


def _node(message: Message) -> Node:
    assert message.ByteSize() == len(message.SerializeToString())
    assert not list(message.ctrl_deps), "all dependencies are data dependencies"
    return Node(
        number=message.id,
        name=message.name,
        kind=message.type,
        waits_for=tuple(message.data_deps),
        start_us=message.start_time_micros,
        duration_us=message.duration_micros,
        attributes=_attributes(message.attr),
    )


def _attributes(found: Iterable[Message]) -> dict[str, Any]:
    told = {}
    for one in found:
        (value,) = (value for field, value in one.ListFields() if field.name != "name")
        told[one.name] = value
    return told


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "AttributeProto":
            message.oneof_decl.add(name="value")
        for field, number, kind, repeated, of in fields:
            label = _KINDS.LABEL_REPEATED if repeated else _KINDS.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if of:
                added.type_name = f".{_PACKAGE}.{of}"
            if name == "AttributeProto" and field != "name":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }
