"""One driver for both algorithms.

checkpoint: the state of a trainer, handed out and taken over
checkpoint_checks: checkpoints that do not fit are refused
result: interim measurements, and what a training came to
driver: the loop with its time limit, callbacks, saving and Ctrl-C
progress: how a training goes, in words
"""
