"""What is shown of models and benches, for people.

pages: blocks of a page, as HTML and as Markdown
model_report: sentences about a model, and tables as text
by_class: how cases of each class were decided, as text and for machines
promises: whether given cases bear out what a budget promises
model_page: a page about a model, with pictures
notebook: what a notebook shows of a classifier
"""
