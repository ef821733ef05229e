"""The paper's algorithm. Read beside the paper, in this order:

lagrangian: an average budget as a game between the policy and lambda
targets: the equations of learning, as pure functions
network: the dueling Q-network
memory: a ring of whole episodes
train: algorithms 1 and 2

and then what is around it:

config: every hyperparameter, and the paper's presets
numpy_network: the network without torch, for using a policy
"""
