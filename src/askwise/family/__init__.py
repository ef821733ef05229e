"""One training for every tradeoff and every budget. README.md has the method as equations.

config: settings of a training, and what training and saved models must agree on
conditions: what losses, costs and budgets are measured against, and how the networks see them
forward: the parts of the networks without torch
inference: a trained family without torch
calibration: forecasts, corrected by what happened
encodings: how columns are shown to the networks
states: prefixes of the static order, and cases in progress
network: classifier, selector and value head, for training
losses: targets and losses as pure functions
descent: the optimiser of a phase, and averaged networks that follow
overfitting: whether the classifier still learns what holds for other rows
train: one training run, a step at a time
trial: arithmetic and threads, as a trial finds them faster
start: how a training begins: its rows, the static order, the encoding
candidates: which policies are measured
frontier: on which rows they are measured, and which are kept
run: one training under the driver
"""
