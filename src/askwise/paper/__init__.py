"""The paper's algorithm. The settings are for looking things up; then read beside the paper, in this order:

config: every hyperparameter, and the paper's presets
lagrangian: an average budget as a game between the policy and lambda
targets: the equations of learning, as pure functions
network: the dueling Q-network
memory: a ring of whole episodes
train: algorithms 1 and 2

and then what is around it:

select: which snapshot a budget follows, and when to stop
run: one training under the driver
numpy_network: the network without torch, for using a policy
"""
