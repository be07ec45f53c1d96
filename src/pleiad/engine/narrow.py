"""Predicates as they are asked of one range of a walk.

A filter may name thousands of partition keys, each of which is a range that is read by itself. What is asked of one
range then speaks of the keys in it alone: with all of them in each question the work would grow with their square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.query.pace import in_turns
from pleiad.store.selection import Predicate, Scalar

_ByHash = Mapping[bytes, Sequence[Scalar]]


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """Predicates that name partition keys, each with the values it names by their hashes."""

    named: tuple[tuple[Predicate, _ByHash], ...] = ()

    def narrow(self, predicates: tuple[Predicate, ...], *spans: EpkRange) -> tuple[Predicate, ...]:
        """The predicates for the rows of a range, or of several."""
        if not self.named or not all(span.is_one_hash for span in spans):
            return predicates
        return tuple([self._narrowed(each, spans) for each in predicates])

    def _narrowed(self, predicate: Predicate, spans: Sequence[EpkRange]) -> Predicate:
        for known, values in self.named:
            if known is predicate:
                return predicate._replace(
                    one_of=tuple([each for span in spans for each in values.get(span.min, ())])
                )
        return predicate


NO_KEYS = NamedKeys()


def named_keys(container: Container, predicates: Sequence[Predicate], spans: Sequence[EpkRange]) -> NamedKeys:
    """What predicates name, for a walk over several ranges; a key of several levels is left as it is."""
    key = container.key
    if len(spans) < 2 or key.levels > 1:
        return NO_KEYS
    path = key.path_steps[0]
    chosen = [each for each in predicates if each.path == path and each.one_of and not each.element]
    return NamedKeys(tuple((each, _by_hash(container, each.one_of or ())) for each in chosen))


def _by_hash(container: Container, values: Sequence[Scalar]) -> _ByHash:
    found: dict[bytes, list[Scalar]] = {}
    for value in in_turns(values):
        try:
            found.setdefault(container.span_of((value,)).min, []).append(value)
        except PleiadError:  # no item can have it
            continue
    return found
