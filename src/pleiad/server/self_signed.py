"""A key on the curve P-256 and a certificate that it signs itself, with what the standard library has.

It runs once in the life of a data directory, for which a library of many megabytes would be much. That is the one use
it is fit for: its running time depends on the secrets, and nobody can ask it for a second signature. TLS itself, and
the check that the pair is sound, are those of OpenSSL.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import re
import secrets
import textwrap
from collections.abc import Iterable

_FIELD = 2**256 - 2**224 + 2**192 + 2**96 - 1
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
"""The curve y² = x³ - 3x + b over the field; places on it are pairs, and its base makes a group of that order."""
_NUMBER_BYTES = 32
_SERIAL_BYTES = 19

_SEQUENCE, _SET, _INTEGER, _BITS, _OCTETS, _OID, _TEXT, _TRUE = 0x30, 0x31, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x01
_UTC_TIME, _TIME = 0x17, 0x18
_DNS_NAME, _IP_ADDRESS, _FIRST_UNUSED_BITS = 0x82, 0x87, b"\0"
_OF_VERSION, _OF_PUBLIC_KEY, _OF_EXTENSIONS = 0xA0, 0xA1, 0xA3
_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?")
_NAME_MAX = 253

_EC_KEY, _CURVE, _ECDSA_SHA256 = "1.2.840.10045.2.1", "1.2.840.10045.3.1.7", "1.2.840.10045.4.3.2"
_COMMON_NAME, _ALT_NAMES, _CONSTRAINTS = "2.5.4.3", "2.5.29.17", "2.5.29.19"
_KEY_USAGE, _KEY_ID, _SERVER = "2.5.29.37", "2.5.29.14", "1.3.6.1.5.5.7.3.1"


def self_signed(
    common_name: str, hosts: Iterable[str], start: datetime.datetime, valid_days: int
) -> tuple[bytes, bytes]:
    """A certificate for a server of these names and addresses, and its private key, both as PEM.

    ValueError when a name cannot stand in a certificate.
    """
    names = _sequence(*map(_general_name, hosts))
    secret = _secret_number()
    x, y = _times(secret, _BASE)
    public = b"\x04" + x.to_bytes(_NUMBER_BYTES) + y.to_bytes(_NUMBER_BYTES)
    issuer = _sequence(_der(_SET, _sequence(_oid(_COMMON_NAME), _der(_TEXT, common_name.encode()))))
    signed = _sequence(
        _der(_OF_VERSION, _integer(2)),
        _integer(int.from_bytes(secrets.token_bytes(_SERIAL_BYTES)) | 1),
        _sequence(_oid(_ECDSA_SHA256)),
        issuer,
        _sequence(_time(start), _time(start + datetime.timedelta(days=valid_days))),
        issuer,
        _sequence(_sequence(_oid(_EC_KEY), _oid(_CURVE)), _der(_BITS, _FIRST_UNUSED_BITS, public)),
        _der(
            _OF_EXTENSIONS,
            _sequence(
                _extension(_ALT_NAMES, names),
                # An end-entity certificate: some clients refuse one that could sign others as that of a server.
                _extension(_CONSTRAINTS, _sequence(), is_critical=True),
                _extension(_KEY_USAGE, _sequence(_oid(_SERVER))),
                _extension(_KEY_ID, _der(_OCTETS, hashlib.sha1(public, usedforsecurity=False).digest())),
            ),
        ),
    )
    signature = _sequence(*map(_integer, _signature(secret, hashlib.sha256(signed).digest())))
    certificate = _sequence(
        signed, _sequence(_oid(_ECDSA_SHA256)), _der(_BITS, _FIRST_UNUSED_BITS, signature)
    )
    key = _sequence(
        _integer(1),
        _der(_OCTETS, secret.to_bytes(_NUMBER_BYTES)),
        _der(_OF_PUBLIC_KEY, _der(_BITS, _FIRST_UNUSED_BITS, public)),
    )
    key_info = _sequence(_integer(0), _sequence(_oid(_EC_KEY), _oid(_CURVE)), _der(_OCTETS, key))
    return _pem("CERTIFICATE", certificate), _pem("PRIVATE KEY", key_info)


# -- the curve -------------------------------------------------------------------------------------

_Place = tuple[int, int]


def _secret_number() -> int:
    return secrets.randbelow(_ORDER - 1) + 1


def _signature(secret: int, digest: bytes) -> tuple[int, int]:
    """ECDSA, with a number used once."""
    while True:
        once = _secret_number()
        r = _times(once, _BASE)[0] % _ORDER
        s = pow(once, -1, _ORDER) * (int.from_bytes(digest) + r * secret) % _ORDER
        if r and s:
            return r, s


def _times(number: int, place: _Place) -> _Place:
    """A place added to itself a number of times, which is less than the order: no sum on the way is the zero."""
    x, y, z = *place, 1
    for bit in bin(number)[3:]:
        x, y, z = _twice(x, y, z)
        if bit == "1":
            x, y, z = _sum(x, y, z, place)
    inverse = pow(z, -1, _FIELD)
    return x * inverse**2 % _FIELD, y * inverse**3 % _FIELD


def _twice(x: int, y: int, z: int) -> tuple[int, int, int]:
    """Places on the way are x/z² and y/z³, because to divide takes long."""
    slope = 3 * (x - z * z) * (x + z * z) % _FIELD
    part = 4 * x * y * y % _FIELD
    new_x = (slope * slope - 2 * part) % _FIELD
    return new_x, (slope * (part - new_x) - 8 * pow(y, 4, _FIELD)) % _FIELD, 2 * y * z % _FIELD


def _sum(x: int, y: int, z: int, place: _Place) -> tuple[int, int, int]:
    run = (place[0] * z * z - x) % _FIELD
    rise = (place[1] * z * z * z - y) % _FIELD
    square, cube = run * run % _FIELD, run * run * run % _FIELD
    part = x * square % _FIELD
    new_x = (rise * rise - cube - 2 * part) % _FIELD
    return new_x, (rise * (part - new_x) - y * cube) % _FIELD, z * run % _FIELD


# -- its form --------------------------------------------------------------------------------------


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    size_bytes = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(size_bytes))) + size_bytes + content


def _sequence(*contents: bytes) -> bytes:
    return _der(_SEQUENCE, *contents)


def _integer(number: int) -> bytes:
    return _der(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def _oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    content = bytearray([first * 40 + second])
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        content += bytes(reversed(groups))
    return _der(_OID, bytes(content))


def _time(moment: datetime.datetime) -> bytes:
    text = moment.strftime("%Y%m%d%H%M%SZ").encode()
    # Years have two digits as long as these tell the century.
    return _der(_UTC_TIME, text[2:]) if moment.year < 2050 else _der(_TIME, text)


def _extension(oid: str, content: bytes, is_critical: bool = False) -> bytes:
    critical = _der(_TRUE, b"\xff") if is_critical else b""
    return _sequence(_oid(oid), critical, _der(_OCTETS, content))


def _general_name(host: str) -> bytes:
    try:
        return _der(_IP_ADDRESS, ipaddress.ip_address(host).packed)
    except ValueError:
        if len(host) > _NAME_MAX or not _NAME.fullmatch(host):
            raise ValueError(
                f"'{host}' cannot be named in a certificate: a name has letters, digits, hyphens and points"
            ) from None
        return _der(_DNS_NAME, host.encode())


def _pem(label: str, content: bytes) -> bytes:
    lines = textwrap.fill(base64.b64encode(content).decode(), 64)
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n".encode()
