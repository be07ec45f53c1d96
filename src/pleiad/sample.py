"""The small sample that ``pleiad serve --sample`` loads, so that a new server has something to look at.

Plain data and no input or output: four containers that show four ways to choose a partition key. The numbers
are made up and small. Every call gives fresh item values, so a caller may change what it receives.

- ``food``: a property of the data is the key; each food group is one logical partition.
- ``devices``: a synthetic key, the device and the year joined.
- ``flights``: three key values, LAX, AMS and MEL, make three logical partitions.
- ``users``: one key value for each user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_DATABASE = "sample"
_THROUGHPUT_RU = 400

_FOOD_GROUPS: dict[str, list[tuple[str, int, float, float]]] = {
    # name, energy in kcal, protein in g and fat in g, each per 100 g
    "Beef Products": [
        ("Beef, chuck, braised", 302, 27.1, 20.9),
        ("Beef, brisket, lean", 214, 30.4, 9.6),
        ("Beef, ground, grilled", 251, 25.2, 16.1),
        ("Beef, tenderloin, roasted", 239, 26.8, 14.2),
        ("Beef, liver, fried", 176, 26.3, 4.8),
    ],
    "Baked Products": [
        ("Bread, rye", 256, 8.7, 3.2),
        ("Bread, wheat, toasted", 309, 12.8, 4.1),
        ("Croissant, butter", 404, 8.3, 21.4),
        ("Cookies, oatmeal", 447, 6.4, 18.2),
        ("Muffin, blueberry", 373, 5.3, 16.0),
    ],
    "Sausages and Luncheon Meats": [
        ("Salami, dry", 379, 22.1, 31.2),
        ("Bratwurst, cooked", 331, 13.9, 29.0),
        ("Ham, sliced", 161, 16.8, 8.5),
        ("Mortadella", 309, 16.2, 25.3),
    ],
    "Vegetables and Vegetable Products": [
        ("Carrots, raw", 40, 0.9, 0.2),
        ("Spinach, cooked", 24, 3.0, 0.3),
        ("Tomatoes, ripe", 19, 0.8, 0.2),
        ("Broccoli, steamed", 34, 2.5, 0.4),
        ("Potatoes, baked", 94, 2.4, 0.1),
        ("Peas, green", 80, 5.3, 0.4),
    ],
    "Soups, Sauces, and Gravies": [
        ("Soup, lentil", 56, 3.8, 1.1),
        ("Soup, tomato", 32, 0.8, 0.3),
        ("Sauce, pesto", 418, 5.0, 41.0),
        ("Gravy, beef", 53, 3.7, 2.3),
    ],
}

_DEVICE_READINGS: list[tuple[str, int, str, float]] = [
    # device, year, time of the reading, temperature in degrees Celsius
    ("abc-123", 2018, "2018-01-14T08:00:00Z", 19.5),
    ("abc-123", 2018, "2018-06-02T08:00:00Z", 23.1),
    ("abc-123", 2018, "2018-11-20T08:00:00Z", 18.4),
    ("abc-123", 2019, "2019-02-09T08:00:00Z", 17.9),
    ("abc-123", 2019, "2019-07-30T08:00:00Z", 25.6),
    ("abc-456", 2018, "2018-03-05T09:30:00Z", 20.2),
    ("abc-456", 2018, "2018-09-17T09:30:00Z", 21.7),
    ("abc-456", 2019, "2019-05-23T09:30:00Z", 22.0),
    ("xms-001", 2019, "2019-04-11T12:15:00Z", 4.3),
    ("xms-001", 2019, "2019-10-08T12:15:00Z", 3.8),
]

_FLIGHTS: list[tuple[str, str, str, str, int]] = [
    # airport of departure, flight, destination, departure time of day, seats
    ("LAX", "PL101", "AMS", "13:45", 294),
    ("LAX", "PL117", "MEL", "22:30", 308),
    ("LAX", "PL122", "SEA", "07:10", 160),
    ("LAX", "PL130", "JFK", "09:00", 204),
    ("AMS", "PL102", "LAX", "10:20", 294),
    ("AMS", "PL245", "LHR", "06:55", 132),
    ("AMS", "PL251", "SIN", "20:40", 308),
    ("MEL", "PL118", "LAX", "11:15", 308),
    ("MEL", "PL330", "SYD", "08:05", 174),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleContainer:
    """One container of the sample: where it goes, how it is partitioned, and its items."""

    database_id: str
    container_id: str
    partition_key_paths: tuple[str, ...]
    throughput_ru: int
    items: list[dict[str, Any]]


def sample_containers() -> list[SampleContainer]:
    """The containers of the sample, in the order in which they are to be loaded."""
    return [
        _container("food", "/foodGroup", _food_items()),
        _container("devices", "/partitionKey", _device_items()),
        _container("flights", "/airport", _flight_items()),
        _container("users", "/userId", _user_items()),
    ]


def _container(container_id: str, partition_key_path: str, items: list[dict[str, Any]]) -> SampleContainer:
    return SampleContainer(
        database_id=_DATABASE,
        container_id=container_id,
        partition_key_paths=(partition_key_path,),
        throughput_ru=_THROUGHPUT_RU,
        items=items,
    )


def _food_items() -> list[dict[str, Any]]:
    rows = [(group, *food) for group, foods in _FOOD_GROUPS.items() for food in foods]
    return [
        {
            "id": f"{number:05d}",
            "foodGroup": group,
            "description": name,
            "nutrients": {"energyKcal": energy_kcal, "proteinG": protein_g, "fatG": fat_g},
            "servings": [{"amount": 1, "description": "portion", "weightG": 100}],
        }
        for number, (group, name, energy_kcal, protein_g, fat_g) in enumerate(rows, start=1001)
    ]


def _device_items() -> list[dict[str, Any]]:
    return [
        {
            "id": f"{device_id}-{read_at}".replace(":", ""),
            "deviceId": device_id,
            "date": year,
            "partitionKey": f"{device_id}-{year}",
            "readAt": read_at,
            "temperatureC": temperature_c,
        }
        for device_id, year, read_at, temperature_c in _DEVICE_READINGS
    ]


def _flight_items() -> list[dict[str, Any]]:
    return [
        {"id": flight, "airport": airport, "destination": destination, "departs": departs, "seats": seats}
        for airport, flight, destination, departs, seats in _FLIGHTS
    ]


def _user_items() -> list[dict[str, Any]]:
    return [
        {"id": "andrew", "userId": "Andrew", "worksFor": "Microsoft"},
        {"id": "maia", "userId": "Maia", "worksFor": "Pleione Foods"},
        {"id": "electra", "userId": "Electra", "worksFor": "Pleione Foods"},
        {"id": "alcyone", "userId": "Alcyone", "worksFor": "Halcyon Air"},
    ]
