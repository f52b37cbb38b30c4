"""Models that several run configs share: `models: [{include: models/openai.yaml}]`.

A file of models has one key, `models`, whose entries are those of a run config. They are put in place of the entry that
includes them before anything is checked, so that they mean the same and are refused in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trunchray.adapters.location import absolute, beside
from trunchray.core.names import nearest
from trunchray.errors import UsageError
from trunchray.frontends.yaml_file import YamlFile, read_yaml

Location = Sequence[int | str]
"""The keys and places (from 0) that lead to a value."""

_KEYS = ("include", "only")


def with_included(file: YamlFile, content: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Location], str]]:
    """The content of a file with the models that it includes, and what says where each value stands.

    Raises:
        UsageError: a file of models cannot be read or is none, or does not have a model that is asked for.
    """
    listed = content.get("models")
    if not isinstance(listed, list):
        return content, file.place
    entries: list[Any] = []
    origins: list[tuple[YamlFile, int]] = []
    for index, entry in enumerate(listed):
        source, chosen = _included(file, index, entry) if _includes(entry) else (file, {index: entry})
        entries += chosen.values()
        origins += ((source, place) for place in chosen)

    def place(location: Location) -> str:
        if len(location) > 1 and location[0] == "models" and isinstance(location[1], int):
            source, index = origins[location[1]]
            return source.place(["models", index, *location[2:]])
        return file.place(location)

    return content | {"models": entries}, place


def _includes(entry: object) -> bool:
    return isinstance(entry, dict) and "include" in entry


def _included(file: YamlFile, index: int, entry: dict[str, Any]) -> tuple[YamlFile, dict[int, Any]]:
    """The file that an entry includes, and those of its models that the entry asks for, by their places in it."""
    where = file.place(["models", index])
    for key in entry:
        if key not in _KEYS:
            raise UsageError(f"{where}: models[{index}].{key}: unknown key beside include{nearest(key, _KEYS)}")
    if not isinstance(entry["include"], str):
        raise UsageError(f"{where}: models[{index}].include: must be the path of a file (got {entry['include']!r})")
    source = read_yaml(beside(file.where, entry["include"]))
    models = _models(source)
    wanted = entry.get("only")
    if wanted is None:
        return source, dict(enumerate(models))
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise UsageError(f"{where}: models[{index}].only: must be a list of names or ids (got {wanted!r})")
    names = [_names(model) for model in models]
    for name in wanted:
        if not any(name in own for own in names):
            known = nearest(name, [name for own in names for name in own])
            raise UsageError(f"{where}: models[{index}].only: {source.where} has no model {name!r}{known}")
    return source, {place: model for place, model in enumerate(models) if set(names[place]) & set(wanted)}


def _names(model: Any) -> list[str]:
    """What an entry is called."""
    called = (model.get("name"), model.get("id")) if isinstance(model, dict) else ()
    return [name for name in called if isinstance(name, str)]


def _models(source: YamlFile) -> list[Any]:
    """The entries of a file of models, which include no others."""
    content = source.value
    models = content.get("models") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(models, list) or len(content) > 1:
        raise UsageError(f"{source.where}: a file of models is a mapping with the one key models, a list")
    for place, model in enumerate(models):
        if _includes(model):
            raise UsageError(f"{source.place(['models', place])}: models[{place}]: an included file includes no others")
    return [_located(model, source.where) for model in models]


def _located(model: Any, file: str) -> Any:
    """The entry with its recorded outputs named from where its own file stands."""
    mock = model.get("mock") if isinstance(model, dict) else None
    replay = mock.get("replay") if isinstance(mock, dict) else None
    if not isinstance(mock, dict) or not isinstance(replay, str):
        return model
    return model | {"mock": mock | {"replay": absolute(beside(file, replay))}}
