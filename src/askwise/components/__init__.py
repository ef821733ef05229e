"""Learners and pieces of networks that several methods use.

- boosting: LightGBM, and the only place that imports it
- static_order: one order of tests for all cases
- prefixes: classifiers on the prefixes of an order, and the policy that buys one prefix
- cost_trees: decision trees that buy what they ask, and how they grow
- packing: problems and arrays as bytes, for other processes
- imputation: missing values of training data filled by guesses, to compare with
- torch_state: torch's random numbers and threads, borrowed and given back
- networks: layers, inputs and averaged weights of torch networks
- pace: how long networks learn, and how the best of them are kept
- numpy_layers: linear layers in NumPy
- encoders: encoders of the user's own, and one for pictures
- pictures: convolutions that see pictures, as data
- subset_classifier: a classifier of any set of tests, and the policy that picks one test after the other
"""
