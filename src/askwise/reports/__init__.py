"""What is shown of models and benches, for people.

pages: blocks of a page, as HTML and as Markdown
training: sentences about a training
model_report: sentences about a model, and tables as text
by_class: how cases of each class were decided, as text and for machines
reached: what a budget has to reach, and what each recall of a class costs
promises: whether given cases bear out what a budget promises
model_page: a page about a model, with pictures
notebook: what a notebook shows of a classifier
"""
