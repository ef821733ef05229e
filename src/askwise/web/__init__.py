"""`askwise serve`: a JSON API and a page, which keep no case in memory.

settings: what a service is started with, and what it refuses to start with
clients: who asks, and how fast each may ask
logs: lines of JSON and counters for the operator
turns: long work beside the event loop
request_guard: what every request goes through
bodies: what may be sent and what comes back
api: the routes for programs
openapi: what OpenAPI says of these routes
chart_frames: where things are in the charts of the page
view: what the page shows, in words and numbers
recall_view: the slider for the recall of a class
page: the routes for people
app: the whole application
connections: how many there may be, and how long a client may take
workers: several processes on one port, and the limits that they share
server: the application under uvicorn
"""
