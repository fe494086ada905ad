"""The order of an epoch: permutations, shares, weights, and the proof that each record came
once."""
