"""One driver for every training.

damage: checkpoints that do not fit are refused
checkpoint: the state of a trainer, handed out and taken over
result: interim measurements, and what a training came to
driver: the loop with its time limit, callbacks, saving and Ctrl-C
progress: how a training goes, in words
"""
