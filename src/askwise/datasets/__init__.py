"""Named data sets, in reading order.

cards: what each set is, whose it is, what its tests cost, how it is split, what to beware of
sources: where its file is
turney: Turney's costs of medical tests
makers: how each set is made from its file
named: a set by its name, as it came or as problems
"""
