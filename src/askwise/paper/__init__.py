"""The paper's algorithm.

For looking things up:

config: every hyperparameter, and the paper's presets

To be read beside the paper, in this order. Algorithm 3, the environment, is not here: it is `core.cases` and `core.episode`,
which also replays stored episodes; the ε-greedy policy is in `core.policy`.

lagrangian: an average budget as a game between the policy and lambda
targets: the equations of learning, as pure functions
network: the dueling Q-network
memory: a ring of whole episodes
train: algorithms 1 and 2

Around it:

select: which snapshot a budget follows, and when to stop
run: one training under the driver
numpy_network: the network without torch, for using a policy
"""
