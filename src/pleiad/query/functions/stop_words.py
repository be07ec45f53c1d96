"""English words too common to search for. Single letters are left out by their length; single digits count."""

from __future__ import annotations

from typing import Final

_ENGLISH_TEXT: Final = """
    about above after again against all also although always am among an and another any are as at
    away be became because become been before behind being below between both but by can cannot
    could did do does doing done down during each either else ever every few for from further get
    gets got had has have having he her here hers herself him himself his how however if in into is
    it its itself just least let like made make many may me might more most much must my myself
    neither never no nor not now of off often on once only onto or other our ours ourselves out over
    own rather same shall she should since so some still such than that the their theirs them
    themselves then there these they this those though through thus to together too under until up
    upon us very was we well were what when where whether which while who whom whose why will with within
    without would yet you your yours yourself yourselves
"""

ENGLISH: Final = frozenset(_ENGLISH_TEXT.split())
