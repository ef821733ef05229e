"""A trained model as data, and its files.

acquisitions: what was bought and decided, case by case
fit_rows: which of given cases a model was fitted on
targeting: what a budget with targets or class weights follows
model: what was learned, and how it decides
outcomes: how often cases of each class are decided rightly, and how far probabilities can be trusted
recalls: what was measured of targets, and what each recall of a class costs
alternatives: other kinds of policies that were measured
purchases: how often each test is bought, the common paths, and how it ends
learn: from rows to the learned part of a model, by either algorithm
archives: files of arrays and a text, where no size is believed
file_checks: what must hold for a model that was read
file: a model, or a state of a training run, in such a file
onnx_graph: arrays that record what NumPy does with them as an ONNX graph
export: a model for other runtimes
"""
