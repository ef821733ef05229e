"""A trained model as data, and its files.

acquisitions: what was bought and decided, case by case
model: what was learned, and how it decides
purchases: how often each test is bought, and the common paths
learn: from rows to the learned part of a model, by either algorithm
archives: files of arrays and a text, where no size is believed
file_checks: what must hold for a model that was read
file: a model, or a state of a training run, in such a file
onnx_graph: arrays that record what NumPy does with them as an ONNX graph
export: a model for other runtimes
"""
