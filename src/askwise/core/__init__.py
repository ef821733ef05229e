"""The algorithm, in reading order: prices, problem, budget, episode, policy (NumPy only), then targets, network,
memory, config, train (torch)."""
