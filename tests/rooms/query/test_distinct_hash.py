"""The hash of DISTINCT is the one that the .NET client computes, whose answers these are."""

from __future__ import annotations

import orjson
import pytest

from pleiad.query.distinct_hash import distinct_hash
from pleiad.query.values import order_key
from pleiad.values.undefined import UNDEFINED

ANSWERS = (
    ("null", 11395469001683583357, 9912136848435424931),
    ("true", 17301074830314701093, 14793570148121773855),
    ("false", 8097210824644432271, 7964803142572316599),
    ("0", 9467732946414111277, 11996708113727765418),
    ("-0.0", 783540719887671267, 4977870672509633547),
    ("1", 5433994373606737020, 14238311087875945324),
    ("1.5", 7234299552610564997, 2856389296530235071),
    ("-3", 824075829077880012, 13178668267479830834),
    ("9007199254740993", 6312242976727269684, 15372714115685486331),
    ("9223372036854775807", 7843036946316148355, 3891660576364673360),
    ("-9223372036854775808", 15204348973455353656, 9100048946655552561),
    ("-9007199254740995", 9095662039302987273, 3465026614287836036),
    ("1e300", 15352196284648007254, 18323833955050596315),
    ('""', 9634208548235946401, 12070850756810385829),
    ('"a"', 17729876258266036380, 519891166208661728),
    ('"héllo €𐍈"', 4038176021217767664, 14340730034542923769),
    ('"a string that is longer than sixteen bytes"', 18437564535873749466, 17435392265259879632),
    ("[]", 11740669425854152834, 9031114912533472255),
    ("{}", 1457042291250783704, 1493060239874959160),
    ("[1]", 3156792105152516121, 14352746174421918468),
    ("[1,2,3]", 11641562805542124846, 8082636597619141244),
    ("[[]]", 6407559614491956092, 5865512470172173801),
    ('["a",null,true,false,{}]', 17546132758323184297, 8423582934175978204),
    ('{"a":1}', 6626721030009087975, 3382389252530516517),
    ('{"b":[1,{"c":"d"}],"a":null}', 980060346322602412, 3455790557482265779),
    ('{"a":{"b":{"c":[]}}}', 2889263511305008945, 10125343620266513808),
    ('{"name":"alice","age":5}', 7037504122477957528, 18159456335945770344),
    ('{"n":9007199254740993}', 10566102264531655283, 4372539728487682984),
    ('{"n":1.0}', 1180648903069810447, 1645303963166211837),
    ('{"":""}', 1099245269732210537, 16990569314691808725),
)


@pytest.mark.parametrize(("text", "low", "high"), ANSWERS)
def test_a_value_has_the_hash_that_the_client_gives_it(text: str, low: int, high: int) -> None:
    assert distinct_hash(orjson.loads(text)) == (low, high)


def test_what_is_undefined_is_not_there() -> None:
    assert distinct_hash({"a": 1, "b": UNDEFINED}) == distinct_hash({"a": 1})
    assert distinct_hash({"a": 1, "b": 2}) == distinct_hash({"b": 2.0, "a": 1})


def test_arrays_and_objects_stand_in_the_order_of_the_bytes_of_their_hashes() -> None:
    for brackets in ("[]", "{}"):
        values = [orjson.loads(text) for text, _, _ in ANSWERS if text.startswith(brackets[0])]
        assert len(values) > 4

        def by_bytes(value: object) -> bytes:
            low, high = distinct_hash(value)
            return low.to_bytes(8, "little") + high.to_bytes(8, "little")

        assert sorted(values, key=order_key) == sorted(values, key=by_bytes)
