"""The decision process, in NumPy only.

arrays: types of arrays
information: entropy
parameters: what a parameter may be, as data, and one function that words the error
cost_spec: what people say about tests and their costs, as one object
costs: what a set of tests costs, in exact arithmetic
rows: rows of values, made into arrays or refused
labels: classes and their numbers
scoring: what is lost where the belief itself is the answer
losses: what mistakes cost, and how much rows and classes count
sampling: draws of rows, of sets of tests, and for cases
schema: what is decided and what can be bought
problem: the rows that are decided or learned from, and how decisions are judged
target: what has to be reached
budget: what may be spent
cases: cases in progress; what a policy may see of them, and what may be done
measures: what a policy came to on some cases
ranking: how well beliefs rank the cases
shares: recall and precision by class, with intervals, and the confusion matrix
policy: from what is known of a case to what is done next
episode: the one loop that buys and decides
missingness: rows with missing values, made complete for learning
"""
