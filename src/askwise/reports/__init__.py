"""What is shown of models and benches, for people.

pages: blocks of a page, as HTML and as Markdown
model_report: sentences about a model, and tables as text
promises: whether given cases bear out what a budget promises
model_page: a page about a model, with pictures
notebook: what a notebook shows of a classifier
"""
