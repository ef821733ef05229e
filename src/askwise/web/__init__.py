"""The service: a JSON API and a page over trained models, in one process that needs no torch."""
