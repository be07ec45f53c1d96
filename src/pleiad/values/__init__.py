"""Values that JSON has no word for, how items keep them, and one order of all values as bytes.

- ``scalars``: a class for each type beyond JSON.
- ``stored``: the form in which items keep them, which is JSON again.
- ``ranks``: for each API the order of its types, as tables.
- ``encoding``: a value as bytes that compare as the values do, and back.

An array is a list, an object a dict, a string a str; an ``int`` is a JSON integer and a ``float`` a double.
``DESIGN.md`` says what is promised and why.
"""
