"""The keys of an account as values, and the file they may be kept in."""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pleiad.account import signature
from pleiad.account.key_file import FILE_BYTES_MAX, KeyFile, KeyFileError
from pleiad.account.keys import EMULATOR_KEY, AccountKeys, KeyName, KeysInForce, decode_key

FIRST, SECOND, THIRD, FOURTH = (base64.b64encode(letter * 64).decode() for letter in (b"1", b"2", b"3", b"4"))
ALL = {
    "primaryMasterKey": FIRST,
    "secondaryMasterKey": SECOND,
    "primaryReadonlyMasterKey": THIRD,
    "secondaryReadonlyMasterKey": FOURTH,
}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


def test_an_account_has_two_keys_of_each_kind() -> None:
    keys = AccountKeys(FIRST, THIRD, SECOND, FOURTH)
    assert [(key.name, key.name.is_master) for key in keys.all] == [
        (KeyName.PRIMARY, True),
        (KeyName.SECONDARY, True),
        (KeyName.READ_ONLY, False),
        (KeyName.SECONDARY_READ_ONLY, False),
    ]
    assert [key.text for key in keys.masters] == [FIRST, SECOND]
    assert all(keys.has(text) for text in ALL.values())
    assert not any(keys.has(text) for text in (EMULATOR_KEY, "", FIRST[:-1], "é"))


@pytest.mark.parametrize("key", ["", "#", "c2hvcnQ=", "not base64!", "é" * 30, "A" * 23])
def test_what_is_no_key_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(ValueError, match="key") as refused:
        AccountKeys(key)
    assert not key or key not in str(refused.value)


def test_a_key_is_in_no_representation() -> None:
    keys = AccountKeys(FIRST, THIRD)
    for shown in (repr(keys.all), repr(keys), repr(KeysInForce(keys))):
        assert FIRST not in shown
        assert "1111" not in shown


def test_the_emulators_key_is_known_in_every_place() -> None:
    assert AccountKeys(EMULATOR_KEY).has_emulator_key
    assert AccountKeys(FIRST, secondary=EMULATOR_KEY).has_emulator_key
    assert AccountKeys(FIRST, EMULATOR_KEY).has_emulator_key
    assert not AccountKeys(FIRST, THIRD, SECOND, FOURTH).has_emulator_key


def test_fingerprints_tell_keys_apart_and_are_the_same_for_the_same_key() -> None:
    prints = [key.fingerprint() for key in AccountKeys(FIRST, THIRD, SECOND, FOURTH).all]
    assert len(set(prints)) == 4
    assert AccountKeys(SECOND).primary.fingerprint() == prints[1]


def test_watchers_know_of_new_keys_before_they_are_in_force() -> None:
    old, new = AccountKeys(FIRST), AccountKeys(SECOND)
    in_force = KeysInForce(old)
    seen: list[tuple[AccountKeys, AccountKeys]] = []
    in_force.watch(lambda keys: seen.append((keys, in_force.keys)))
    in_force.problem = "a file that was wrong"
    in_force.replace(new)
    assert seen == [(new, old)]
    assert in_force.keys is new
    assert not in_force.problem


def test_the_signature_is_the_one_of_the_protocol() -> None:
    """The example of the service's documentation of master-key signatures."""
    key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="
    text = signature.signed_text("GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT")
    assert text == "get\ndbs\ndbs/ToDoList\nthu, 27 apr 2017 00:51:12 gmt\n\n"
    token = signature.authorization(
        decode_key(key), "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT"
    )
    assert token == ("type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D")


# -- the file ------------------------------------------------------------------------------------------


def test_a_key_file_has_the_names_of_the_service(tmp_path: Path) -> None:
    keys = KeyFile(write(tmp_path / "keys.json", ALL)).read()
    assert {key.name.value: key.text for key in keys.all} == ALL
    only = KeyFile(write(tmp_path / "keys.json", {"primaryMasterKey": FIRST, "secondaryMasterKey": None}))
    assert [key.text for key in only.read().all] == [FIRST]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        (json.dumps(ALL)[:-20], "not JSON"),
        ("[]", "must be a JSON object"),
        ({}, "primaryMasterKey is missing"),
        ({"secondaryMasterKey": SECOND}, "primaryMasterKey is missing"),
        ({"primaryMasterKey": FIRST, "key": SECOND}, "'key' is none of the names"),
        ({"primaryMasterKey": 5}, "primaryMasterKey must be a text"),
        ({"primaryMasterKey": "secret!"}, "primaryMasterKey: an account key is base64"),
        ({"primaryMasterKey": FIRST, "secondaryMasterKey": "c2VjcmV0"}, "secondaryMasterKey: .*at least 16"),
        ({"primaryMasterKey": FIRST, "primaryReadonlyMasterKey": FIRST}, "could change everything"),
        (" " * (FILE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_no_key(tmp_path: Path, content: Any, reason: str) -> None:
    with pytest.raises(KeyFileError, match=reason) as refused:
        KeyFile(write(tmp_path / "keys.json", content)).read()
    assert "keys.json" in str(refused.value)
    assert not any(key in str(refused.value) for key in (*ALL.values(), "secret!", "c2VjcmV0"))


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "pipe"):
        with pytest.raises(KeyFileError, match="cannot be used"):
            KeyFile(path).read()


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
def test_a_file_that_is_open_to_others_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "keys.json", ALL)
    with caplog.at_level(logging.WARNING):
        KeyFile(path).read()
        assert not caplog.records
        path.chmod(0o640)
        KeyFile(path).read()
    assert "open to others" in caplog.text


def test_a_change_is_seen_once_however_the_file_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "keys.json", ALL)
    file = KeyFile(path)
    file.read()
    assert not file.has_changed()
    write(tmp_path / "new.json", ALL).replace(path)
    assert file.has_changed()
    assert not file.has_changed()
    path.unlink()
    assert file.has_changed()
    assert not file.has_changed()
    write(path, {"primaryMasterKey": SECOND})
    assert file.has_changed()
