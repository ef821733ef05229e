"""What is shown of models and benches, for people.

pages: blocks of a page, as HTML and as Markdown
model_report: sentences, a table and pictures of a model
"""
