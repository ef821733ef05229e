"""One training for every tradeoff and every budget, for tables: a cross-fitted stack of learners, and values learned on it.

Every row is held out for some members. What is learned from beliefs, and all that is measured, uses beliefs of members that have
not seen the row.

config: settings of a training
class_weights: how the classes weigh against each other, as an input
outlook: what value heads make of states while they learn
trees: boosted trees as arrays, without LightGBM
belief: class probabilities from a stack of learners
growing: the same along a rollout, where a new test changes only some of it
inference: a trained stack without torch: what each action is worth
checks: what must hold for learners and heads that come from a file
folds: which rows each member learns from
states: which tests the states hold that learners see
side_by_side: networks of equal size, trained together
networks: networks of any set of tests
learners: the same by trees and linear models; all learners of a member
stopping: how long learners learn, by what the other members held out
members: the learners of a member as a job, which any process can do
engines: members fitted several at a time, here or on a cluster
weights: how much each learner counts
held_out: beliefs of members that have not learned from a row
pool: states with the beliefs in them and after each of some tests
stages: trees of their own for some prefixes of the order
order: tests of the static order moved forward
fixed_sets: for a hard budget a set of tests for everybody, better than the order
checkpoint: what must hold for a checkpoint of a training
train: a training, a step at a time
steady: losses of policies with less noise than mistakes have
measure: policies measured on rows that their members have not seen
weighed: policies under several weights of the classes, measured class by class
plan: how a time limit is shared out
run: one training under the driver, and what it comes to
"""
