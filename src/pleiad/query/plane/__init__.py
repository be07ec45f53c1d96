"""Plane geometry over doubles, without rounding: what shapes share, whether polygons are sound, how near they are.

Invariants
- Positions are doubles and mean exactly what they say. Where a sum of doubles cannot tell on which side of a line a
  place lies, fractions tell; where two segments cross is a pair of fractions. So no answer depends on an error of
  rounding, and a shape never contradicts itself.
- Areas are closed: what lies on an edge belongs to them. A line of no length is a point.
- Work that grows with the shapes tells the pace of the request, and counts nothing that a charge depends on.
"""
