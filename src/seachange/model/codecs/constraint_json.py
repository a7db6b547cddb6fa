"""Constraints as JSON values, the form in which a descriptor's text keeps them."""

from __future__ import annotations

from typing import Any

from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.schema.constraint import Action, Check, ForeignKey
from seachange.model.states import State


def encode_check(check: Check) -> dict[str, Any]:
    late = {"not_valid": True} if check.not_valid else {}
    return {
        "id": check.id,
        "name": check.name,
        "expression": check.expression,
        "columns": list(check.columns),
        "state": check.state.value,
        **late,
    }


def decode_check(body: dict[str, Any]) -> Check:
    return Check(
        id=ConstraintId(body["id"]),
        name=body["name"],
        expression=body["expression"],
        columns=tuple(ColumnId(c) for c in body["columns"]),
        state=State(body["state"]),
        not_valid=body.get("not_valid", False),
    )


def encode_foreign_key(key: ForeignKey) -> dict[str, Any]:
    full = {"match_full": True} if key.match_full else {}
    late = {"not_valid": True} if key.not_valid else {}
    return {
        "id": key.id,
        "name": key.name,
        "columns": list(key.columns),
        "parent": key.parent,
        "parent_index": key.parent_index,
        "on_delete": key.on_delete.value,
        "on_update": key.on_update.value,
        "deferrable": key.deferrable,
        "initially_deferred": key.initially_deferred,
        "state": key.state.value,
        **full,
        **late,
        **({"uncommitted": True} if key.uncommitted else {}),
    }


def decode_foreign_key(body: dict[str, Any]) -> ForeignKey:
    return ForeignKey(
        id=ConstraintId(body["id"]),
        name=body["name"],
        columns=tuple(ColumnId(c) for c in body["columns"]),
        parent=TableId(body["parent"]),
        parent_index=IndexId(body["parent_index"]),
        on_delete=Action(body["on_delete"]),
        on_update=Action(body["on_update"]),
        deferrable=body["deferrable"],
        initially_deferred=body["initially_deferred"],
        state=State(body["state"]),
        match_full=body.get("match_full", False),
        not_valid=body.get("not_valid", False),
        uncommitted=body.get("uncommitted", False),
    )
