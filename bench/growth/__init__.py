"""What an operation costs as an account grows: ``python -m bench.growth`` (``make bench-growth``).

The figure is the processor time of the server for one request, which other work moves far less than rates.
One thing grows at a time (items, physical partitions, containers, connections) and everything else stays as it is. The
table goes to ``build/growth.md``, the picture to ``build/growth.svg``.
"""
